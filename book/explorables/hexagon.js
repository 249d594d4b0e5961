/* Explorable B: all lotteries over lists of three documents, as points of a hexagon (chapters 2, 5).

   A lottery is drawn where its expected exposure is. Up is more for document 1, lower right more for
   document 2, lower left more for document 3; a corner is a list, named from its top. */
fairpg.mount("explore-hexagon", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const BIAS = fairpg.positionBias(3), MEAN = (BIAS[0] + BIAS[1] + BIAS[2]) / 3;
  const GROUPS = [0, 0, 1], ROOT = Math.sqrt(3) / 2;
  const AXES = [[0, 1], [ROOT, -0.5], [-ROOT, -0.5]];
  const LISTS = ["123", "213", "231", "321", "312", "132"]; // clockwise from the top
  const CORNERS = LISTS.map((name) => [..."123"].map((d) => BIAS[name.indexOf(d)]));
  const WIDTH = 360, HEIGHT = 286, SCALE = 262, LEVEL = 160;
  const PRESETS = [["1, .8, .6", [1, 0.8, 0.6]], ["1, .95, .9", [1, 0.95, 0.9]], ["1, .8, .4", [1, 0.8, 0.4]]];
  const STEPS = 100, TOP_PRICE = 1;

  // Exposures are triples with a fixed sum; the plane has two coordinates.
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
  const mix = (a, b, t) => a.map((x, i) => x + t * (b[i] - x));
  const flat = (v) => [0, 1].map((k) => AXES.reduce((sum, axis, i) => sum + v[i] * axis[k], 0));
  const lifted = (p) => AXES.map((axis) => MEAN + (2 / 3) * dot(axis, p));
  const pixel = (v) => { const [x, y] = flat(v); return [WIDTH / 2 + SCALE * x, LEVEL - SCALE * y]; };
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

  let merit, cells, preset = 0, measure = "ind", price = 0, place, dragged = false, frontier, lots6, counts, count, recent, moving = 0;
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
  const optimum = () => frontier.reduce((best, c) => (c.u - price * c.d > best.u - price * best.d + 1e-12 ? c : best));
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
  const discs = CORNERS.map((c) => { const [cx, cy] = pixel(c); return h("circle", { class: "xp-disc", cx, cy }); });
  const words = CORNERS.map((c, k) => {
    const [x, y] = flat(c), [px, py] = pixel(c), r = Math.hypot(x, y);
    return h("text", { x: px + (26 * x) / r, y: py - (30 * y) / r + 5, "text-anchor": k < 3 ? (k ? "start" : "middle") : k < 5 ? "end" : "middle" }, LISTS[k]);
  });
  const knob = h("div", {
    class: "xp-dot", role: "slider", tabindex: 0, "aria-label": "the policy: move it with the four arrow keys",
    "aria-valuemin": short(BIAS[2]), "aria-valuemax": 1, onkeydown: key,
  });
  const stage = h("div", { class: "xp-stage", onpointerdown: grab, onclick: (e) => { if (e.target !== knob) to(where(e)); } },
    h("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
      h("polygon", { class: "xp-hexagon", points: points(CORNERS) }), fair, field, edge, kinks, ...discs, ...words, star, mean), knob);
  const reach = h("g", { class: "xp-reach" });
  const curve = h("polyline", { class: "xp-frontier" }), spot = h("circle", { r: 6, class: "xp-spot" });
  const tangent = h("line", { class: "xp-tangent" }), xName = h("text", { x: 292, y: 148, "text-anchor": "end" });
  const low = h("text", { x: 30, y: 122, "text-anchor": "end" });
  const chart = h("svg", { viewBox: "0 0 300 154", class: "xp-chart", "aria-hidden": "true" },
    h("path", { class: "xp-axes", d: "M36 8V130H296" }), h("text", { x: 42, y: 18 }, "NDCG"), h("text", { x: 30, y: 28, "text-anchor": "end" }, "1"),
    low, h("text", { x: 36, y: 148, "text-anchor": "middle" }, "0"), xName, reach, tangent, curve, spot);

  const headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
  const slider = h("input", { type: "range", id: "xp-price", min: 0, max: STEPS, step: 1, oninput: () => pay(TOP_PRICE * (slider.value / STEPS) ** 2) });
  const priceOut = h("output", { for: "xp-price" });
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
    h("div", { class: "xp-row", role: "group", "aria-label": "Disparity" }, ...measures.map((m) => m[1]), button("Reset", () => choose(preset), { class: "xp-quiet" })),
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

  const cost = () => (price ? short(price, 2) : "0");
  function merit0() { return [...PRESETS[0][1]]; }
  const lots = fairpg.lottery(() => {
    let rest = Math.random();
    const k = lots6.findIndex((p) => (rest -= p) < 0);
    return k < 0 ? lots6.indexOf(Math.max(...lots6)) : k;
  }, (k) => { counts[k]++; count++; recent = [k, ...recent].slice(0, 9); }, (more) => { averages(); if (!more) speak(); });

  // Moving the policy by hand: the knob takes any pointer, a tap or click anywhere puts it there.
  const where = (e) => {
    const { left, top, width } = stage.getBoundingClientRect(), k = WIDTH / width;
    return lifted([((e.clientX - left) * k - WIDTH / 2) / SCALE, (LEVEL - (e.clientY - top) * k) / SCALE]);
  };
  function grab(e) {
    if (e.button || (e.pointerType !== "mouse" && e.target !== knob)) return;
    e.preventDefault();
    knob.focus({ preventScroll: true });
    stage.setPointerCapture(e.pointerId);
    const move = (f) => to(where(f));
    const drop = () => ["pointermove", "pointerup", "pointercancel"].forEach((name, k) => stage.removeEventListener(name, k ? drop : move));
    stage.addEventListener("pointermove", move);
    stage.addEventListener("pointerup", drop);
    stage.addEventListener("pointercancel", drop);
    if (e.target !== knob) move(e);
  }
  function key(e) {
    const by = { ArrowUp: [0, 1], ArrowDown: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] }[e.key];
    if (!by || e.ctrlKey || e.altKey || e.metaKey) return;
    e.preventDefault();
    const p = flat(place), size = e.shiftKey ? 0.002 : 0.02;
    to(lifted([p[0] + size * by[0], p[1] + size * by[1]]));
  }
  function to(v) {
    cancelAnimationFrame(moving);
    dragged = true;
    put(feasible(v));
  }
  function pay(lambda) {
    const from = frontier.indexOf(frontier.find((c) => c.v === place));
    price = lambda;
    dragged = false;
    const goal = optimum(), end = frontier.indexOf(goal), way = [place];
    if (from >= 0) for (let k = from; k !== end;) way.push(frontier[(k += Math.sign(end - k))].v);
    else way.push(goal.v);
    travel(way);
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

  /** After a change of merits or measure: the fair region, the field of disparity, the frontier. */
  function update() {
    cancelAnimationFrame(moving);
    frontier = solve();
    const region = hinges().reduce(clip, CORNERS);
    fair.setAttribute("points", points(region));
    const most = Math.max(1e-6, ...CORNERS.map(disparity[measure]));
    let dots = "";
    for (let y = 3; y < HEIGHT; y += 12) for (let x = (y / 12) % 2 < 1 ? 3 : 9; x < WIDTH; x += 12) {
      const v = lifted([(x - WIDTH / 2) / SCALE, (LEVEL - y) / SCALE]);
      if (feasible(v) !== v) continue;
      const r = 5 * Math.min(1, disparity[measure](v) / most) ** 0.5;
      if (r > 0.4) dots += `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
    }
    field.setAttribute("d", dots);
    edge.setAttribute("points", points(frontier.map((c) => c.v)));
    kinks.replaceChildren(...frontier.map((c) => { const [cx, cy] = pixel(c.v); return h("circle", { cx, cy, r: 3.5 }); }));
    const owed = merit[0] + merit[1] + merit[2], [sx, sy] = owed > 0 ? pixel(merit.map((m) => (3 * MEAN * m) / owed)) : [0, -99];
    star.setAttribute("x", sx);
    star.setAttribute("y", sy + 7);
    rows.forEach((r, i) => { r.input.value = merit[i]; r.value.textContent = short(merit[i], 2); });
    measures.forEach(([name, b]) => b.setAttribute("aria-pressed", name === measure));
    presets.forEach((b, k) => b.setAttribute("aria-pressed", PRESETS[k][1].every((m, i) => m === merit[i])));
    put(dragged ? place : optimum().v);
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
    slider.value = STEPS * Math.sqrt(price / TOP_PRICE);
    priceOut.textContent = dragged ? "–" : cost();
    slider.setAttribute("aria-valuetext", dragged ? "not in use: the policy was moved by hand" : cost());

    const most = Math.max(0.05, ...CORNERS.map(disparity[measure])), least = Math.min(...CORNERS.map(useful)), tall = Math.max(1e-6, 1 - least);
    const px = (q) => 36 + (240 * q) / most, py = (q) => 24 + (98 * (1 - q)) / tall;
    curve.setAttribute("points", [...frontier, { d: most, u: frontier.at(-1).u }].map((c) => `${px(c.d)},${py(c.u)}`).join(" "));
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
    low.textContent = short(least, 2);
    xName.textContent = `D_${measure}  →  ${short(most, 2)}`;

    const name = measure === "ind" ? "individual" : "group", isFair = d < 5e-4, gap = bestAt(d) - u;
    headline.replaceChildren(dragged ? "This lottery has NDCG " : `At λ = ${cost()} the best lottery has NDCG `, h("b", {}, short(u)),
      ...(isFair ? [` and no ${name} disparity.`] : [` and ${name} disparity `, h("b", {}, short(d)), "."]));
    remark.textContent = !dragged ? (isFair ? "No lottery without disparity is more useful; a higher price changes nothing."
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
