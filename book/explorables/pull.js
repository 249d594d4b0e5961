/* Explorable E: one list pulls on the scores. What REINFORCE adds up, and what makes it quiet. */
fairpg.mount("explore-pull", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const NAMES = "ABCDE".split(""), N = 5, BIAS = fairpg.positionBias(N), SCORES = [0.6, 0.3, 0, -0.2, -0.5];
  const MERIT = [1, 3, 0, 2, 0], WORTH = MERIT.map((m) => fairpg.gain(m) / fairpg.idealDcg(MERIT));
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const EXACT = fairpg.race(SCORES).gradient(WORTH), USUAL = dot(WORTH, fairpg.exposure(SCORES));
  const KINDS = {
    plain: ["the reward itself", "Every list pulls with its whole NDCG, good or bad: all pulls point the way of what was drawn."],
    baseline: ["minus a baseline", "Only what a list has above or below the policy’s mean pulls. The cloud shrinks, and its centre stays where it was."],
    togo: ["reward-to-go", "A choice is praised for what comes at its place and later, less what was to be expected there; what stood before is left out. The cloud shrinks again."],
    exact: ["exact", "Integrated instead of drawn: the cloud is a point."],
  };
  const SHOWN = [1, 3], SCALE = 90; // the cloud: how the pulls on B and D scatter
  let kind = "plain", cloud = [], last = null;

  const field = h("svg", { viewBox: "0 0 320 234", "aria-hidden": "true" });
  const bars = NAMES.map((name, i) => {
    const x = 20 + 60 * i, y = 110 - 60 * SCORES[i];
    const arrow = h("path", { class: "xp-arrow" });
    field.append(h("line", { class: "xp-lane", x1: x, x2: x + 44, y1: y, y2: y }), h("circle", { class: "xp-runner", cx: x + 22, cy: y, r: 8 }), arrow,
      h("text", { x: x + 22, y: 226, "text-anchor": "middle" }, `${name}: ${MERIT[i]}`));
    return { x: x + 22, y, arrow };
  });
  const points = h("g", { class: "xp-cloud" }), mean = h("circle", { class: "xp-centre", r: 6 }), exactMark = h("path", { class: "xp-exact" });
  const plane = h("svg", { class: "xp-plane", viewBox: "-110 -110 220 220", "aria-hidden": "true" },
    h("path", { class: "xp-axes", d: "M-105 0H105M0 -105V105" }), h("text", { x: 104, y: -6, "text-anchor": "end" }, "pull on B"),
    h("text", { x: 6, y: -94 }, "on D"), points, exactMark, mean);
  const headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" }), list = h("div", { class: "xp-list" });
  const kinds = Object.entries(KINDS).map(([name, [label]]) => button(label, () => choose(name)));
  const tally = h("span", { class: "xp-tally" }), voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  box.append(headline,
    fairpg.toolbar("How a list pulls", kinds), remark,
    h("div", { class: "xp-two" },
      h("div", {}, h("div", { class: "xp-name" }, h("b", {}, "One list"), " height: score; below: relevance; arrows: the list’s pull"), field, list),
      h("div", {}, h("div", { class: "xp-name" }, h("b", {}, "All pulls so far"), h("span", {}, "ring: their mean"), h("span", {}, "cross: the exact gradient")), plane)),
    h("div", { class: "xp-row" }, button("Draw a list", () => lots.draw(1)), button("Draw a hundred", () => lots.draw(100)),
      button("Clear", () => clear(), { class: "xp-quiet" }), tally), voice);

  /** The pull of one drawn list on the scores. */
  function pull(drawn) {
    if (kind === "exact") return EXACT;
    const gains = drawn.map((i, j) => WORTH[i] * BIAS[j]);
    if (kind !== "togo") {
      const reward = gains.reduce((a, b) => a + b) - (kind === "baseline" ? USUAL : 0);
      return fairpg.scoreFunction(drawn, SCORES).map((g) => reward * g);
    }
    // Each choice: its own slope times what is gained from its place on, less what is usual there.
    const weight = SCORES.map(Math.exp), slope = SCORES.map(() => 0);
    drawn.forEach((chosen, j) => {
      const left = drawn.slice(j), all = left.reduce((sum, i) => sum + weight[i], 0);
      const rest = gains.slice(j).reduce((a, b) => a + b) - expected(left, j);
      left.forEach((i) => { slope[i] += rest * ((i === chosen ? 1 : 0) - weight[i] / all); });
    });
    return slope;
  }
  /** What is still to be gained on average when these are left and j places are taken. */
  const known = new Map();
  function expected(left, j) {
    if (!left.length) return 0;
    const name = [...left].sort().join("");
    if (!known.has(name)) {
      const weight = left.map((i) => Math.exp(SCORES[i])), all = weight.reduce((a, b) => a + b);
      known.set(name, left.reduce((sum, i, k) =>
        sum + (weight[k] / all) * (WORTH[i] * BIAS[j] + expected(left.filter((x) => x !== i), j + 1)), 0));
    }
    return known.get(name);
  }
  const lots = fairpg.lottery(() => fairpg.draw(SCORES), (drawn) => {
    last = { drawn, pull: pull(drawn) };
    cloud.push(last);
  }, () => show());

  function show() {
    const arrows = kind === "exact" ? EXACT : last && last.pull;
    bars.forEach(({ x, y, arrow }, i) => {
      const by = arrows ? Math.max(-70, Math.min(70, -90 * arrows[i])) : 0, tip = by < 0 ? 6 : -6;
      arrow.setAttribute("d", Math.abs(by) > 1 ? `M${x} ${y}v${by.toFixed(1)}m-5 ${tip}l5 ${-tip}l5 ${tip}` : "");
    });
    const where = (g) => [SCALE * g[SHOWN[0]], -SCALE * g[SHOWN[1]]].map((v) => Math.max(-104, Math.min(104, v)));
    // The same lists stay when their pulls change, so that the cloud is seen to shrink.
    const seen = cloud.slice(-600);
    while (points.childElementCount < seen.length) points.append(h("circle", { r: 3 }));
    while (points.childElementCount > seen.length) points.lastChild.remove();
    seen.forEach((one, k) => {
      const [x, y] = where(one.pull);
      points.children[k].style.transform = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
    });
    const centre = SCORES.map((_, i) => (cloud.length ? cloud.reduce((sum, one) => sum + one.pull[i], 0) / cloud.length : 0));
    const [ex, ey] = where(EXACT), [mx, my] = where(kind === "exact" ? EXACT : centre);
    exactMark.setAttribute("d", `M${ex - 6} ${ey - 6}l12 12m0 -12l-12 12`);
    mean.style.display = cloud.length || kind === "exact" ? "" : "none";
    mean.setAttribute("cx", mx);
    mean.setAttribute("cy", my);
    const far = (g) => Math.hypot(...g.map((x, i) => x - EXACT[i])) / Math.hypot(...EXACT);
    const spread = cloud.length > 1 ? Math.sqrt(cloud.reduce((sum, one) => sum + far(one.pull) ** 2, 0) / cloud.length) : 0;
    Object.assign(box.dataset, { spread, drawn: cloud.length, mean: JSON.stringify(centre), last: JSON.stringify(last && last.pull) });
    list.replaceChildren(...(last ? last.drawn : []).map((i) => h("b", { class: "xp-chip xp-g0" }, NAMES[i])));
    tally.textContent = cloud.length ? `${cloud.length} drawn` : "";
    headline.textContent = kind === "exact" ? "The exact gradient: whatever is drawn, the pull is the same."
      : cloud.length > 1 ? `One list is off by ${short(100 * spread, 0)} % of the gradient’s length; the mean of ${cloud.length} is off by ${short(100 * far(centre), 0)} %.`
        : last ? `The list ${last.drawn.map((i) => NAMES[i]).join(" ")} has an NDCG of ${short(dot(WORTH, last.drawn.reduce((v, i, j) => { v[i] = BIAS[j]; return v; }, [])), 2)}.`
          : "Draw a list: where does it pull the scores?";
    remark.textContent = KINDS[kind][1];
    kinds.forEach((b, k) => b.setAttribute("aria-pressed", Object.keys(KINDS)[k] === kind));
    say(headline.textContent);
  }
  /** Other pulls of the same lists. */
  function choose(name) {
    kind = name;
    cloud.forEach((one) => { one.pull = pull(one.drawn); });
    show();
  }
  function clear() {
    lots.stop();
    cloud = [];
    last = null;
    show();
  }
  /** What a word may ask for: a way to pull, or lists more; with both, as many lists in all. */
  fairpg.answer("pull", ({ kind: name, draw: count }) => {
    if (name && +count < cloud.length) clear();
    if (name) choose(name);
    if (count != null) lots.draw(name ? +count - cloud.length : +count);
  });
  choose("plain");
});
