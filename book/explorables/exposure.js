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
    const found = POWER_SUMS.find((sum) => n <= sum.upTo);
    if (!n || !found || !scores.every(Number.isFinite)) {
      throw new RangeError(`exposure: ${n} scores; give 1 to 64, all finite.`);
    }
    return found;
  }

  /** Logarithms of the softmax of the scores. */
  function logSoftmax(scores) {
    const top = Math.max(...scores);
    const total = top + Math.log(scores.reduce((sum, s) => sum + Math.exp(s - top), 0));
    return scores.map((s) => s - total);
  }

  /** Log-weights of the runners. A gap in which hardly anybody overtakes is wide enough. */
  function logWeights(scores) {
    const logs = logSoftmax(scores);
    const widest = 3 - Math.log(TOLERANCE) + 2 * Math.log(scores.length);
    if (-Math.min(...logs) <= widest) return logs;
    const order = scores.map((_, i) => i).sort((i, j) => scores[j] - scores[i]);
    const narrowed = scores.map(() => 0);
    for (let k = 1; k < order.length; k++) {
      const gap = Math.min(widest, scores[order[k - 1]] - scores[order[k]]);
      narrowed[order[k]] = narrowed[order[k - 1]] - gap;
    }
    return logSoftmax(narrowed);
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

  /** The race behind a Plackett-Luce ranking, run once: its exposure, and the way back.

      Document i arrives at an exponential time with rate exp(score), and the order of arrival is the
      ranking. Given that i arrives at t, the others are there independently, so a power z of their
      number has a product for its mean; the position bias is a sum of such powers, and one integral
      over t remains, a trapezoid sum. `gradient` is for the race that was run last. */
  function race(scores) {
    const { z, a } = powerSum(scores), logs = logWeights(scores);
    const n = scores.length, nodes = z.length;
    const last = GRID.arrival - Math.min(...logs);
    const times = Math.max(2, Math.ceil((last - GRID.first) / GRID.step) + 1);
    // At each time: for each runner its rate times the time and its density of arrival; one over its
    // factor z + (1 - z) exp(-y) at each node; for each node the product of all factors, weighted.
    const y = room(0, times * n), arrival = room(1, times * n);
    const inverse = room(2, times * n * nodes), scale = room(3, times * nodes);
    const exposures = new Array(n).fill(0);
    for (let q = 0; q < times; q++) {
      const x = GRID.first + GRID.step * q, decay = Math.exp(-x), weight = GRID.step * (1 + decay);
      for (let m = 0; m < nodes; m++) scale[q * nodes + m] = weight * a[m];
      for (let i = 0; i < n; i++) {
        const at = q * n + i;
        y[at] = Math.exp(Math.min(LATEST, logs[i] + x - decay));
        const waiting = Math.exp(-y[at]);
        arrival[at] = y[at] * waiting;
        for (let m = 0; m < nodes; m++) {
          const factor = z[m] + (1 - z[m]) * waiting;
          scale[q * nodes + m] *= factor;
          inverse[at * nodes + m] = 1 / factor;
        }
      }
      for (let i = 0; i < n; i++) {
        let sum = 0;
        for (let m = 0; m < nodes; m++) sum += scale[q * nodes + m] * inverse[(q * n + i) * nodes + m];
        exposures[i] += arrival[q * n + i] * sum;
      }
    }

    /** The gradient in the scores of sum_i pull[i] exposure[i]: chapter 8's way back. */
    function gradient(pull) {
      const slope = new Array(n).fill(0);
      for (let q = 0; q < times; q++) for (let m = 0; m < nodes; m++) {
        const share = scale[q * nodes + m], drop = 1 - z[m];
        let all = 0;
        for (let i = 0; i < n; i++) all += arrival[q * n + i] * pull[i] * inverse[(q * n + i) * nodes + m];
        for (let k = 0; k < n; k++) {
          const at = q * n + k, factor = inverse[at * nodes + m], own = arrival[at] * pull[k] * factor;
          // Coming earlier changes one's own density, and one's lead over each of the others.
          slope[k] += share * (own * (1 - y[at]) - drop * arrival[at] * factor * (all - own));
        }
      }
      // A shift of all scores changes nothing: the way back through the softmax.
      const total = slope.reduce((sum, g) => sum + g);
      return slope.map((g, k) => g - Math.exp(logs[k]) * total);
    }
    return { exposures, gradient };
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
    POWER_SUMS, positionBias, race, exposure, draw, gain, idealDcg, ndcg, byGroup, ahead,
    groupDisparity, individualDisparity,
  });
  if (typeof module === "object" && module.exports) {
    module.exports = {
      positionBias, race, exposure, draw, ndcg, byGroup, groupDisparity, individualDisparity,
    };
  }
})(typeof globalThis === "object" ? globalThis : this);
