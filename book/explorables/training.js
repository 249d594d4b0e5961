/* Fair-PG-Rank in the page: what fairpg_lite.fit does with a linear scorer of two features, one query
   at a time, with the exact gradient or the paper's sampled one. Tested against the module. */
(function (root) {
  "use strict";
  const { race, exposure, draw, gain, idealDcg, positionBias, ndcg, byGroup, groupDisparity } = root.fairpg;

  /** Queries from packed numbers: for each document x1, x2 and its group; relevance is x1 + x2, cut
      at `clip`, and what group 1 shows as x2 is 0. */
  function unpack({ x, groups, documents, clip }) {
    const bytes = Uint8Array.from(atob(x), (c) => c.charCodeAt(0));
    const numbers = new Float64Array(bytes.buffer), queries = [];
    for (let start = 0; 2 * start < numbers.length; start += documents) {
      const rows = Array.from({ length: documents }, (_, i) => start + i);
      const label = rows.map((i) => +groups[i]);
      const merit = rows.map((i) => Math.min(clip, numbers[2 * i] + numbers[2 * i + 1]));
      queries.push({
        x1: rows.map((i) => numbers[2 * i]),
        x2: rows.map((i, k) => (label[k] ? 0 : numbers[2 * i + 1])),
        groups: label, merit, sides: sides(merit, label),
        worth: merit.map((m) => gain(m) / idealDcg(merit)),
      });
    }
    return queries;
  }

  /** What a unit of exposure adds to the lead of the group of higher merit, document by document;
      null where a group is absent. */
  function sides(merit, groups) {
    const both = byGroup(merit, merit, groups);
    if (both.length < 2) return null;
    const high = both[0].merit >= both[1].merit ? 0 : 1;
    return groups.map((g) => (g === high ? 1 : -1) / (both[g].size * both[g].merit));
  }

  const scoresOf = (query, [a, b]) => query.x1.map((x, i) => a * x + b * query.x2[i]);
  const dot = (u, v) => u.reduce((sum, x, i) => sum + x * v[i], 0);

  /** The slope of U - lam D in each document's exposure, where the exposures are `found`. */
  function pullOf(query, lam, found) {
    const unfair = query.sides && dot(query.sides, found) > 0;
    return query.worth.map((w, i) => (unfair ? w - lam * query.sides[i] : w));
  }

  /** The gradient in the scores, from the race. */
  function exactSlope(query, scores, lam) {
    const { exposures, gradient } = race(scores);
    return gradient(pullOf(query, lam, exposures));
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

  /** The same from a few drawn lists: REINFORCE, the mean reward as baseline. */
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

  /** The path of the two weights under Adam, one point after each query. `lists` 0 is exact. */
  function train(queries, orders, { lam, lr = 0.1, decay = 0.5, lists = 0, random = Math.random, start = [0, 0] }) {
    let weights = [...start], rate = lr, step = 0;
    const first = [0, 0], second = [0, 0], path = [weights];
    for (const order of orders) {
      for (const q of order) {
        const query = queries[q], scores = scoresOf(query, weights);
        const slope = lists ? sampledSlope(query, scores, lam, lists, random) : exactSlope(query, scores, lam);
        const uphill = [dot(slope, query.x1), dot(slope, query.x2)];
        step++;
        weights = weights.map((w, k) => {
          first[k] = 0.9 * first[k] + 0.1 * uphill[k];
          second[k] = 0.999 * second[k] + 0.001 * uphill[k] ** 2;
          const size = Math.sqrt(second[k] / (1 - 0.999 ** step)) + 1e-8;
          return w + (rate * first[k]) / (1 - 0.9 ** step) / size;
        });
        path.push(weights);
      }
      rate *= decay;
    }
    return path;
  }

  /** Mean NDCG and D_group over all queries. */
  function judge(queries, weights) {
    let useful = 0, unfair = 0;
    for (const query of queries) {
      const found = exposure(scoresOf(query, weights));
      useful += ndcg(found, query.merit) / queries.length;
      unfair += groupDisparity(found, query.merit, query.groups) / queries.length;
    }
    return { ndcg: useful, dGroup: unfair };
  }

  Object.assign(root.fairpg, { unpack, scoresOf, scoreFunction, pullOf, train, judge });
})(globalThis);
