/* Explorable D: a Plackett-Luce ranking is a race. Five steps, from one race to an exact exposure. */
fairpg.mount("explore-race", (box) => {
  "use strict";
  const { element: h, short, button } = fairpg;
  const NAMES = "ABCDEF".split(""), N = NAMES.length, BIAS = fairpg.positionBias(N);
  const SCORES = [1.6, 1.0, 0.5, 0, -0.4, -1], LEFT = 30, RIGHT = 262, LANE = 30, FAST = 0.004, SLOW = 40;
  const STEPS = [
    ["One race", "Every document runs, and arrives after a random time: the higher its score, the sooner on average. The order of arrival is the ranking."],
    ["A hundred races", "Who arrives first? The bars count it, and the lines are the softmax of the scores: exp(score) over their sum."],
    ["The same as noise", "The same times on another clock: minus the logarithm of the time is the score plus Gumbel noise. Sorting by it gives the same list."],
    ["Sit with one runner", "Suppose that your runner arrives now. Each rival is already there or not, like a coin of its own: the chance is one minus exp(-rate × time)."],
    ["All times at once", "Let that moment sweep from early to late. Density times mean attention, added up, is the exact exposure: no list was drawn."],
  ];
  let step = 0, scores = [...SCORES], times = null, firsts, drawn, me = 2, moment = 0.5, frame = 0;

  // Lanes: the clock runs to the right, logarithmic; on the Gumbel clock the winner is at the right.
  const clock = (t) => Math.min(1, Math.max(0, Math.log(t / FAST) / Math.log(SLOW / FAST)));
  const across = (t) => (step === 2 ? RIGHT - (RIGHT - LEFT) * clock(t) : LEFT + (RIGHT - LEFT) * clock(t));
  const lanes = NAMES.map((name, i) => {
    const y = 18 + LANE * i;
    const runner = h("circle", { class: "xp-runner", cy: y, r: 9 }), coin = h("text", { x: RIGHT + 12, y: y + 5, class: "xp-coin" });
    const letter = h("text", { x: 10, y: y + 5 }, name), count = h("rect", { class: "xp-count", x: RIGHT + 12, y: y - 7, height: 14 });
    const odds = h("line", { class: "xp-odds", y1: y - 11, y2: y + 11 });
    const lane = h("g", { onclick: () => sit(i) }, h("line", { class: "xp-lane", x1: LEFT, x2: RIGHT, y1: y, y2: y }), letter, count, odds, runner, coin);
    return { runner, coin, letter, count, odds, lane };
  });
  const now = h("line", { class: "xp-now", y1: 4, y2: 18 + LANE * (N - 1) + 14 });
  const under = h("text", { x: LEFT, y: LANE * N + 22 }), end = h("text", { x: RIGHT, y: LANE * N + 22, "text-anchor": "end" });
  const field = h("svg", { viewBox: `0 0 380 ${LANE * N + 30}`, "aria-hidden": "true", class: "xp-field-race" }, ...lanes.map((l) => l.lane), now, under, end);
  const area = h("polygon", { class: "xp-area" }), line = h("polyline", { class: "xp-density" });
  const graph = h("svg", { viewBox: "0 0 380 120", "aria-hidden": "true", class: "xp-graph" },
    area, line, h("path", { class: "xp-axes", d: `M${LEFT} 4V100H${RIGHT}` }), h("text", { x: LEFT + 6, y: 14 }, "density × mean attention"));
  const list = h("div", { class: "xp-list" }), headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
  const steps = STEPS.map(([label], k) => button(`${k + 1} ${label}`, () => go(k)));
  const run = button("Run", () => race(1)), many = button("Run 100", () => race(100));
  const slider = h("input", { type: "range", id: "xp-moment", min: 0, max: 1, step: 0.005, oninput: () => freeze(+slider.value) });
  const sliderOut = h("output", { for: "xp-moment" });
  const sliderRow = h("div", { class: "xp-heat" }, h("label", { for: "xp-moment" }, "time = ", sliderOut), slider);
  const heat = h("input", { type: "range", id: "xp-weight", min: -2, max: 3, step: 0.1, oninput: () => rescore(+heat.value) });
  const heatOut = h("output", { for: "xp-weight" });
  const heatLabel = h("span", {});
  const voice = h("p", { class: "xp-voice", "aria-live": "polite" }), say = fairpg.speaker(voice);
  const pick = NAMES.map((name, i) => button(name, () => sit(i), { "aria-label": `runner ${name}` }));
  box.append(
    h("div", { class: "xp-row", role: "group", "aria-label": "Steps" }, ...steps), remark, headline, field, graph,
    h("div", { class: "xp-row" }, run, many, h("span", { class: "xp-tally" }, "your runner"), ...pick), sliderRow,
    h("div", { class: "xp-heat" }, h("label", { for: "xp-weight" }, heatLabel, heatOut), heat), list, voice);

  const rates = () => scores.map(Math.exp);
  const runTimes = () => rates().map((w) => -Math.log(1 - Math.random()) / w);
  const order = (t) => NAMES.map((_, i) => i).sort((i, j) => t[i] - t[j]);
  const softmax = () => { const w = rates(), all = w.reduce((a, b) => a + b); return w.map((x) => x / all); };
  const timeAt = (place) => FAST * (SLOW / FAST) ** place;

  /** Mean attention of my runner if it arrives at t: the bias, averaged over the rivals' coins. */
  function meanBias(t) {
    let ahead = [1];
    rates().forEach((w, j) => {
      if (j === me) return;
      const here = 1 - Math.exp(-w * t), next = new Array(ahead.length + 1).fill(0);
      ahead.forEach((p, k) => { next[k] += p * (1 - here); next[k + 1] += p * here; });
      ahead = next;
    });
    return ahead.reduce((sum, p, k) => sum + p * BIAS[k], 0);
  }
  /** Per unit of the clock. */
  const density = (t) => rates()[me] * t * Math.exp(-rates()[me] * t);

  function show() {
    const coins = step >= 3, t = timeAt(moment);
    lanes.forEach(({ runner, coin, letter, count, odds, lane }, i) => {
      const there = 1 - Math.exp(-rates()[i] * t);
      lane.classList.toggle("xp-me", i === me && coins);
      runner.setAttribute("cx", coins ? (i === me ? across(t) : LEFT) : times ? across(times[i]) : LEFT);
      coin.textContent = coins ? (i === me ? "arrives now" : `there: ${short(there, 2)}`) : "";
      if (coins && i !== me) runner.setAttribute("cx", LEFT + there * (across(t) - LEFT));
      letter.setAttribute("class", i === me ? "xp-mine" : "");
      const part = drawn ? firsts[i] / drawn : 0;
      [count, odds].forEach((e) => { e.style.display = step === 1 ? "" : "none"; });
      count.setAttribute("width", 95 * part);
      count.dataset.value = part;
      [1, 2].forEach((k) => odds.setAttribute(`x${k}`, RIGHT + 12 + 95 * softmax()[i]));
    });
    now.style.display = coins ? "" : "none";
    [1, 2].forEach((k) => now.setAttribute(`x${k}`, across(t)));
    under.textContent = step === 2 ? "late" : "early";
    end.textContent = step === 2 ? "score + Gumbel noise →" : "late";
    graph.style.display = step === 4 ? "" : "none";
    sliderRow.hidden = step < 3;
    pick.forEach((b, i) => { b.hidden = step < 3; b.setAttribute("aria-pressed", i === me); });
    run.hidden = many.hidden = step > 2;
    box.querySelector(".xp-row .xp-tally").hidden = step < 3;
    list.replaceChildren(...(times && step < 3 ? order(times) : []).map((i) => h("b", { class: "xp-chip xp-g0" }, NAMES[i])));
    slider.value = moment;
    sliderOut.textContent = short(t, 2);
    heat.value = scores[me];
    heatLabel.textContent = `score of ${NAMES[me]} = `;
    heatOut.textContent = short(scores[me], 1);
    steps.forEach((b, k) => b.setAttribute("aria-pressed", k === step));
    remark.textContent = STEPS[step][1];
    tell(t);
  }
  function tell(t) {
    const exact = fairpg.exposure(scores)[me];
    let words = "Press Run.";
    if (step < 3 && times) words = `The list is ${order(times).map((i) => NAMES[i]).join(" ")}.`;
    if (step === 1 && drawn) words = `After ${drawn} races ${NAMES[0]} was first in ${short((100 * firsts[0]) / drawn, 0)} %; softmax says ${short(100 * softmax()[0], 0)} %.`;
    if (step === 3) words = `If ${NAMES[me]} arrives at ${short(t, 2)}, it can expect an attention of ${short(meanBias(t), 2)}.`;
    if (step === 4) {
      const points = Array.from({ length: 201 }, (_, k) => k / 200);
      const value = points.map((x) => density(timeAt(x)) * meanBias(timeAt(x)));
      const xy = (x, v) => `${(LEFT + (RIGHT - LEFT) * x).toFixed(1)},${(100 - 240 * v).toFixed(1)}`;
      const past = points.filter((x) => x <= moment);
      line.setAttribute("points", points.map((x, k) => xy(x, value[k])).join(" "));
      area.setAttribute("points", [xy(0, 0), ...past.map((x, k) => xy(x, value[k])), xy(past[past.length - 1], 0)].join(" "));
      // Before the clock's first time hardly anybody has arrived.
      const early = (1 - Math.exp(-rates()[me] * FAST)) * meanBias(FAST / 2);
      const inner = past.reduce((sum, _, k) => sum + value[k] * (k === 0 || k === past.length - 1 ? 0.5 : 1), 0);
      const filled = early + (past.length > 1 ? (inner / 200) * Math.log(SLOW / FAST) : 0);
      box.dataset.filled = filled;
      words = `So far ${short(filled)}; the exact exposure of ${NAMES[me]} is ${short(exact)}.`;
    }
    box.dataset.exact = exact;
    headline.textContent = words;
    say(words);
  }

  function go(k) {
    cancelAnimationFrame(frame);
    step = k;
    moment = k === 4 ? 0 : 0.5;
    if (k === 1) { reset(); race(100); return; }
    if (k === 2 && !times) times = runTimes();
    show();
    if (k === 4) sweep();
  }
  function sweep() {
    if (fairpg.still()) { freeze(1); return; }
    const once = () => {
      moment = Math.min(1, moment + 0.006);
      show();
      frame = moment < 1 ? requestAnimationFrame(once) : 0;
    };
    frame = requestAnimationFrame(once);
  }
  function freeze(place) {
    cancelAnimationFrame(frame);
    moment = place;
    show();
  }
  function reset() {
    firsts = NAMES.map(() => 0);
    drawn = 0;
    times = null;
  }
  /** Runs races; of several only the last is shown, one picture for a few of them. */
  function race(count) {
    cancelAnimationFrame(frame);
    let left = count;
    const some = () => {
      const batch = fairpg.still() || count === 1 ? left : Math.min(left, 2);
      for (let k = 0; k < batch; k++) {
        times = runTimes();
        firsts[order(times)[0]]++;
        drawn++;
      }
      left -= batch;
      show();
      frame = left ? requestAnimationFrame(some) : 0;
    };
    some();
  }
  function sit(i) {
    me = i;
    show();
  }
  function rescore(value) {
    scores = scores.map((s, i) => (i === me ? value : s));
    reset();
    show();
  }
  fairpg.answer("race", ({ step: k, runner, run: count, time }) => {
    if (runner) me = NAMES.indexOf(runner);
    if (k != null) go(k - 1);
    if (count != null) race(+count);
    if (time != null) freeze(clock(+time));
  });
  reset();
  show();
});
