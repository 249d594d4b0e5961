/* Explorable F, of the first page: ten people as a ranked list, and one slider. */
fairpg.mount("explore-list", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const NAMES = "ABCDEFGHIJ".split(""), GROUPS = NAMES.map((_, i) => (i < 5 ? 0 : 1)), BIAS = fairpg.positionBias(10);
  const MERIT = GROUPS.map((g) => (g ? 0.88 : 0.89)), ONE = ["man", "woman"];
  let log10 = -3, drawn;

  const rows = BIAS.map((bias, j) => {
    const chip = h("b", { class: "xp-chip" }), who = h("span", { class: "xp-who" }), bar = h("div", { class: "xp-seen" });
    bar.style.width = `${100 * bias}%`;
    return { chip, who, row: h("li", { class: "xp-place" }, h("span", { class: "xp-rank" }, `${j + 1}`), chip, who, h("div", { class: "xp-way" }, bar)) };
  });
  const headline = h("p", { class: "xp-headline", "data-testid": "headline" });
  const heat = h("input", { type: "range", min: -3, max: -1, step: 0.02, id: "xp-lots", "aria-label": "how much is left to chance", oninput: () => set(+heat.value) });
  const voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  box.append(headline,
    h("div", { class: "xp-heat xp-ends" }, h("label", { for: "xp-lots" }, "by score"), heat, h("span", {}, "draw lots")),
    h("ol", { class: "xp-places" }, ...rows.map((r) => r.row)),
    h("div", { class: "xp-row" }, button("Another list", () => again()), h("span", { class: "xp-tally" }, "bars: the attention that a place gets")), voice);

  const scores = () => MERIT.map((m) => m / 10 ** log10);
  function again() {
    drawn = fairpg.draw(scores());
    rows.forEach(({ chip, who, row }, j) => {
      const i = drawn[j];
      chip.textContent = NAMES[i];
      who.textContent = `${ONE[GROUPS[i]]}, ${short(MERIT[i], 2)}`;
      row.className = `xp-place xp-g${GROUPS[i]}`;
    });
  }
  function set(value) {
    log10 = value;
    const [men, women] = fairpg.byGroup(fairpg.exposure(scores()), MERIT, GROUPS);
    const less = 100 * (1 - women.exposure / men.exposure), useful = fairpg.ndcg(fairpg.exposure(scores()), MERIT);
    Object.assign(box.dataset, { less, useful });
    headline.replaceChildren("The women’s scores are 1 % lower. They get ", h("b", {}, `${less.toFixed(0)} % less attention`),
      " than the men, at an NDCG of ", h("b", {}, short(useful, 3)), ".");
    heat.value = log10;
    heat.setAttribute("aria-valuetext", `women get ${less.toFixed(0)} per cent less`);
    again();
    say(headline.textContent);
  }
  fairpg.answer("list", ({ heat: value }) => set(+value));
  set(-3);
});
