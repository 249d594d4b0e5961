/* Explorable A: ten candidates, their merit, and the exposure that a lottery gives them. */
fairpg.mount("explore-candidates", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const NAMES = "ABCDEFGHIJ".split(""), GROUPS = NAMES.map((_, i) => (i < 5 ? 0 : 1));
  const WHO = ["men", "women"], ONE = ["man", "woman"], TOP = 1.1;
  const BIAS = fairpg.positionBias(10), TOTAL = BIAS.reduce((a, b) => a + b);
  const five = (a, b) => GROUPS.map((g) => (g ? b : a));
  const PRESETS = [
    ["The paper’s example", five(0.89, 0.88), -3],
    [".9 against .3", five(0.9, 0.3), -1],
    ["One excellent candidate", [1, ...Array(9).fill(0.3)], -1],
  ];
  let merit, log10, exact, preset, sums, count, last;

  // The picture: merits above, exposure below, one column for each candidate.
  const columns = NAMES.map((name, i) => {
    const bar = h("div", { class: "xp-bar" });
    const knob = h("div", {
      class: "xp-knob", role: "slider", tabindex: i ? -1 : 0, "aria-orientation": "vertical",
      "aria-valuemin": 0, "aria-valuemax": 1, "aria-label": `merit of ${name}, a ${ONE[GROUPS[i]]}`,
      onkeydown: (e) => key(e, i),
    });
    const track = h("div", {
      class: "xp-track", onpointerdown: (e) => grab(e, i), onclick: (e) => put(e, i),
    }, bar, knob);
    const got = h("div", { class: "xp-bar" }), share = h("div", { class: "xp-share" });
    const mean = h("div", { class: "xp-mean" });
    const value = h("span", {}), reading = h("span", {});
    const kind = `xp-col xp-g${GROUPS[i]}`;
    return {
      bar, knob, track, got, share, mean, value, reading,
      above: h("div", { class: kind }, value, track, h("b", { class: "xp-chip" }, name)),
      below: h("div", { class: kind }, h("div", { class: "xp-track" }, got, share, mean), reading),
    };
  });
  const headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
  const heat = h("input", {
    type: "range", min: -3, max: 1, step: 0.02, id: "xp-heat", oninput: () => set(merit, +heat.value),
  });
  const heatOut = h("output", { for: "xp-heat" });
  const presets = PRESETS.map(([label], k) => button(label, () => choose(k)));
  const tile = (label) => {
    const out = h("output", {}), small = h("small", {});
    return { out, small, box: h("div", { class: "xp-tile" }, h("span", {}, label), out, small) };
  };
  const sub = (word) => h("i", {}, "D", h("sub", {}, word));
  const tiles = { dgroup: tile(sub("group")), ndcg: tile("NDCG"), g0: tile("a man gets"), g1: tile("a woman gets") };
  tiles.g0.box.classList.add("xp-g0");
  tiles.g1.box.classList.add("xp-g1");
  const strip = (label) => {
    const parts = [0, 1].map((g) => h("div", { class: `xp-g${g}` }));
    return { parts, row: [h("span", {}, label), h("div", { class: "xp-strip" }, ...parts)] };
  };
  const strips = [strip("merit"), strip("exposure")];
  const list = h("div", { class: "xp-list" }), tally = h("span", { class: "xp-tally" });
  const voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  const key1 = (kind, text) => h("span", {}, h("i", { class: kind }), text);
  box.append(
    headline,
    h("div", { class: "xp-heat" }, h("label", { for: "xp-heat" }, "temperature ", h("i", {}, "τ"), " = ", heatOut),
      h("span", {}, "sorted"), heat, h("span", {}, "pure chance")),
    h("div", { class: "xp-row", role: "group", "aria-label": "Examples" },
      ...presets, button("Reset", () => choose(preset), { class: "xp-quiet" })),
    h("div", { class: "xp-name" }, h("b", {}, "Merit"), " drag, or ↑ ↓ and ← →"),
    h("div", { class: "xp-cols xp-merits" }, ...columns.map((c) => c.above)),
    h("div", { class: "xp-name" }, h("b", {}, "Exposure"), key1("xp-share", "in proportion to merit"),
      key1("xp-mean", "mean of the drawn lists")),
    h("div", { class: "xp-cols" }, ...columns.map((c) => c.below)), remark,
    h("div", { class: "xp-tiles" }, ...Object.values(tiles).map((t) => t.box)),
    h("div", { class: "xp-strips" }, ...strips.flatMap((s) => s.row)),
    h("div", { class: "xp-row" }, button("Draw a list", () => lots.draw(1)),
      button("Draw a hundred", () => lots.draw(100)), tally),
    list, voice);

  const scores = () => merit.map((m) => m / 10 ** log10);
  const lots = fairpg.lottery(() => fairpg.draw(scores()), (drawn) => {
    drawn.forEach((who, j) => { sums[who] += BIAS[j]; });
    last = drawn;
    count++;
  }, (more) => { averages(); if (!more) speak(); });

  // Dragging: the knob takes any pointer; elsewhere a finger may scroll the page, and a tap sets.
  const level = (e, i) => {
    const { bottom, height } = columns[i].track.getBoundingClientRect();
    return (bottom - e.clientY) / height;
  };
  const put = (e, i) => { if (e.target !== columns[i].knob) change(i, level(e, i)); };
  function grab(e, i) {
    const { knob, track } = columns[i];
    if (e.button || (e.pointerType !== "mouse" && e.target !== knob)) return;
    e.preventDefault();
    visit(i);
    track.setPointerCapture(e.pointerId);
    const off = e.target === knob ? merit[i] - level(e, i) : 0;
    const move = (f) => change(i, level(f, i) + off);
    const drop = () => ["pointermove", "pointerup", "pointercancel"]
      .forEach((name, k) => track.removeEventListener(name, k ? drop : move));
    track.addEventListener("pointermove", move);
    track.addEventListener("pointerup", drop);
    track.addEventListener("pointercancel", drop);
    if (!off) move(e);
  }
  // Ten sliders are one stop of the Tab key; left and right lead from one to the next.
  function visit(i) {
    columns.forEach((c, k) => { c.knob.tabIndex = k === i ? 0 : -1; });
    columns[i].knob.focus({ preventScroll: true });
  }
  function key(e, i) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const next = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (next) {
      e.preventDefault();
      return visit((i + next + columns.length) % columns.length);
    }
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10, Home: -100, End: 100 }[e.key];
    if (!by) return;
    e.preventDefault();
    change(i, merit[i] + by / 100);
  }
  function change(i, value) {
    const to = Math.round(100 * Math.min(1, Math.max(0, value))) / 100;
    if (to !== merit[i]) set(merit.map((m, j) => (j === i ? to : m)), log10);
  }
  function choose(k) {
    preset = k;
    set([...PRESETS[k][1]], PRESETS[k][2], k);
  }

  function set(merits, heatNow, isPreset = -1) {
    merit = merits;
    log10 = heatNow;
    lots.stop();
    sums = merit.map(() => 0);
    count = 0;
    last = null;
    exact = fairpg.exposure(scores());
    presets.forEach((p, k) => p.setAttribute("aria-pressed", k === isPreset));
    show();
    averages();
    speak();
  }

  const percent = (x) => `${x.toFixed(1)} %`;
  const write = (t, x, small, digits) => {
    t.out.textContent = short(x, digits);
    t.out.dataset.value = x;
    t.small.textContent = small;
  };
  function show() {
    const owed = merit.reduce((a, b) => a + b);
    columns.forEach((c, i) => {
      const fair = owed > 0 ? (TOTAL * merit[i]) / owed : 0;
      c.bar.style.height = c.knob.style.bottom = `${100 * merit[i]}%`;
      c.value.textContent = short(merit[i], 2);
      c.knob.setAttribute("aria-valuenow", merit[i]);
      c.knob.setAttribute("aria-valuetext", `${short(merit[i], 2)}, exposure ${short(exact[i])}`);
      c.got.style.height = `${(100 * exact[i]) / TOP}%`;
      c.got.dataset.value = exact[i];
      c.share.style.bottom = `${(100 * Math.min(fair, TOP)) / TOP}%`;
      c.share.classList.toggle("xp-over", fair > 1);
      c.share.dataset.more = fair > 1 ? `${short(fair, 2)}↑` : "";
      c.reading.textContent = short(exact[i], 2);
    });
    const sides = fairpg.byGroup(exact, merit, GROUPS);
    const d = fairpg.groupDisparity(exact, merit, GROUPS);
    const [low, high] = sides[0].merit < sides[1].merit ? sides : [sides[1], sides[0]];
    headline.replaceChildren(...(high.merit > 0 ? [
      `The ${WHO[low.label]} have `, h("b", {}, percent((100 * low.merit) / high.merit)),
      ` of the ${WHO[high.label]}’s merit and get `,
      h("b", {}, percent((100 * low.exposure) / high.exposure)), " of their exposure.",
    ] : ["Nobody has any merit."]));
    const lead = low.ratio - high.ratio;
    remark.textContent = low.merit <= 0 ? "A group without merit is owed nothing."
      : exact.some((_, i) => TOTAL * merit[i] > owed + 1e-9)
        ? "In proportion to merit, somebody would get more than the first position has: no lottery can do that."
        : d < 0.0005 && lead > 0.0005
          ? `D_group is silent: per unit of merit the ${WHO[low.label]} are ahead by ${short(lead)}, and it counts only the other direction.`
          : d < 0.0005 ? "Exposure follows merit: the groups get the same per unit of merit."
            : `Per unit of merit the ${WHO[d > 0 && lead > 0 ? low.label : high.label]} get ${short(d)} more. Turn up the temperature.`;
    write(tiles.dgroup, d, d < 0.0005 && lead > 0.0005 ? "0, but silent" : "lower is fairer");
    write(tiles.ndcg, fairpg.ndcg(exact, merit), "1 is best");
    sides.forEach((s, g) => write(tiles[`g${g}`], s.exposure, s.merit > 0 ? `÷ merit ${short(s.merit, 2)} = ${short(s.ratio)}` : "without merit"));
    strips.forEach(({ parts }, k) => {
      const of = sides.map((s) => (k ? s.exposure : s.merit)), all = of[0] + of[1];
      parts.forEach((p, g) => {
        const part = all > 0 ? of[g] / all : 0.5;
        p.style.width = `${100 * part}%`;
        p.textContent = percent(100 * part);
      });
    });
    heat.value = log10;
    heatOut.textContent = short(10 ** log10, log10 < -2 ? 4 : log10 < -1 ? 3 : 2);
    heat.setAttribute("aria-valuetext", heatOut.textContent);
  }

  function averages() {
    let off = 0;
    columns.forEach((c, i) => {
      const mean = sums[i] / (count || 1);
      c.mean.hidden = !count;
      c.mean.style.bottom = `${(100 * mean) / TOP}%`;
      c.mean.dataset.value = mean;
      off = Math.max(off, Math.abs(mean - exact[i]));
    });
    tally.textContent = count ? `${count} drawn, at most ${short(off)} from exact` : "";
    list.replaceChildren(...(last || []).map((i) => h("b", { class: `xp-chip xp-g${GROUPS[i]}` }, NAMES[i])));
  }
  function speak() {
    const t = (name) => tiles[name].out.textContent;
    say(`${headline.textContent} D group ${t("dgroup")}, NDCG ${t("ndcg")}; a man gets ${t("g0")}, a woman ${t("g1")}.` +
      (count ? ` ${tally.textContent}. Last list: ${last.map((i) => NAMES[i]).join(" ")}.` : ""));
  }
  choose(0);
});
