/* Fair-PG-Rank in the page: what fairpg_lite.fit does with a linear scorer of two features, one query
   at a time, with the exact gradient or the paper's sampled one. Tested against the module. */
(function (root) {
  "use strict";
  const { courseFor, draw, gain, idealDcg, positionBias, byGroup } = root.fairpg;

  /** Queries from packed numbers: for each document x1, x2, six bytes each, and its group; relevance is
      x1 + x2, cut at `clip`, and what group 1 shows as x2 is 0. */
  function unpack({ x, scale, groups, documents, clip }) {
    const bytes = Uint8Array.from(atob(x), (c) => c.charCodeAt(0)), queries = [];
    const number = (k) => bytes.subarray(6 * k, 6 * k + 6).reduceRight((sum, byte) => 256 * sum + byte, 0);
    const numbers = Float64Array.from({ length: bytes.length / 6 }, (_, k) => (scale * number(k)) / 2 ** 48);
    for (let start = 0; 2 * start < numbers.length; start += documents) {
      const rows = Array.from({ length: documents }, (_, i) => start + i);
      const label = rows.map((i) => +groups[i]);
      const merit = rows.map((i) => Math.min(clip, numbers[2 * i] + numbers[2 * i + 1]));
      queries.push({
        x1: Float64Array.from(rows, (i) => numbers[2 * i]),
        x2: Float64Array.from(rows, (i, k) => (label[k] ? 0 : numbers[2 * i + 1])),
        groups: label, merit, sides: sides(merit, label),
        worth: Float64Array.from(merit, (m) => gain(m) / idealDcg(merit)),
      });
    }
    return queries;
  }

  /** What a unit of exposure adds to the lead of the group of higher merit, document by document;
      zeros where a group is absent or has no merit. */
  function sides(merit, groups) {
    const both = byGroup(merit, merit, groups);
    if (both.length < 2 || !(both[0].merit > 0 && both[1].merit > 0)) return new Float64Array(merit.length);
    const high = both[0].merit >= both[1].merit ? 0 : 1;
    return Float64Array.from(groups, (g) => (g === high ? 1 : -1) / (both[g].size * both[g].merit));
  }

  const scoresOf = (query, [a, b]) => Array.from(query.x1, (x, i) => a * x + b * query.x2[i]);
  function dot(u, v) {
    let sum = 0;
    for (let i = 0; i < u.length; i++) sum += u[i] * v[i];
    return sum;
  }

  /** The slope of U - lam D in each document's exposure, where the exposures are `found`. */
  function pullOf(query, lam, found, pull = new Float64Array(found.length)) {
    const charge = dot(query.sides, found) > 0 ? lam : 0;
    for (let i = 0; i < pull.length; i++) pull[i] = query.worth[i] - charge * query.sides[i];
    return pull;
  }

  /** The slope of a list's log-probability in the scores. */
  function scoreFunction(list, scores) {
    const top = Math.max(...scores), weight = scores.map((s) => Math.exp(s - top));
    const slope = scores.map(() => 0);
    let left = list.reduce((sum, i) => sum + weight[i], 0), passed = 0;
    for (const i of list) {
      passed += 1 / left;
      slope[i] = 1 - weight[i] * passed;
      left -= weight[i];
    }
    return slope;
  }

  /** The gradient in the scores from a few drawn lists: REINFORCE, the mean reward as baseline. */
  function sampledSlope(query, scores, lam, lists, random) {
    const bias = positionBias(scores.length), mean = scores.map(() => 0);
    const drawn = Array.from({ length: lists }, () => draw(scores, random));
    const seen = drawn.map((list) => {
      const v = scores.map(() => 0);
      list.forEach((i, j) => { v[i] = bias[j]; mean[i] += bias[j] / lists; });
      return v;
    });
    const pull = pullOf(query, lam, mean), usual = dot(pull, mean), slope = scores.map(() => 0);
    drawn.forEach((list, s) => {
      const lead = (dot(pull, seen[s]) - usual) / lists;
      scoreFunction(list, scores).forEach((g, i) => { slope[i] += lead * g; });
    });
    return slope;
  }

  /** A training that can be halted: `advance(until)` goes on for as long as `until()` is false, `path`
      has the two weights after each of the first `step` queries, one after the other, and `done` says
      whether all were met. Adam, one query at a time; `lists` 0 takes the exact gradient. */
  function trainer(queries, orders, { lam, lr = 0.1, decay = 0.5, lists = 0, random = Math.random, start = [0, 0] }) {
    const turns = orders.flat(), perEpoch = orders[0].length, path = new Float64Array(2 * turns.length + 2);
    const course = courseFor(queries[0].merit), pull = new Float64Array(queries[0].merit.length);
    let a = start[0], b = start[1], firstA = 0, firstB = 0, secondA = 0, secondB = 0;
    const made = { path, step: 0, done: false, advance };
    path.set(start);

    function slopeAt(query) {
      if (lists) return sampledSlope(query, scoresOf(query, [a, b]), lam, lists, random);
      const { scores, exposures, slope } = course;
      for (let i = 0; i < scores.length; i++) scores[i] = a * query.x1[i] + b * query.x2[i];
      course.run();
      course.pullBack(pullOf(query, lam, exposures, pull));
      return slope;
    }
    function advance(until = () => false) {
      while (made.step < turns.length) {
        const query = queries[turns[made.step]], slope = slopeAt(query);
        const rate = lr * decay ** Math.floor(made.step / perEpoch);
        made.step++;
        const up = dot(slope, query.x1), over = dot(slope, query.x2);
        const fresh = 1 - 0.9 ** made.step, wide = 1 - 0.999 ** made.step;
        firstA = 0.9 * firstA + 0.1 * up;
        firstB = 0.9 * firstB + 0.1 * over;
        secondA = 0.999 * secondA + 0.001 * up * up;
        secondB = 0.999 * secondB + 0.001 * over * over;
        a += (rate * firstA) / fresh / (Math.sqrt(secondA / wide) + 1e-8);
        b += (rate * firstB) / fresh / (Math.sqrt(secondB / wide) + 1e-8);
        path[2 * made.step] = a;
        path[2 * made.step + 1] = b;
        if (until()) break;
      }
      made.done = made.step === turns.length;
      return made.done;
    }
    return made;
  }

  /** The whole path of a training, one pair of weights after each query. */
  function train(queries, orders, options) {
    const made = trainer(queries, orders, options);
    made.advance();
    return Array.from({ length: made.step + 1 }, (_, k) => [made.path[2 * k], made.path[2 * k + 1]]);
  }

  /** Mean NDCG and D_group over all queries. */
  function judge(queries, [a, b]) {
    const { scores, exposures, run } = courseFor(queries[0].merit);
    let useful = 0, unfair = 0;
    for (const query of queries) {
      for (let i = 0; i < scores.length; i++) scores[i] = a * query.x1[i] + b * query.x2[i];
      run();
      useful += dot(query.worth, exposures);
      unfair += Math.max(0, dot(query.sides, exposures));
    }
    return { ndcg: useful / queries.length, dGroup: unfair / queries.length };
  }

  Object.assign(root.fairpg, { unpack, scoresOf, scoreFunction, pullOf, trainer, train, judge });
})(globalThis);
