/* Explorable B: all lotteries over lists of three documents, as points of a hexagon (chapters 2, 5).

   A lottery is drawn where its expected exposure is. Up is more for document 1, lower right more for
   document 2, lower left more for document 3; a corner is a list, named from its top. The picture
   is zoomed to the frontier, the best lotteries for all prices; a button shows the whole. */
fairpg.mount("explore-hexagon", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const BIAS = fairpg.positionBias(3), MEAN = (BIAS[0] + BIAS[1] + BIAS[2]) / 3;
  const GROUPS = [0, 0, 1], ROOT = Math.sqrt(3) / 2;
  const AXES = [[0, 1], [ROOT, -0.5], [-ROOT, -0.5]];
  const LISTS = ["123", "213", "231", "321", "312", "132"]; // clockwise from the top
  const CORNERS = LISTS.map((name) => [..."123"].map((d) => BIAS[name.indexOf(d)]));
  const WIDTH = 360, HEIGHT = 286, WHOLE = { x: 0, y: 17 / 262, scale: 262 };
  const PRESETS = [["1, .8, .6", [1, 0.8, 0.6]], ["1, .95, .9", [1, 0.95, 0.9]], ["1, .8, .4", [1, 0.8, 0.4]]];
  const STEPS = 100;

  // Exposures are triples with a fixed sum; the plane has two coordinates.
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const mix = (a, b, t) => a.map((x, i) => x + t * (b[i] - x));
  const flat = (v) => [0, 1].map((k) => AXES.reduce((sum, axis, i) => sum + v[i] * axis[k], 0));
  const lifted = (p) => AXES.map((axis) => MEAN + (2 / 3) * dot(axis, p));
  let view = WHOLE;
  const pixel = (v) => { const [x, y] = flat(v); return [WIDTH / 2 + view.scale * (x - view.x), HEIGHT / 2 - view.scale * (y - view.y)]; };
  const unpixel = (x, y) => lifted([view.x + (x - WIDTH / 2) / view.scale, view.y + (HEIGHT / 2 - y) / view.scale]);
  const points = (all) => all.map((v) => pixel(v).map((x) => x.toFixed(2)).join(",")).join(" ");

  /** The part of a polygon where the linear function f is at most 0. */
  function clip(polygon, f) {
    const kept = [];
    polygon.forEach((b, k) => {
      const a = polygon[(k + polygon.length - 1) % polygon.length], fa = f(a), fb = f(b);
      if ((fa > 1e-12 && fb < -1e-12) || (fa < -1e-12 && fb > 1e-12)) kept.push(mix(a, b, fa / (fa - fb)));
      if (fb <= 1e-12) kept.push(b);
    });
    return kept;
  }

  /** The nearest exposure that some lottery has. */
  function feasible(v) {
    const p = flat(v), ring = CORNERS.map(flat);
    let best = null, least = Infinity, outside = false;
    ring.forEach((b, k) => {
      const a = ring[(k + 5) % 6], d = [b[0] - a[0], b[1] - a[1]], e = [p[0] - a[0], p[1] - a[1]];
      if (d[0] * e[1] - d[1] * e[0] > 0) outside = true; // clockwise: inside is on the right
      const q = mix(a, b, Math.min(1, Math.max(0, dot(d, e) / dot(d, d))));
      const far = Math.hypot(p[0] - q[0], p[1] - q[1]);
      if (far < least) { least = far; best = q; }
    });
    return outside ? lifted(best) : v;
  }

  /** Of all lotteries with this exposure the most even one: the probabilities of the six lists. */
  function spread(v) {
    const aim = flat(mix(v, [MEAN, MEAN, MEAN], 1e-6));
    const arms = CORNERS.map((c) => flat(c).map((x, k) => x - aim[k]));
    const value = (t) => Math.log(arms.reduce((sum, a) => sum + Math.exp(dot(t, a)), 0));
    let theta = [0, 0], p;
    for (let round = 0; round < 200; round++) {
      const weights = arms.map((a) => Math.exp(dot(theta, a))), total = weights.reduce((a, b) => a + b);
      p = weights.map((w) => w / total);
      const g = [0, 1].map((k) => p.reduce((sum, q, i) => sum + q * arms[i][k], 0));
      if (Math.hypot(...g) < 1e-9) break;
      const m = (j, k) => p.reduce((sum, q, i) => sum + q * arms[i][j] * arms[i][k], 0) - g[j] * g[k];
      const [a, b, c] = [m(0, 0) + 1e-12, m(0, 1), m(1, 1) + 1e-12], det = a * c - b * b;
      const step = [(c * g[0] - b * g[1]) / det, (a * g[1] - b * g[0]) / det];
      let size = 1;
      while (size > 1e-9 && !(value(theta.map((t, k) => t - size * step[k])) < value(theta))) size /= 2;
      theta = theta.map((t, k) => t - size * step[k]);
    }
    return p;
  }

  let merit, cells, preset = 0, measure = "ind", price = 0, step = 0, onEdge = false, place, dragged = false, zoomed = true, frontier, track, lots6, counts, count, recent, moving = 0;
  const disparity = { ind: (v) => fairpg.individualDisparity(v, merit), group: (v) => fairpg.groupDisparity(v, merit, GROUPS) };
  const useful = (v) => fairpg.ndcg(v, merit);

  /** The hinges of the chosen disparity: it is 0 where all of these are at most 0. */
  function hinges() {
    if (measure === "group") {
      const gap = (v) => { const [a, b] = fairpg.byGroup(v, merit, GROUPS); return a.ratio - b.ratio; };
      const [a, b] = fairpg.byGroup(BIAS, merit, GROUPS);
      if (!(a.merit > 0 && b.merit > 0)) return [];
      return [...(a.merit >= b.merit - 1e-12 ? [gap] : []), ...(b.merit >= a.merit - 1e-12 ? [(v) => -gap(v)] : [])];
    }
    const found = [];
    merit.forEach((a, i) => merit.forEach((b, j) => {
      if (i !== j && a >= b && b > 0) found.push((v) => v[i] / a - v[j] / b);
    }));
    return found;
  }

  /** The optima for all prices, from the fairest to the most useful: disparity is linear in each
      cell between the hinges, so they are corners of cells, on the upper hull of (D, NDCG). */
  function solve() {
    cells = [CORNERS];
    for (const f of hinges()) cells = cells.flatMap((c) => [clip(c, f), clip(c, (v) => -f(v))]).filter((c) => c.length > 2);
    const all = cells.flat().map((v) => ({ v, d: disparity[measure](v), u: useful(v) }));
    all.sort((a, b) => a.d - b.d || a.u - b.u);
    const hull = [];
    for (const c of all) {
      while (hull.length && (c.d - hull.at(-1).d < 1e-9 ? c.u > hull.at(-1).u
        : hull.length > 1 && (hull.at(-1).u - hull.at(-2).u) * (c.d - hull.at(-2).d)
          <= (c.u - hull.at(-2).u) * (hull.at(-1).d - hull.at(-2).d) + 1e-12)) hull.pop();
      if (!hull.length || c.d - hull.at(-1).d >= 1e-9) hull.push(c);
    }
    const top = hull.reduce((best, c, k) => (c.u > hull[best].u + 1e-9 ? k : best), 0);
    return hull.slice(0, top + 1);
  }
  /** What the price's slider runs along: at a corner of the frontier the price grows until the next
      piece is as good; on that piece the price stays and the lottery moves. So it always does something. */
  function lay() {
    const stops = [...frontier].reverse(), pieces = [];
    let from = 0;
    stops.forEach((c, k) => {
      const next = stops[k + 1], slope = next ? (c.u - next.u) / (c.d - next.d) : Math.max(1.5 * from, 0.1);
      pieces.push({ long: next ? 0.6 : 0.4, a: c.v, b: c.v, from, to: slope });
      if (next) pieces.push({ long: 1, a: c.v, b: next.v, from: slope, to: slope });
      from = slope;
    });
    const whole = pieces.reduce((sum, piece) => sum + piece.long, 0);
    let start = 0;
    for (const piece of pieces) { piece.start = start; start += piece.long / whole; piece.end = start; }
    return pieces;
  }
  /** The price and the lottery at a place of the slider, 0 to 1. */
  function at(s) {
    const piece = track.find((one) => s <= one.end) || track.at(-1), t = Math.min(1, (s - piece.start) / (piece.end - piece.start));
    return { price: piece.from + t * (piece.to - piece.from), v: t <= 0 ? piece.a : t >= 1 ? piece.b : mix(piece.a, piece.b, t), onEdge: piece.a !== piece.b && t > 0 && t < 1 };
  }
  /** Where the slider stands at a price. */
  function stepOf(lambda) {
    const piece = track.find((one) => one.a === one.b && lambda <= one.to) || track.at(-1);
    const t = piece.to > piece.from ? (lambda - piece.from) / (piece.to - piece.from) : 0;
    return piece.start + Math.min(1, Math.max(0, t)) * (piece.end - piece.start);
  }
  const bestAt = (d) => {
    const k = frontier.findIndex((c) => c.d >= d);
    if (k <= 0) return frontier[k < 0 ? frontier.length - 1 : 0].u;
    const a = frontier[k - 1], b = frontier[k];
    return a.u + ((b.u - a.u) * (d - a.d)) / (b.d - a.d);
  };

  // The picture.
  const fair = h("polygon", { class: "xp-fair" }), field = h("path", { class: "xp-field" });
  const edge = h("polyline", { class: "xp-frontier" }), kinks = h("g", { class: "xp-kinks" });
  const star = h("text", { class: "xp-star", "text-anchor": "middle" }, "★");
  const mean = h("circle", { r: 7, class: "xp-ring" });
  const hexagon = h("polygon", { class: "xp-hexagon" });
  const discs = CORNERS.map(() => h("circle", { class: "xp-disc" }));
  const words = CORNERS.map((c, k) => h("text", { "text-anchor": k < 3 ? (k ? "start" : "middle") : k < 5 ? "end" : "middle" }, LISTS[k]));
  const knob = h("div", {
    class: "xp-dot xp-hint", role: "slider", tabindex: 0, "aria-label": "the policy: move it with the four arrow keys",
    "aria-valuemin": short(BIAS[2]), "aria-valuemax": 1, onkeydown: key,
  }, h("span", { "aria-hidden": "true" }, "drag me"));
  const stage = h("div", { class: "xp-stage", onpointerdown: grab, onclick: (e) => { if (!knob.contains(e.target)) to(where(e)); } },
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
      hexagon, fair, field, edge, kinks, ...discs, ...words, star, mean), knob);
  const reach = h("g", { class: "xp-reach" });
  const curve = h("polyline", { class: "xp-frontier" }), spot = h("circle", { r: 6, class: "xp-spot" });
  const tangent = h("line", { class: "xp-tangent" }), xName = h("text", { x: 292, y: 148, "text-anchor": "end" });
  const low = h("text", { x: 30, y: 122, "text-anchor": "end" });
  const chart = h("svg", { viewBox: "0 0 300 154", class: "xp-chart", "aria-hidden": "true" },
    h("path", { class: "xp-axes", d: "M36 8V130H296" }), h("text", { x: 42, y: 18 }, "NDCG"), h("text", { x: 30, y: 28, "text-anchor": "end" }, "1"),
    low, h("text", { x: 36, y: 148, "text-anchor": "middle" }, "0"), xName,
    h("svg", { x: 36, y: 0, style: "width: 264px; height: 130px" }, reach, tangent, curve, spot));

  const headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
  const slider = h("input", { type: "range", id: "xp-price", min: 0, max: STEPS, step: 1, oninput: () => slide(slider.value / STEPS) });
  const priceOut = h("output", { for: "xp-price" });
  const zoomer = button("", () => { zoomed = !zoomed; update(); });
  const presets = PRESETS.map(([label], k) => button(label, () => choose(k)));
  const sub = (word) => h("i", {}, "D", h("sub", {}, word));
  const measures = [["ind", "individual"], ["group", "group {1, 2} against {3}"]].map(([name, label]) =>
    [name, button("", () => { measure = name; update(); }), label]);
  measures.forEach(([name, b, label]) => b.append(sub(name), ` ${label}`));
  const tiles = [["ind", sub("ind")], ["group", sub("group")], ["ndcg", "NDCG"]].map(([name, label]) => {
    const out = h("output", { "data-name": name });
    return { name, out, box: h("div", { class: "xp-tile" }, h("span", {}, label), out) };
  });
  const rows = merit0().map((_, i) => {
    const input = h("input", {
      type: "range", min: 0, max: 1, step: 0.01, "aria-label": `merit of document ${i + 1}`,
      oninput: () => { merit[i] = +input.value; update(); },
    });
    const value = h("output", {}), got = h("b", {});
    return { input, value, got, row: [h("b", { class: `xp-chip xp-g${GROUPS[i]}` }, `${i + 1}`), input, value, got] };
  });
  const list = h("div", { class: "xp-lists" }), tally = h("span", { class: "xp-tally" });
  const voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  const head = (text) => h("small", {}, text);
  const key1 = (kind, text) => h("span", {}, h("i", { class: kind }), text);
  box.append(
    headline,
    h("div", { class: "xp-row", role: "group", "aria-label": "Disparity" }, ...measures.map((m) => m[1]), zoomer, button("Reset", () => choose(preset), { class: "xp-quiet" })),
    h("div", { class: "xp-heat" }, h("label", { for: "xp-price" }, "price of disparity ", h("i", {}, "λ"), " = ", priceOut),
      h("span", {}, "useful"), slider, h("span", {}, "fair")),
    h("div", { class: "xp-two" },
      h("div", {}, stage, h("div", { class: "xp-name" }, key1("xp-k-fair", "no disparity"), key1("xp-k-field", "disparity"), key1("xp-k-edge", "frontier"),
        key1("xp-k-disc", "chance of a list"), h("span", {}, "★ in proportion to merit")), remark,
        h("div", { class: "xp-row xp-draws" }, button("Draw a list", () => lots.draw(1)), button("Draw a hundred", () => lots.draw(100))), tally, list),
      h("div", {},
        h("div", { class: "xp-tiles xp-three" }, ...tiles.map((t) => t.box)), chart,
        h("div", { class: "xp-merit3" }, head(""), head("merit"), head(""), head("exposure"), ...rows.flatMap((r) => r.row)),
        h("div", { class: "xp-row", role: "group", "aria-label": "Examples" }, ...presets))),
    voice);

  const cost = () => (price ? short(price, 3) : "0");
  function merit0() { return [...PRESETS[0][1]]; }
  const lots = fairpg.lottery(() => {
    let rest = Math.random();
    const k = lots6.findIndex((p) => (rest -= p) < 0);
    return k < 0 ? lots6.indexOf(Math.max(...lots6)) : k;
  }, (k) => { counts[k]++; count++; recent = [k, ...recent].slice(0, 9); }, (more) => { averages(); if (!more) speak(); });

  // Moving the policy by hand: the knob takes any pointer, a tap or click anywhere puts it there.
  const where = (e) => {
    const { left, top, width } = stage.getBoundingClientRect(), k = WIDTH / width;
    const inside = (x, most) => (zoomed ? Math.min(most, Math.max(0, x)) : x);
    return unpixel(inside((e.clientX - left) * k, WIDTH), inside((e.clientY - top) * k, HEIGHT));
  };
  function grab(e) {
    if (e.button || (e.pointerType !== "mouse" && !knob.contains(e.target))) return;
    e.preventDefault();
    knob.focus({ preventScroll: true });
    stage.setPointerCapture(e.pointerId);
    const move = (f) => to(where(f));
    const drop = () => ["pointermove", "pointerup", "pointercancel"].forEach((name, k) => stage.removeEventListener(name, k ? drop : move));
    stage.addEventListener("pointermove", move);
    stage.addEventListener("pointerup", drop);
    stage.addEventListener("pointercancel", drop);
    if (!knob.contains(e.target)) move(e);
  }
  function key(e) {
    const by = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[e.key];
    if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    const p = flat(place), size = e.shiftKey ? 0.002 : 0.02;
    to(lifted([p[0] + size * by[0], p[1] + size * by[1]]));
    const [x, y] = pixel(place);
    if (x < 0 || y < 0 || x > WIDTH || y > HEIGHT) { zoomed = false; update(); }
  }
  function to(v) {
    cancelAnimationFrame(moving);
    dragged = true;
    knob.classList.remove("xp-hint");
    put(feasible(v));
  }
  /** To a place of the price's slider, along the frontier. */
  function slide(s) {
    const before = step, was = dragged, goal = at(s);
    ({ price, onEdge } = goal);
    step = s;
    dragged = false;
    const between = track.filter((one) => one.a !== one.b).flatMap((one) => [[one.start, one.a], [one.end, one.b]])
      .filter(([x]) => (x - before) * (x - s) < 0).sort(([x], [y]) => (s > before ? x - y : y - x)).map(([, v]) => v);
    travel(was || Math.abs(s - before) > 0.1 ? [place, ...(was ? [] : between), goal.v] : [goal.v]);
  }
  function travel(way) {
    cancelAnimationFrame(moving);
    if (way.length < 2 || fairpg.still()) return put(way.at(-1));
    const start = performance.now();
    const frame = (now) => {
      const t = Math.min(way.length - 1, Math.max(0, (now - start) / 300)), k = Math.min(way.length - 2, Math.floor(t));
      put(t < way.length - 1 ? mix(way[k], way[k + 1], t - k) : way.at(-1));
      if (t < way.length - 1) moving = requestAnimationFrame(frame);
    };
    put(place);
    moving = requestAnimationFrame(frame);
  }
  function choose(k) {
    preset = k;
    merit = [...PRESETS[k][1]];
    price = 0;
    dragged = false;
    update();
  }
  fairpg.answer("hexagon", (state) => {
    if (state.measure) measure = state.measure;
    dragged = false;
    if (state.lam !== undefined) price = +state.lam;
    update();
  });

  /** What part of the plane is shown: the frontier and the proportional exposure, or all. */
  function look(owed) {
    view = WHOLE;
    if (zoomed) {
      const seen = [...frontier.map((c) => c.v), ...(owed ? [owed] : [])].map(flat);
      const [x, y] = [0, 1].map((k) => seen.map((p) => p[k])), mid = (all) => (Math.min(...all) + Math.max(...all)) / 2;
      const span = (all) => Math.max(...all) - Math.min(...all) + 1e-9;
      view = { x: mid(x), y: mid(y), scale: Math.min(900, Math.max(262, Math.min((WIDTH - 120) / span(x), (HEIGHT - 100) / span(y)))) };
    }
    zoomer.textContent = zoomed ? "Whole hexagon" : "Zoom in";
    hexagon.setAttribute("points", points(CORNERS));
    CORNERS.forEach((c, k) => {
      const [x, y] = flat(c), [px, py] = pixel(c), r = Math.hypot(x, y);
      discs[k].setAttribute("cx", px);
      discs[k].setAttribute("cy", py);
      words[k].setAttribute("x", px + (26 * x) / r);
      words[k].setAttribute("y", py - (30 * y) / r + 5);
    });
  }

  /** After a change of merits or measure: the fair region, the field of disparity, the frontier. */
  function update() {
    cancelAnimationFrame(moving);
    frontier = solve();
    track = lay();
    step = stepOf(price);
    const start = at(step);
    ({ price, onEdge } = start);
    const owed = merit[0] + merit[1] + merit[2], share = owed > 0 ? merit.map((m) => (3 * MEAN * m) / owed) : null;
    look(share && feasible(share) === share ? share : null);
    const region = hinges().reduce(clip, CORNERS);
    fair.setAttribute("points", points(region));
    const most = Math.max(1e-6, ...CORNERS.map(disparity[measure]));
    let dots = "";
    for (let y = 3; y < HEIGHT; y += 12) for (let x = (y / 12) % 2 < 1 ? 3 : 9; x < WIDTH; x += 12) {
      const v = unpixel(x, y);
      if (feasible(v) !== v) continue;
      const r = 5 * Math.min(1, disparity[measure](v) / most) ** 0.5;
      if (r > 0.4) dots += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
    }
    field.setAttribute("d", dots);
    edge.setAttribute("points", points(frontier.map((c) => c.v)));
    kinks.replaceChildren(...frontier.map((c) => { const [cx, cy] = pixel(c.v); return h("circle", { cx, cy, r: 3.5 }); }));
    const [sx, sy] = share ? pixel(share) : [0, -99];
    star.setAttribute("x", sx);
    star.setAttribute("y", sy + 7);
    rows.forEach((r, i) => { r.input.value = merit[i]; r.value.textContent = short(merit[i], 2); });
    measures.forEach(([name, b]) => b.setAttribute("aria-pressed", name === measure));
    presets.forEach((b, k) => b.setAttribute("aria-pressed", PRESETS[k][1].every((m, i) => m === merit[i])));
    put(dragged ? place : start.v);
  }

  /** After every move: the numbers, the lottery, the words. */
  function put(v) {
    place = v;
    lots.stop();
    lots6 = spread(v);
    counts = LISTS.map(() => 0);
    count = 0;
    recent = [];
    const [x, y] = pixel(v), d = disparity[measure](v), u = useful(v);
    knob.style.left = `${(100 * x) / WIDTH}%`;
    knob.style.top = `${(100 * y) / HEIGHT}%`;
    knob.setAttribute("aria-valuenow", short(v[0]));
    knob.setAttribute("aria-valuetext", v.map((e, i) => `document ${i + 1} gets ${short(e)}`).join(", "));
    knob.dataset.value = JSON.stringify(v);
    discs.forEach((c, k) => { c.setAttribute("r", 20 * Math.sqrt(lots6[k])); c.dataset.value = lots6[k]; });
    for (const { name, out } of tiles) {
      const n = name === "ndcg" ? u : disparity[name](v);
      out.textContent = short(n);
      out.dataset.value = n;
    }
    rows.forEach((r, i) => { r.got.textContent = short(v[i]); });
    slider.value = STEPS * step;
    slider.dataset.price = price;
    priceOut.textContent = dragged ? "–" : cost();
    slider.setAttribute("aria-valuetext", dragged ? "not in use: the policy was moved by hand" : cost());

    // The chart is as large as the frontier, or as a policy that was moved out of it.
    const most = 1.12 * Math.max(0.02, frontier.at(-1).d, d), least = 1 - 1.25 * Math.max(0.002, 1 - frontier[0].u, 1 - u), tall = 1 - least;
    const px = (q) => (240 * q) / most, py = (q) => 24 + (98 * (1 - q)) / tall;
    curve.setAttribute("points", [...frontier, { d: 2 * most, u: frontier.at(-1).u }].map((c) => `${px(c.d)},${py(c.u)}`).join(" "));
    reach.replaceChildren(...cells.map((c) => h("polygon", { points: c.map((w) => `${px(disparity[measure](w))},${py(useful(w))}`).join(" ") })));
    spot.setAttribute("cx", px(d));
    spot.setAttribute("cy", py(u));
    tangent.setAttribute("visibility", dragged ? "hidden" : "visible");
    const run = Math.min(0.25 * most, price > 0 ? (0.35 * tall) / price : most);
    for (const [n, s] of [["1", -1], ["2", 1]]) {
      const by = Math.max(-d, s * run);
      tangent.setAttribute(`x${n}`, px(d + by));
      tangent.setAttribute(`y${n}`, py(u + by * price));
    }
    low.textContent = short(least, 3);
    xName.textContent = `D_${measure}  →  ${short(most, 3)}`;

    const name = measure === "ind" ? "individual" : "group", isFair = d < 5e-4, gap = bestAt(d) - u;
    headline.replaceChildren(dragged ? "This lottery has NDCG " : `At λ = ${cost()} ${onEdge ? "a" : "the"} best lottery has NDCG `, h("b", {}, short(u)),
      ...(isFair ? [` and no ${name} disparity.`] : [` and ${name} disparity `, h("b", {}, short(d)), "."]));
    remark.textContent = !dragged ? (onEdge ? "At exactly this price all lotteries on this piece of the frontier are equally good." : isFair ? "No lottery without disparity is more useful; a higher price changes nothing."
      : "Raise the price: the best lottery stays, then moves along the frontier, towards the green region.")
      : gap > 5e-4 ? `It is off the frontier: with the same ${name} disparity, NDCG could be ${short(gap)} higher.`
        : "It is on the frontier: no lottery with as little disparity is more useful.";
    averages();
    speak();
  }
  function averages() {
    const average = count ? [0, 1, 2].map((i) => counts.reduce((sum, c, k) => sum + c * CORNERS[k][i], 0) / count) : place;
    const [x, y] = pixel(average), far = Math.max(...average.map((e, i) => Math.abs(e - place[i])));
    mean.setAttribute("cx", x);
    mean.setAttribute("cy", y);
    mean.setAttribute("visibility", count ? "visible" : "hidden");
    mean.dataset.value = JSON.stringify(average);
    tally.textContent = count ? `${count} drawn; the ring, their mean exposure, is ${short(far)} away` : "";
    list.replaceChildren(...recent.map((k) => h("span", {}, ...[...LISTS[k]].map((d) => h("b", { class: `xp-chip xp-g${GROUPS[d - 1]}` }, d)))));
    list.hidden = !count;
  }
  function speak() {
    const [i, g, n] = tiles.map((t) => t.out.textContent);
    say(`${headline.textContent} ${knob.getAttribute("aria-valuetext")}. D ind ${i}, D group ${g}, NDCG ${n}.` +
      (count ? ` ${tally.textContent}. Last list: ${LISTS[recent[0]]}.` : ""));
  }
  choose(0);
});
