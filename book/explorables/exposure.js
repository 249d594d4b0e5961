/* The mathematics of the explorables, exact and without a library: the race of chapter 4, read at a
   few nodes as in fairpg_lite.nodes and fairpg_lite.exact, with its gradient.
   tests/book/test_explorables.py compares all of it with the module.

   A plain script, so that it works over file://: in a page the functions are in `fairpg`; a program
   may also `require` it, or `import { exposure } from "./exposure.js"` in Node. */
(function (root) {
  "use strict";

  /** fairpg_lite.exact's default accuracy. */
  const TOLERANCE = 1e-10;
  /** The position bias 1 / log2(1 + j) as a sum of powers, for lists of up to so many positions:
      nodes z and coefficients a, as fairpg_lite.nodes.discount_nodes finds them. */
  const POWER_SUMS = [
    {
      upTo: 16,
      z: [0.9954492339541112, 0.9205090143944005, 0.7845574926470275, 0.6095227235333829,
        0.4207123751616512, 0.24440864618491245, 0.10470079909239614, 0.02044008944308665],
      a: [0.21632172178255082, 0.13457127936730828, 0.14087014782426358, 0.14344540423844265,
        0.1351903796039505, 0.11376248602211153, 0.07970346243439429, 0.036135118726978735],
    },
    {
      upTo: 64,
      z: [0.9990950325029478, 0.9793725744439151, 0.9387140736214762, 0.8765664323970391,
        0.7915901692074018, 0.682491753541524, 0.5498512053653318, 0.39927884474784753,
        0.24482695941960456, 0.10984380905426826, 0.022078621100676224],
      a: [0.1543507015174291, 0.07034885515525807, 0.07057378633567137, 0.07696475938464854,
        0.08637162226986124, 0.09736270982128337, 0.107465656833731, 0.11212416647409715,
        0.10502529288571683, 0.08065927504318693, 0.03875317427911434],
    },
  ];

  /** Attention that positions 1..n get: 1 / log2(1 + j). */
  function positionBias(n) {
    return Array.from({ length: n }, (_, j) => 1 / Math.log2(2 + j));
  }

  /** The power sum for lists of n documents; a message where there is none. */
  function powerSum(scores) {
    const n = scores.length;
    const found = POWER_SUMS.findIndex((sum) => n <= sum.upTo);
    if (!n || found < 0 || !scores.every(Number.isFinite)) {
      throw new RangeError(`exposure: ${n} scores; give 1 to 64, all finite.`);
    }
    return found;
  }
  const Z = POWER_SUMS.map(({ z }) => Float64Array.from(z)), A = POWER_SUMS.map(({ a }) => Float64Array.from(a));

  /** Subtracts the logarithm of the sum of exponentials: logarithms of a softmax. */
  function normalize(logs) {
    let top = -Infinity, total = 0;
    for (let i = 0; i < logs.length; i++) if (logs[i] > top) top = logs[i];
    for (let i = 0; i < logs.length; i++) total += Math.exp(logs[i] - top);
    total = top + Math.log(total);
    for (let i = 0; i < logs.length; i++) logs[i] -= total;
  }
  const least = (logs) => {
    let found = Infinity;
    for (let i = 0; i < logs.length; i++) if (logs[i] < found) found = logs[i];
    return found;
  };

  /** A gap between neighbours in which hardly anybody overtakes is wide enough. */
  function narrow(logs, widest) {
    const order = Array.from(logs, (_, i) => i).sort((i, j) => logs[j] - logs[i]), scores = logs.slice();
    logs[order[0]] = 0;
    for (let k = 1; k < order.length; k++) {
      logs[order[k]] = logs[order[k - 1]] - Math.min(widest, scores[order[k - 1]] - scores[order[k]]);
    }
    normalize(logs);
  }

  /** x at the first time, the step in x, and x when a runner of log-weight 0 has arrived. */
  const GRID = (() => {
    const reach = -Math.log(TOLERANCE);
    let first = -Math.log(reach);
    for (let k = 0; k < 4; k++) {
      first -= (first - Math.exp(-first) + reach) / (1 + Math.exp(-first));
    }
    return { first, step: 8 / reach, arrival: Math.log(reach) };
  })();
  /** Beyond this log-rate a runner is there for any purpose. */
  const LATEST = Math.log(-0.7 * Math.log(2.2250738585072014e-308));

  /** Room for so many numbers, the same at each call: a training runs hundreds of races. */
  const rooms = [];
  function room(k, size) {
    if (!rooms[k] || rooms[k].length < size) rooms[k] = new Float64Array(2 * size);
    return rooms[k];
  }

  /** The race behind a Plackett-Luce ranking for lists of n documents, as often as one likes.

      Document i arrives at an exponential time with rate exp(score), and the order of arrival is the
      ranking. Given that i arrives at t, the others are there independently, so a power z of their
      number has a product for its mean; the position bias is a sum of such powers, and one integral
      over t remains, a trapezoid sum. `run` fills `exposures` for the scores in `scores`; `pullBack`
      fills `slope` for the race that was run last. Nothing is allocated on the way. */
  function course(n, kind) {
    const z = Z[kind], a = A[kind], nodes = z.length, widest = 3 - Math.log(TOLERANCE) + 2 * Math.log(n);
    const scores = new Float64Array(n), exposures = new Float64Array(n), slope = new Float64Array(n);
    const logs = new Float64Array(n), weights = new Float64Array(n);
    const waiting = new Float64Array(n), arrival = new Float64Array(n);
    let times = 0;

    function run() {
      logs.set(scores);
      normalize(logs);
      const isWide = -least(logs) > widest;
      if (isWide) narrow(logs, widest);
      for (let i = 0; i < n; i++) weights[i] = Math.exp(logs[i]);
      exposures.fill(0);
      times = Math.max(2, Math.ceil((GRID.arrival - least(logs) - GRID.first) / GRID.step) + 1);
      // At each time: one minus each runner's rate times the time; at each node its density of arrival
      // over its factor z + (1 - z) exp(-y); and for each node the product of all factors, weighted.
      const lead = room(0, times * n), part = room(1, times * n * nodes), scale = room(2, times * nodes);
      for (let q = 0, at = 0; q < times; q++) {
        const x = GRID.first + GRID.step * q, decay = Math.exp(-x), weight = GRID.step * (1 + decay);
        const time = isWide ? 0 : Math.exp(x - decay);
        for (let i = 0; i < n; i++) {
          const y = isWide ? Math.exp(Math.min(LATEST, logs[i] + x - decay)) : weights[i] * time;
          waiting[i] = Math.exp(-y);
          arrival[i] = y * waiting[i];
          lead[q * n + i] = 1 - y;
        }
        for (let m = 0; m < nodes; m++, at += n) {
          const low = z[m], drop = 1 - low;
          let product = weight * a[m];
          for (let i = 0; i < n; i++) {
            const factor = low + drop * waiting[i];
            product *= factor;
            part[at + i] = arrival[i] / factor;
          }
          scale[q * nodes + m] = product;
          for (let i = 0; i < n; i++) exposures[i] += product * part[at + i];
        }
      }
    }

    /** The gradient in the scores of sum_i pull[i] exposure[i]: chapter 8's way back. */
    function pullBack(pull) {
      const lead = rooms[0], part = rooms[1], scale = rooms[2];
      slope.fill(0);
      for (let q = 0, at = 0; q < times; q++) for (let m = 0; m < nodes; m++, at += n) {
        const share = scale[q * nodes + m], drop = 1 - z[m];
        let all = 0;
        for (let i = 0; i < n; i++) all += pull[i] * part[at + i];
        for (let k = 0; k < n; k++) {
          // Coming earlier changes one's own density, and one's lead over each of the others.
          const own = part[at + k], others = all - pull[k] * own;
          slope[k] += share * own * (pull[k] * lead[q * n + k] - drop * others);
        }
      }
      // A shift of all scores changes nothing: the way back through the softmax.
      let total = 0;
      for (let k = 0; k < n; k++) total += slope[k];
      for (let k = 0; k < n; k++) slope[k] -= weights[k] * total;
    }
    return { scores, exposures, slope, run, pullBack };
  }
  const courses = new Map();
  /** The course for so many documents; there is one for each length. */
  function courseFor(scores) {
    const kind = powerSum(scores), n = scores.length;
    if (!courses.has(n)) courses.set(n, course(n, kind));
    return courses.get(n);
  }

  /** Exposures under these scores, and their gradient, which is for the race that was run last. */
  function race(scores) {
    const found = courseFor(scores);
    found.scores.set(scores);
    found.run();
    const gradient = (pull) => {
      found.pullBack(Float64Array.from(pull));
      return Array.from(found.slope);
    };
    return { exposures: Array.from(found.exposures), gradient };
  }

  /** Expected exposure of each document under the Plackett-Luce policy with these scores. */
  const exposure = (scores) => race(scores).exposures;

  /** One list from that policy: the documents in their order. Its race is run in log time. */
  function draw(scores, random = Math.random) {
    const time = scores.map((s) => Math.log(-Math.log(1 - random())) - s);
    return scores.map((_, i) => i).sort((i, j) => time[i] - time[j]);
  }

  const gain = (merit) => 2 ** merit - 1;
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

  /** DCG of the sorted list. */
  function idealDcg(merit) {
    return dot(merit.map(gain).sort((a, b) => b - a), positionBias(merit.length));
  }

  /** Expected NDCG; 1 where nobody has merit. */
  function ndcg(exposures, merit) {
    const ideal = idealDcg(merit);
    return ideal > 0 ? dot(merit.map(gain), exposures) / ideal : 1;
  }

  /** Mean exposure, mean merit and their ratio for each label, in the order of the labels. */
  function byGroup(exposures, merit, groups) {
    return [...new Set(groups)].sort().map((label) => {
      const inside = groups.map((g) => (g === label ? 1 : 0));
      const size = dot(inside, inside);
      const mean = { label, size, exposure: dot(inside, exposures) / size, merit: dot(inside, merit) / size };
      return { ...mean, ratio: mean.merit > 0 ? mean.exposure / mean.merit : 0 };
    });
  }

  /** By how much `a` is ahead of `b` per unit of merit, if it has at least as much merit. */
  const ahead = (a, b) => (a.merit >= b.merit - 1e-12 ? Math.max(0, a.ratio - b.ratio) : 0);

  /** D_group, with its hinge: only the group of higher merit can be ahead. */
  function groupDisparity(exposures, merit, groups) {
    const all = byGroup(exposures, merit, groups).filter((g) => g.merit > 0);
    let sum = 0, pairs = 0;
    all.forEach((a, i) => all.slice(0, i).forEach((b) => {
      sum += Math.max(ahead(a, b), ahead(b, a));
      pairs++;
    }));
    return pairs ? sum / pairs : 0;
  }

  /** D_ind: the same hinge, averaged over all pairs of documents with merit, (i, i) included. */
  function individualDisparity(exposures, merit) {
    const all = merit.map((m, i) => ({ merit: m, ratio: exposures[i] / m })).filter((d) => d.merit > 0);
    let sum = 0, pairs = 0;
    for (const a of all) for (const b of all) {
      if (a.merit >= b.merit - 1e-12) pairs++;
      sum += ahead(a, b);
    }
    return pairs ? sum / pairs : 0;
  }

  root.fairpg = Object.assign(root.fairpg || {}, {
    POWER_SUMS, positionBias, courseFor, race, exposure, draw, gain, idealDcg, ndcg, byGroup, ahead,
    groupDisparity, individualDisparity,
  });
  if (typeof module === "object" && module.exports) {
    module.exports = {
      positionBias, race, exposure, draw, ndcg, byGroup, groupDisparity, individualDisparity,
    };
  }
})(typeof globalThis === "object" ? globalThis : this);
