/* The mathematics of the explorables, exact and without a library (chapter 4; fairpg_lite has the
   same in Python, and tests/book/test_explorables.py compares the two).

   A plain script, so that it works over file://: in a page the functions are in `fairpg`; a program
   may also `require` it, or `import { exposure } from "./exposure.js"` in Node. */
(function (root) {
  "use strict";

  /** Attention that positions 1..n get: 1 / log2(1 + j). */
  function positionBias(n) {
    return Array.from({ length: n }, (_, j) => 1 / Math.log2(2 + j));
  }

  /** Log-weights with the heaviest 0. A gap in which nobody overtakes (e^-40) is wide enough. */
  function logWeights(scores) {
    const order = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
    const logs = scores.map(() => 0);
    for (let k = 1; k < order.length; k++) {
      const gap = Math.min(40, scores[order[k - 1]] - scores[order[k]]);
      logs[order[k]] = logs[order[k - 1]] - gap;
    }
    return logs;
  }

  /** Mean of bias[number of those in `arrived` but i that have arrived]; work is scratch space. */
  function meanBias(arrived, i, bias, work) {
    const n = arrived.length;
    for (let k = 0; k < n; k++) work[k] = bias[k];
    // Toss one coin after the other: what is left in front is the mean over all of them.
    let left = n - 1;
    for (let j = 0; j < n; j++) {
      if (j === i) continue;
      for (let k = 0; k < left; k++) work[k] += arrived[j] * (work[k + 1] - work[k]);
      left--;
    }
    return work[0];
  }

  /** Expected exposure of each document under the Plackett-Luce policy with these scores.

      The ranking is a race: document i arrives at an exponential time with rate exp(score). Given
      that it arrives at t, the others are there independently, so the mean of the bias over their
      number is a product of coins, and one integral over t remains. With log t = x - exp(-x) the
      trapezoid sum is exact to about 1e-12. */
  function exposure(scores, bias) {
    const n = scores.length;
    bias = bias || positionBias(n);
    if (!n || bias.length !== n || ![...scores, ...bias].every(Number.isFinite)) {
      throw new RangeError(`exposure: ${n} scores and ${bias.length} positions; ` +
        "give as many of each, at least one, and all finite.");
    }
    const logs = logWeights(scores);
    const step = Math.min(0.25, 0.6 / Math.sqrt(n));
    const last = 3.5 - Math.min(...logs);
    const found = new Array(n).fill(0);
    const arrived = new Float64Array(n), rate = new Float64Array(n), work = new Float64Array(n);
    for (let x = -3.4; x < last; x += step) {
      const logTime = x - Math.exp(-x);
      for (let j = 0; j < n; j++) {
        rate[j] = Math.exp(logs[j] + logTime);
        arrived[j] = -Math.expm1(-rate[j]);
      }
      for (let i = 0; i < n; i++) {
        const density = rate[i] < 700 ? rate[i] * Math.exp(-rate[i]) : 0;
        if (density < 1e-18) continue;
        found[i] += step * (1 + Math.exp(-x)) * density * meanBias(arrived, i, bias, work);
      }
    }
    return found;
  }

  /** One list from that policy: the documents in their order. Its race is run in log time. */
  function draw(scores) {
    const time = scores.map((s) => Math.log(-Math.log(1 - Math.random())) - s);
    return scores.map((_, i) => i).sort((a, b) => time[a] - time[b]);
  }

  const gain = (merit) => 2 ** merit - 1;
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

  /** Expected NDCG; 1 where nobody has merit. */
  function ndcg(exposures, merit, bias) {
    const gains = merit.map(gain);
    const ideal = dot([...gains].sort((a, b) => b - a), bias || positionBias(merit.length));
    return ideal > 0 ? dot(gains, exposures) / ideal : 1;
  }

  /** Mean exposure, mean merit and their ratio for each label, in the order of the labels. */
  function byGroup(exposures, merit, groups) {
    return [...new Set(groups)].sort().map((label) => {
      const inside = groups.map((g) => (g === label ? 1 : 0));
      const size = dot(inside, inside);
      const mean = { label, exposure: dot(inside, exposures) / size, merit: dot(inside, merit) / size };
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

  const all = { positionBias, exposure, draw, ndcg, byGroup, groupDisparity, individualDisparity };
  root.fairpg = Object.assign(root.fairpg || {}, all);
  if (typeof module === "object" && module.exports) {
    module.exports = {
      positionBias, exposure, draw, ndcg, byGroup, groupDisparity, individualDisparity,
    };
  }
})(typeof globalThis === "object" ? globalThis : this);
