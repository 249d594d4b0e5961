/* Explorable C: train Fair-PG-Rank on the paper's synthetic queries, in the page. */
fairpg.mount("explore-train", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const data = fairpg.trainData, queries = fairpg.unpack(data), { low, high, points } = data.map;
  const SIDE = 300, PRICES = [0, 1, 2, 3, 5, 8, 10, 12, 15, 20, 25, 40];
  const numbers = (text) => new Uint16Array(Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer);
  const layer = (name, k) => Float64Array.from(numbers(data.map[name]), (u) => (u / 65535) * data.map.scales[k]);
  const surface = { ndcg: layer("ndcg", 0), d: layer("dGroup", 1) };
  const sub = (word) => h("i", {}, "D", h("sub", {}, word));
  // The query whose people are shown: the first in which both groups have at least three.
  const shown = queries.find((q) => [0, 1].every((g) => q.groups.filter((x) => x === g).length >= 3));
  const people = shown.merit.map((_, i) => i).sort((i, j) => shown.merit[j] - shown.merit[i]);
  let lam = 0, weights = [0, 0], kind = "d", paths = [], runs = [], frame = 0;

  // The map: a canvas for the colours, and over it an SVG for paths and the point.
  const canvas = h("canvas", { width: points, height: points, "aria-hidden": "true" });
  const trails = h("g", { class: "xp-trails" }), ends = h("g", { class: "xp-ends" });
  const dot = h("div", {
    class: "xp-dot", role: "slider", tabindex: 0, "aria-label": "weights of the two features",
    "aria-valuemin": low, "aria-valuemax": high, onkeydown: (e) => key(e),
  });
  const place = (w) => (SIDE * (w - low)) / (high - low);
  const at = ([a, b]) => `${place(a).toFixed(1)},${(SIDE - place(b)).toFixed(1)}`;
  const axis = h("g", { class: "xp-axes" },
    h("line", { x1: place(0), x2: place(0), y1: 0, y2: SIDE }),
    h("line", { x1: 0, x2: SIDE, y1: SIDE - place(0), y2: SIDE - place(0) }));
  const stage = h("div", { class: "xp-stage xp-map", onpointerdown: (e) => grab(e) }, canvas,
    h("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" }, axis, trails, ends), dot);
  const least = h("span", {}), most = h("span", {});
  const scaleBar = h("div", { class: "xp-scale" }, least, h("i", {}), most);
  const kinds = { d: sub("group"), ndcg: "NDCG", objective: "what the price wants" };
  const kindButtons = Object.entries(kinds).map(([name, label]) => button(label, () => set({ map: name })));

  // The chart: every training so far, and the point that the reader holds.
  const CHART = { left: 44, right: 310, top: 10, bottom: 160, d: 0.012, u: [0.82, 0.98] };
  const cx = (d) => CHART.left + ((CHART.right - CHART.left) * Math.min(d, CHART.d)) / CHART.d;
  const cy = (u) => CHART.bottom - ((CHART.bottom - CHART.top) * (Math.max(u, CHART.u[0]) - CHART.u[0])) / (CHART.u[1] - CHART.u[0]);
  const dots = h("g", {}), curve = h("polyline", { class: "xp-frontier" });
  const held = h("circle", { class: "xp-spot", r: 6 });
  const limit = h("line", { class: "xp-tangent", y1: CHART.top, y2: CHART.bottom });
  const ticks = [0, 0.004, 0.008, 0.012].map((d) =>
    h("text", { x: cx(d), y: CHART.bottom + 17, "text-anchor": d === CHART.d ? "end" : "middle" }, short(d)));
  const levels = [0.85, 0.9, 0.95].map((u) =>
    h("text", { x: CHART.left - 6, y: cy(u) + 4, "text-anchor": "end" }, short(u, 2)));
  const chart = h("svg", { class: "xp-chart", viewBox: "0 0 320 200", "aria-hidden": "true" },
    h("path", { class: "xp-axes", d: `M${CHART.left} ${CHART.top}V${CHART.bottom}H${CHART.right}` }),
    ...ticks, ...levels, h("text", { x: CHART.right, y: 196, "text-anchor": "end" }, "D group, lower is fairer"),
    h("text", { x: CHART.left + 6, y: CHART.top + 8 }, "NDCG"), limit, curve, dots, held);

  const price = h("input", { type: "range", id: "xp-price", min: 0, max: PRICES.length - 1, step: 0.1, value: 0, oninput: () => turn() });
  const priceOut = h("output", { for: "xp-price" });
  const budget = h("input", { type: "range", id: "xp-budget", min: 0.002, max: 0.009, step: 0.0005, value: 0.005, onchange: () => keep(+budget.value), oninput: () => wish(+budget.value) });
  const budgetOut = h("output", { for: "xp-budget" });
  const headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
  const go = button("Train", () => train(true)), ten = button("Ten times with ten lists", () => scatter());
  const columns = people.map((i) => {
    const got = h("div", { class: "xp-bar" }), share = h("div", { class: "xp-share" });
    return { i, got, share, box: h("div", { class: `xp-col xp-g${shown.groups[i]}` }, h("div", { class: "xp-track" }, got, share)) };
  });
  const voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  box.append(headline,
    h("div", { class: "xp-heat" }, h("label", { for: "xp-price" }, "price ", h("i", {}, "λ"), " = ", priceOut), price),
    h("div", { class: "xp-row" }, go, ten, button("Clear", () => clear(), { class: "xp-quiet" })),
    h("div", { class: "xp-two" },
      h("div", {}, h("div", { class: "xp-name" }, h("b", {}, "Map"), " tap or drag: to the right feature 1 weighs more, upwards feature 2"),
        stage, scaleBar, h("div", { class: "xp-row", role: "group", "aria-label": "What the map shows" }, ...kindButtons)),
      h("div", {}, h("div", { class: "xp-name" }, h("b", {}, "Trade-off"), " of the trainings so far"), chart,
        h("div", { class: "xp-name" }, h("b", {}, "One query"), h("span", {}, "its exposure, best document first; striped: group 1, whose feature 2 is hidden"),
          h("span", {}, h("i", { class: "xp-share" }), "in proportion to merit")),
        h("div", { class: "xp-cols xp-small" }, ...columns.map((c) => c.box)))),
    h("div", { class: "xp-heat" }, h("label", { for: "xp-budget" }, "budget for ", sub("group"), ": ", budgetOut), budget),
    remark, voice);

  // Colours: the same in both themes, light is little.
  const RAMP = [[246, 243, 235], [214, 190, 205], [158, 118, 172], [88, 64, 132], [34, 24, 70]];
  function colour(x) {
    const place = Math.min(0.9999, Math.max(0, x)) * (RAMP.length - 1), k = Math.floor(place), part = place - k;
    return RAMP[k].map((c, j) => c + part * (RAMP[k + 1][j] - c));
  }
  function paint() {
    const values = kind === "objective" ? surface.ndcg.map((u, k) => u - lam * surface.d[k]) : surface[kind];
    const top = values.reduce((a, b) => Math.max(a, b), -Infinity);
    const floor = kind === "objective" ? top - 0.12 : values.reduce((a, b) => Math.min(a, b), Infinity);
    const image = new ImageData(points, points);
    values.forEach((value, k) => {
      const row = points - 1 - Math.floor(k / points), to = 4 * (row * points + (k % points));
      colour((value - floor) / (top - floor)).forEach((c, j) => { image.data[to + j] = c; });
      image.data[to + 3] = 255;
    });
    canvas.getContext("2d").putImageData(image, 0, 0);
    const digits = kind === "d" ? 3 : 2;
    least.textContent = (kind === "objective" ? "≤ " : "") + short(floor, digits);
    most.textContent = short(top, digits);
    kindButtons.forEach((b, k) => b.setAttribute("aria-pressed", Object.keys(kinds)[k] === kind));
  }

  function hold(now, words) {
    weights = now.map((w) => Math.min(high, Math.max(low, w)));
    const { ndcg, dGroup } = fairpg.judge(queries, weights);
    dot.style.left = `${(100 * place(weights[0])) / SIDE}%`;
    dot.style.top = `${100 - (100 * place(weights[1])) / SIDE}%`;
    dot.setAttribute("aria-valuenow", weights[0].toFixed(2));
    const said = `weights ${short(weights[0], 2)} and ${short(weights[1], 2)}, NDCG ${short(ndcg)}, D group ${short(dGroup, 4)}`;
    dot.setAttribute("aria-valuetext", said);
    held.setAttribute("cx", cx(dGroup));
    held.setAttribute("cy", cy(ndcg));
    Object.assign(box.dataset, { ndcg, dGroup, first: weights[0], second: weights[1], lam });
    headline.replaceChildren("Weights ", h("b", {}, `${short(weights[0], 1)} and ${short(weights[1], 1)}`), ": NDCG ",
      h("b", {}, short(ndcg)), ", ", sub("group"), " ", h("b", {}, short(dGroup, 4)), ".");
    const found = fairpg.exposure(fairpg.scoresOf(shown, weights));
    const owed = shown.merit.reduce((a, b) => a + b), total = found.reduce((a, b) => a + b);
    columns.forEach(({ i, got, share }) => {
      got.style.height = `${100 * found[i]}%`;
      share.style.bottom = `${Math.min(100, (100 * total * shown.merit[i]) / owed)}%`;
    });
    if (words) remark.textContent = words;
    say(said);
    return { ndcg, dGroup };
  }

  function draw() {
    trails.replaceChildren(...paths.flatMap(({ path, sampled }) => {
      const line = path.filter((_, k) => k % 5 === 0 || k === path.length - 1).map(at).join(" ");
      return [h("polyline", { points: line, class: "xp-halo" }), h("polyline", { points: line, class: sampled ? "xp-trail xp-noisy" : "xp-trail" })];
    }));
    ends.replaceChildren(...runs.map(({ weights: w }) => h("circle", { cx: at(w).split(",")[0], cy: at(w).split(",")[1], r: 3.5 })));
    const sorted = runs.filter((r) => !r.sampled).sort((a, b) => a.dGroup - b.dGroup);
    curve.setAttribute("points", sorted.map((r) => `${cx(r.dGroup).toFixed(1)},${cy(r.ndcg).toFixed(1)}`).join(" "));
    dots.replaceChildren(...runs.map((r) => h("circle", { class: r.sampled ? "xp-noisy" : "xp-run", cx: cx(r.dGroup), cy: cy(r.ndcg), r: 4 })));
  }
  const remember = (run) => {
    runs = [...runs.filter((r) => r.sampled || run.sampled || r.lam !== run.lam), run];
  };

  /** Trains at the present price; `slowly` shows the way. */
  function train(slowly) {
    cancelAnimationFrame(frame);
    const path = fairpg.train(queries, data.orders, { lam }), end = path[path.length - 1];
    const arrive = () => {
      paths = [{ path }];
      const result = hold(end, describe(end));
      remember({ lam, weights: end, ...result });
      draw();
    };
    if (!slowly || fairpg.still()) { arrive(); return; }
    let step = 0;
    const walk = () => {
      step = Math.min(path.length, step + 12);
      paths = [{ path: path.slice(0, step) }];
      hold(path[step - 1], `After ${step - 1} of ${path.length - 1} queries.`);
      draw();
      frame = step < path.length ? requestAnimationFrame(walk) : 0;
      if (!frame) arrive();
    };
    walk();
  }
  const describe = ([a, b]) => `Trained at λ = ${short(lam, lam % 1 ? 1 : 0)}: feature 2 counts ${short(b / a, 2)} of feature 1, ` +
    `and the weights have length ${short(Math.hypot(a, b), 1)}. The shorter they are, the more is left to chance.`;

  /** Ten trainings at once by the paper's estimator. */
  function scatter() {
    cancelAnimationFrame(frame);
    const noisy = Array.from({ length: 10 }, () => fairpg.train(queries, data.orders, { lam, lists: 10 }));
    paths = noisy.map((path) => ({ path, sampled: true }));
    runs = runs.filter((r) => !r.sampled);
    for (const path of noisy) {
      const end = path[path.length - 1];
      remember({ lam, sampled: true, weights: end, ...fairpg.judge(queries, end) });
    }
    const found = runs.filter((r) => r.sampled).map((r) => r.dGroup);
    hold(noisy[0][noisy[0].length - 1], `Ten trainings with ten drawn lists per query end between D_group ` +
      `${short(Math.min(...found), 4)} and ${short(Math.max(...found), 4)}: the same price, other draws.`);
    draw();
  }
  function clear() {
    cancelAnimationFrame(frame);
    paths = [];
    runs = [];
    hold([0, 0], "With both weights 0 every list is as likely as every other.");
    draw();
  }

  // The price: stops and what is between them.
  const priceAt = (place) => {
    const k = Math.min(PRICES.length - 2, Math.floor(place));
    return PRICES[k] + (place - k) * (PRICES[k + 1] - PRICES[k]);
  };
  const placeOf = (value) => {
    const k = Math.max(0, Math.min(PRICES.length - 2, PRICES.findIndex((p) => p > value) - 1));
    return value >= 40 ? PRICES.length - 1 : k + (value - PRICES[k]) / (PRICES[k + 1] - PRICES[k]);
  };
  function showPrice(value) {
    lam = value;
    priceOut.textContent = short(lam, lam % 1 ? 1 : 0);
    price.value = placeOf(lam);
    price.setAttribute("aria-valuetext", priceOut.textContent);
    if (kind === "objective") paint();
  }
  function turn() {
    showPrice(Math.round(10 * priceAt(+price.value)) / 10);
    train(false);
  }

  // The budget: bisection on the price, one training for each picture.
  function wish(delta) {
    budgetOut.textContent = short(delta, 4);
    [1, 2].forEach((k) => limit.setAttribute(`x${k}`, cx(delta)));
  }
  function keep(delta) {
    cancelAnimationFrame(frame);
    wish(delta);
    let [below, above, tries] = [0, 40, 0];
    const once = () => {
      const middle = tries ? (below + above) / 2 : 0;
      const path = fairpg.train(queries, data.orders, { lam: middle }), end = path[path.length - 1];
      tries++;
      showPrice(middle);
      paths = [{ path }];
      const { ndcg, dGroup } = hold(end);
      remember({ lam: middle, weights: end, ndcg, dGroup });
      if (dGroup <= delta) above = middle; else below = middle;
      draw();
      const done = above - below < 0.02 || above === 0;
      remark.textContent = `${done ? "Found" : "Searching"}: price ${short(done ? above : middle, 2)} after ${tries} trainings; ` +
        `D_group ${short(dGroup, 4)} against a budget of ${short(delta, 4)}.`;
      frame = done ? 0 : requestAnimationFrame(once);
      Object.assign(box.dataset, { budget: delta, found: done ? above : "" });
    };
    once();
  }

  // The reader's hand on the map.
  function grab(e) {
    if (e.button || (e.pointerType !== "mouse" && e.type !== "pointerdown")) return;
    e.preventDefault();
    cancelAnimationFrame(frame);
    dot.focus({ preventScroll: true });
    stage.setPointerCapture(e.pointerId);
    const move = (f) => {
      const { left, top, width } = stage.getBoundingClientRect();
      const to = (x) => low + ((high - low) * x) / width;
      hold([to(f.clientX - left), to(width - (f.clientY - top))],
        "Direction is what the policy listens to, length is how sure it is.");
    };
    const drop = () => {
      stage.removeEventListener("pointermove", move);
      ["pointerup", "pointercancel"].forEach((name) => stage.removeEventListener(name, drop));
    };
    stage.addEventListener("pointermove", move);
    ["pointerup", "pointercancel"].forEach((name) => stage.addEventListener(name, drop));
    move(e);
  }
  function key(e) {
    const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
    if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    hold(weights.map((w, k) => w + 0.1 * by[k]), "Direction is what the policy listens to, length is how sure it is.");
  }

  /** What a word in the text may ask for. */
  function set({ lam: value, map, train: now, scatter: many, budget: delta, weights: place }) {
    if (map) { kind = map; paint(); }
    if (value != null) showPrice(+value);
    if (delta != null) { budget.value = delta; keep(+delta); }
    if (place) hold(place.split(" ").map(Number), "Direction is what the policy listens to, length is how sure it is.");
    if (now != null) train(true);
    if (many != null) scatter();
  }
  fairpg.answer("train", set);
  paint();
  showPrice(0);
  wish(0.005);
  clear();
});
