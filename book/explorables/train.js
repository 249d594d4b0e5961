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
  const BUDGET = 14; // ms of training for each picture
  let lam = 0, weights = [0, 0], kind = "d", runs = [], job = null;

  // The map: a canvas for the colours, and over it an SVG for paths and the point.
  const canvas = h("canvas", { width: points, height: points, "aria-hidden": "true" });
  const trails = h("g", { class: "xp-trails" }), ends = h("g", { class: "xp-ends" }), tops = h("g", { class: "xp-tops" });
  const dot = h("div", {
    class: "xp-dot", role: "slider", tabindex: 0, "aria-label": "weights of the two features",
    "aria-valuemin": low, "aria-valuemax": high, onkeydown: (e) => key(e),
  });
  const place = (w) => (SIDE * (w - low)) / (high - low);
  const at = (a, b) => `${place(a).toFixed(1)},${(SIDE - place(b)).toFixed(1)}`;
  const axis = h("g", { class: "xp-axes" },
    h("line", { x1: place(0), x2: place(0), y1: 0, y2: SIDE }),
    h("line", { x1: 0, x2: SIDE, y1: SIDE - place(0), y2: SIDE - place(0) }));
  const stage = h("div", { class: "xp-stage xp-map", onpointerdown: (e) => grab(e) }, canvas,
    h("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" }, axis, trails, ends, tops), dot);
  const marks = [0, 1, 2].map(() => h("span", {}));
  const scaleBar = h("div", { class: "xp-scale" }, h("i", {}), h("div", {}, ...marks));
  const kinds = { d: sub("group"), ndcg: "NDCG", objective: h("span", {}, h("i", {}, "U"), " − ", h("i", {}, "λD")) };
  const kindButtons = Object.entries(kinds).map(([name, label]) => button(label, () => look(name)));

  // The chart: every training so far, and the point that the reader holds.
  const CHART = { left: 44, right: 310, top: 10, bottom: 160, d: 0.012, u: [0.82, 0.98] };
  const cx = (d) => CHART.left + ((CHART.right - CHART.left) * Math.min(d, CHART.d)) / CHART.d;
  const cy = (u) => CHART.bottom - ((CHART.bottom - CHART.top) * (Math.max(u, CHART.u[0]) - CHART.u[0])) / (CHART.u[1] - CHART.u[0]);
  const dots = h("g", {}), curve = h("polyline", { class: "xp-frontier" });
  const held = h("circle", { class: "xp-spot", r: 6 });
  const limit = h("line", { class: "xp-tangent", y1: CHART.top, y2: CHART.bottom });
  const grip = h("g", { class: "xp-grip" }, h("circle", { r: 8 }), h("path", { d: "M-2 -3.5l-3 3.5l3 3.5M2 -3.5l3 3.5l-3 3.5" }));
  const ticks = [0, 0.004, 0.008, 0.012].map((d) =>
    h("text", { x: cx(d), y: CHART.bottom + 21, "text-anchor": d === CHART.d ? "end" : "middle" }, short(d)));
  const levels = [0.85, 0.9, 0.95].map((u) =>
    h("text", { x: CHART.left - 6, y: cy(u) + 4, "text-anchor": "end" }, short(u, 2)));
  const chart = h("svg", { class: "xp-chart xp-budget", viewBox: "0 0 320 206", "aria-hidden": "true", onpointerdown: (e) => pullLimit(e) },
    h("path", { class: "xp-axes", d: `M${CHART.left} ${CHART.top}V${CHART.bottom}H${CHART.right}` }),
    ...ticks, ...levels, h("text", { x: CHART.right, y: 197, "text-anchor": "end" }, h("tspan", { class: "xp-italic" }, "D"), h("tspan", { dy: 4, class: "xp-lower" }, "group"), h("tspan", { dy: -4 }, ", lower is fairer")),
    h("text", { x: CHART.left + 6, y: CHART.top + 8 }, "NDCG"), limit, grip, curve, dots, held);

  const price = h("input", { type: "range", id: "xp-price", min: 0, max: PRICES.length - 1, step: 0.1, value: 0, oninput: () => turn(Math.round(10 * priceAt(+price.value)) / 10) });
  const priceOut = h("output", { for: "xp-price" });
  const budget = h("input", { type: "range", id: "xp-budget", min: 0.002, max: 0.009, step: 0.0005, value: 0.005, oninput: () => keep(+budget.value) });
  const budgetOut = h("output", { for: "xp-budget" });
  const [pair, useful, unfair] = [0, 1, 2].map(() => h("b", {}));
  const headline = h("p", { class: "xp-headline" }, "Weights ", pair, ": NDCG ", useful, ", ", sub("group"), " ", unfair, "."), remark = h("p", { class: "xp-remark" });
  const go = button("Train", () => train()), ten = button("Ten times with ten lists", () => scatter());
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
        stage, scaleBar, fairpg.toolbar("What the map shows", kindButtons)),
      h("div", {}, h("div", { class: "xp-name" }, h("b", {}, "Trade-off"), " of the trainings so far"), chart,
        h("div", { class: "xp-heat xp-under" }, h("label", { for: "xp-budget" }, "budget for ", sub("group"), ": ", budgetOut), budget),
        h("div", { class: "xp-name" }, h("b", {}, "One query"), h("span", {}, "its exposure, best document first; striped: group 1, whose feature 2 is hidden"),
          h("span", {}, h("i", { class: "xp-share" }), "in proportion to merit")),
        h("div", { class: "xp-cols xp-small" }, ...columns.map((c) => c.box)))),
    remark, voice);

  // Colours: the same in both themes, light is little.
  const RAMP = [[246, 243, 235], [214, 190, 205], [158, 118, 172], [88, 64, 132], [34, 24, 70]];
  function colour(x) {
    const place = Math.min(0.9999, Math.max(0, x)) * (RAMP.length - 1), k = Math.floor(place), part = place - k;
    return RAMP[k].map((c, j) => c + part * (RAMP[k + 1][j] - c));
  }
  const LEVELS = 256, PALETTE = Array.from({ length: LEVELS }, (_, k) => [...colour(k / (LEVELS - 1)), 255]);
  const image = new ImageData(points, points), values = new Float64Array(points * points);
  /** The colours of the map. Hills of the objective are flat: near its top a little is a lot. */
  function paint() {
    const wants = kind === "objective", DEPTH = 0.12;
    let top = -Infinity, floor = Infinity;
    for (let k = 0; k < values.length; k++) {
      const value = wants ? surface.ndcg[k] - lam * surface.d[k] : surface[kind][k];
      values[k] = value;
      top = Math.max(top, value);
      floor = Math.min(floor, value);
    }
    if (wants) floor = top - DEPTH;
    for (let k = 0; k < values.length; k++) {
      const part = Math.max(0, (values[k] - floor) / (top - floor)), row = points - 1 - Math.floor(k / points);
      image.data.set(PALETTE[Math.round((LEVELS - 1) * (wants ? 1 - Math.cbrt(1 - part) : part))], 4 * (row * points + (k % points)));
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    const digits = kind === "d" ? 3 : 2, middle = wants ? top - DEPTH / 8 : (floor + top) / 2;
    [floor, middle, top].forEach((value, k) => { marks[k].textContent = (wants && !k ? "≤ " : "") + short(value, digits); });
    kindButtons.forEach((b, k) => b.setAttribute("aria-pressed", Object.keys(kinds)[k] === kind));
    flag(wants ? hills() : []);
  }
  const repaint = fairpg.once(paint);
  function look(name) {
    kind = name;
    paint();
    const [best, other] = name === "objective" ? hills() : [], where = (hill) => hill.weights.map((w) => short(w, 1)).join(" and ");
    if (other) remark.textContent = `Two hills: ${short(best.value, 4)} at ${where(best)}, and ${short(other.value, 4)} at ${where(other)}. Of this map the objective wants the higher one.`;
    else if (best) remark.textContent = `One hill, with its top at ${where(best)}: that is what the objective wants of the weights on this map.`;
  }

  /** The highest place of the map, and the highest hilltop at least two units from it, if there is one. */
  function hills() {
    const step = (high - low) / (points - 1), found = [];
    for (let k = 0; k < values.length; k++) {
      const row = Math.floor(k / points), column = k % points;
      let isTop = true;
      for (let i = Math.max(0, row - 1); i <= Math.min(points - 1, row + 1); i++) {
        for (let j = Math.max(0, column - 1); j <= Math.min(points - 1, column + 1); j++) {
          if (values[i * points + j] > values[k]) isTop = false;
        }
      }
      if (isTop) found.push({ weights: [low + step * column, low + step * row], value: values[k] });
    }
    found.sort((p, q) => q.value - p.value);
    const [best] = found, other = found.find(({ weights: [a, b] }) => Math.hypot(a - best.weights[0], b - best.weights[1]) > 2);
    return other ? [best, other] : [best];
  }
  function flag(found) {
    box.dataset.hills = JSON.stringify(found);
    tops.replaceChildren(...found.flatMap(({ weights: [a, b], value }, k) => {
      const [x, y] = [place(a), SIDE - place(b)], left = x > SIDE - 70;
      return [h("path", { class: k ? "xp-second" : "", d: `M${x} ${y - 7}l7 12h-14z` }),
        h("text", { x: left ? x - 12 : x + 12, y: y + 16, "text-anchor": left ? "end" : "start" }, short(value, 4))];
    }));
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
    pair.textContent = weights.map((w) => (w ? short(w, 1) : "0")).join(" and ");
    useful.textContent = short(ndcg);
    unfair.textContent = short(dGroup, 4);
    const found = fairpg.exposure(fairpg.scoresOf(shown, weights));
    const owed = shown.merit.reduce((a, b) => a + b), total = found.reduce((a, b) => a + b);
    columns.forEach(({ i, got, share }) => {
      got.style.clipPath = `inset(${100 * (1 - found[i])}% 0 0)`;
      share.style.bottom = `${Math.min(100, (100 * total * shown.merit[i]) / owed)}%`;
    });
    if (words) remark.textContent = words;
    say(said);
    return { ndcg, dGroup };
  }
  const endOf = ({ path, step }) => [path[2 * step], path[2 * step + 1]];

  /** The paths of these trainings, as far as they are. */
  function drawPaths(trainings) {
    while (trails.childElementCount < 2 * trainings.length) trails.append(h("polyline", { class: "xp-halo" }), h("polyline", {}));
    [...trails.children].forEach((line, k) => {
      const made = trainings[k >> 1];
      let text = "";
      for (let s = 0; made && s <= made.step; s += s + 5 > made.step && s < made.step ? made.step - s : 5) {
        text += `${at(made.path[2 * s], made.path[2 * s + 1])} `;
      }
      line.setAttribute("points", text);
      if (k % 2) line.setAttribute("class", trainings.length > 1 ? "xp-trail xp-noisy" : "xp-trail");
    });
  }
  /** Keeps a training's end: a point on the map and one of the trade-off, one for each price. */
  function remember(run) {
    runs = runs.filter((r) => {
      const stays = r.sampled || run.sampled || r.lam !== run.lam;
      if (!stays) { r.end.remove(); r.dot.remove(); }
      return stays;
    });
    const [a, b] = run.weights, kept = { ...run };
    kept.end = h("circle", { cx: place(a), cy: SIDE - place(b), r: 3.5 });
    kept.dot = h("circle", { class: run.sampled ? "xp-noisy" : "xp-run", cx: cx(run.dGroup), cy: cy(run.ndcg), r: 4 });
    ends.append(kept.end);
    dots.append(kept.dot);
    runs.push(kept);
    const sorted = runs.filter((r) => !r.sampled).sort((p, q) => p.dGroup - q.dGroup);
    curve.setAttribute("points", sorted.map((r) => `${cx(r.dGroup).toFixed(1)},${cy(r.ndcg).toFixed(1)}`).join(" "));
  }
  function forget(isOld) {
    runs.filter(isOld).forEach((r) => { r.end.remove(); r.dot.remove(); });
    runs = runs.filter((r) => !isOld(r));
  }

  // Whatever trains does so in parts, one for each picture: `job(late)` is called until it says true.
  function start(work) {
    const isRunning = job !== null;
    job = work;
    box.dataset.busy = "1";
    if (!isRunning) requestAnimationFrame(tick);
  }
  function stop() {
    job = null;
    delete box.dataset.busy;
  }
  function tick() {
    if (!job) return;
    const end = performance.now() + BUDGET, now = job;
    if (now(() => performance.now() > end) && job === now) stop();
    if (job) requestAnimationFrame(tick);
  }
  const trainer = (price, more) => fairpg.trainer(queries, data.orders, { lam: price, ...more });
  function arrive(made, price, words) {
    drawPaths([made]);
    const result = hold(endOf(made), words);
    remember({ lam: price, weights: endOf(made), ...result });
    return result;
  }

  /** Trains at the present price and shows the way. */
  function train() {
    if (fairpg.still()) { turn(lam); return; }
    const made = trainer(lam), price = lam;
    start((late) => {
      const target = made.step + 12;
      made.advance(() => made.step >= target || late());
      if (made.done) { arrive(made, price, describe(endOf(made))); return true; }
      drawPaths([made]);
      hold(endOf(made), `After ${made.step} of ${data.orders.flat().length} queries.`);
      return false;
    });
  }
  const describe = ([a, b]) => `Trained at λ = ${short(lam, lam % 1 ? 1 : 0)}: feature 2 counts ${short(b / a, 2)} of feature 1, ` +
    `and the weights have length ${short(Math.hypot(a, b), 1)}. The shorter they are, the more is left to chance.`;

  /** Trains at this price at once. While the hand goes on, a training that has begun is finished, and
      the next is for where the hand is then. */
  let turning = null;
  function turn(price) {
    showPrice(price);
    if (job && job === turning) return;
    let made = null, at = 0;
    turning = (late) => {
      if (!made) { at = lam; made = trainer(at); }
      if (!made.advance(late)) { if (!fairpg.still()) drawPaths([made]); return false; }
      arrive(made, at, describe(endOf(made)));
      made = null;
      return at === lam;
    };
    start(turning);
  }

  /** Ten trainings at once by the paper's estimator. */
  function scatter() {
    const made = Array.from({ length: 10 }, () => trainer(lam, { lists: 10 })), price = lam;
    let judged = 0;
    forget((r) => r.sampled);
    start((late) => {
      for (let target = made[0].step; made.some((t) => !t.done) && !late();) {
        target += 5;
        made.forEach((t) => t.advance(() => t.step >= target));
      }
      if (!fairpg.still()) drawPaths(made);
      while (judged < 10 && made.every((t) => t.done) && !late()) {
        const end = endOf(made[judged++]);
        remember({ lam: price, sampled: true, weights: end, ...fairpg.judge(queries, end) });
      }
      if (judged < 10) { remark.textContent = `After ${made[0].step} of ${data.orders.flat().length} queries, ten times.`; return false; }
      drawPaths(made);
      const found = runs.filter((r) => r.sampled).map((r) => r.dGroup);
      hold(endOf(made[0]), `Ten trainings with ten drawn lists per query end with a disparity between ` +
        `${short(Math.min(...found), 4)} and ${short(Math.max(...found), 4)}: the same price, other draws.`);
      return true;
    });
  }
  function clear() {
    stop();
    drawPaths([]);
    forget(() => true);
    curve.setAttribute("points", "");
    hold([0, 0], "With both weights 0 every list is as likely as every other.");
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
    if (kind === "objective") repaint();
  }

  // The budget: bisection on the price, one training after the other.
  function wish(delta) {
    budgetOut.textContent = short(delta, 4);
    budget.value = delta;
    [1, 2].forEach((k) => limit.setAttribute(`x${k}`, cx(delta)));
    grip.setAttribute("transform", `translate(${cx(delta)} ${CHART.bottom})`);
  }
  const known = new Map(); // the same prices are tried for many budgets
  function keep(delta) {
    wish(delta);
    let [below, above, tries, middle, made] = [0, 40, 0, 0, null];
    box.dataset.found = "";
    start((late) => {
      if (!made) {
        middle = tries ? (below + above) / 2 : 0;
        made = known.get(middle) || trainer(middle);
        known.set(middle, made);
      }
      if (!made.advance(late)) return false;
      tries++;
      showPrice(middle);
      const { dGroup } = arrive(made, middle);
      made = null;
      if (dGroup <= delta) above = middle; else below = middle;
      const done = above - below < 0.02 || above === 0;
      remark.textContent = `${done ? "Found" : "Searching"}: price ${short(done ? above : middle, 2)} after ${tries} training${tries > 1 ? "s" : ""}; ` +
        `disparity ${short(dGroup, 4)} against a budget of ${short(delta, 4)}.`;
      Object.assign(box.dataset, { budget: delta, found: done ? above : "" });
      return done;
    });
  }
  /** The line of the chart can be dragged, too. */
  function pullLimit(e) {
    fairpg.follow(e, (f) => {
      const { left, width } = chart.getBoundingClientRect(), x = (320 * (f.clientX - left)) / width;
      const delta = (CHART.d * (x - CHART.left)) / (CHART.right - CHART.left);
      const kept = Math.min(+budget.max, Math.max(+budget.min, Math.round(delta / 0.0005) * 0.0005));
      if (kept !== +box.dataset.budget || !box.dataset.found) keep(kept);
    });
  }

  // The reader's hand on the map.
  let hand = [0, 0];
  const walk = fairpg.once(() => hold(hand, "Direction is what the policy listens to, length is how sure it is."));
  function grab(e) {
    dot.focus({ preventScroll: true });
    fairpg.follow(e, (f) => {
      const { left, top, width } = stage.getBoundingClientRect();
      const to = (x) => low + ((high - low) * x) / width;
      stop();
      hand = [to(f.clientX - left), to(width - (f.clientY - top))];
      walk();
    });
  }
  function key(e) {
    const by = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[e.key];
    if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    stop();
    hold(weights.map((w, k) => w + 0.1 * by[k]), "Direction is what the policy listens to, length is how sure it is.");
  }

  /** What a word in the text may ask for. */
  function set({ lam: value, map, train: now, scatter: many, budget: delta, weights: place }) {
    if (value != null) showPrice(+value);
    if (map) look(map);
    if (delta != null) keep(+delta);
    if (place) { stop(); hold(place.split(" ").map(Number), "Direction is what the policy listens to, length is how sure it is."); }
    if (now != null) train();
    if (many != null) scatter();
  }
  fairpg.answer("train", set);
  paint();
  showPrice(0);
  wish(0.005);
  clear();
  // The first training in a page is the slowest, while the browser learns the loops: it is run in idle moments.
  const first = trainer(10);
  fairpg.whenIdle(box, (late) => job !== null || first.advance(late));
});
