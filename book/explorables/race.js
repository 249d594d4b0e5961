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
  // How far a motion is, from 0 to 1: the clock of a running race, the turn of the axis, the noise.
  let running = 1, turned = 0, noisy = 1, lists = 0, seen = NAMES.map(() => 0);

  // Lanes: the clock runs to the right, logarithmic; on the Gumbel clock the winner is at the right.
  const clock = (t) => Math.min(1, Math.max(0, Math.log(t / FAST) / Math.log(SLOW / FAST)));
  const across = (t) => LEFT + (RIGHT - LEFT) * (clock(t) + turned * (1 - 2 * clock(t)));
  const lanes = NAMES.map((name, i) => {
    const y = 18 + LANE * i;
    const runner = h("circle", { class: "xp-runner", cy: y, r: 9 }), said = h("text", { x: RIGHT + 12, y: y + 5, class: "xp-coin" });
    const letter = h("text", { x: 10, y: y + 5 }, name), count = h("rect", { class: "xp-count", x: RIGHT + 12, y: y - 7, height: 14 });
    const odds = h("line", { class: "xp-odds", y1: y - 11, y2: y + 11 }), sector = h("path", {});
    const coin = h("g", { class: "xp-coins" }, h("circle", { r: 10 }), sector);
    const noise = h("line", { class: "xp-noise", y1: y, y2: y }), own = h("line", { class: "xp-own", y1: y - 8, y2: y + 8 });
    const lane = h("g", { onclick: () => sit(i) }, h("line", { class: "xp-lane", x1: LEFT, x2: RIGHT, y1: y, y2: y }), letter, count, odds, noise, own, runner, coin, said);
    return { y, runner, said, letter, count, odds, coin, sector, noise, own, lane };
  });
  const now = h("line", { class: "xp-now", y1: 4, y2: 18 + LANE * (N - 1) + 14 });
  const ticks = [0, 1, 2, 3].map(() => h("text", { y: LANE * N + 20, "text-anchor": "middle" }));
  const under = h("text", { x: (LEFT + RIGHT) / 2, y: LANE * N + 38, "text-anchor": "middle" });
  const field = h("svg", { viewBox: `0 0 380 ${LANE * N + 44}`, "aria-hidden": "true", class: "xp-field-race" }, ...lanes.map((l) => l.lane), now, ...ticks, under);
  const area = h("polygon", { class: "xp-area" }), line = h("polyline", { class: "xp-density" });
  const graph = h("svg", { viewBox: "0 0 300 150", "aria-hidden": "true", class: "xp-graph" },
    area, line, h("path", { class: "xp-axes", d: `M${LEFT} 4V124H${RIGHT}` }), h("text", { x: LEFT + 6, y: 14 }, "density × mean attention"),
    h("text", { x: (LEFT + RIGHT) / 2, y: 143, "text-anchor": "middle" }, "time of arrival, early to late"));
  const places = NAMES.map((_, j) => {
    const bar = h("div", { class: "xp-bar" }), chip = h("b", { class: "xp-chip xp-g0" }), label = h("span", {}, `${j + 1}`);
    return { bar, chip, box: h("div", { class: "xp-col" }, label, h("div", { class: "xp-track" }, bar), chip) };
  });
  const listName = h("div", { class: "xp-name" }), list = h("div", { class: "xp-list xp-cols xp-six" }, ...places.map((p) => p.box)), headline = h("p", { class: "xp-headline" }), remark = h("p", { class: "xp-remark" });
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
  const tally = h("span", { class: "xp-tally" }, "your runner"), runners = fairpg.toolbar("Your runner", pick);
  box.append(
    fairpg.toolbar("Steps", steps), remark, headline,
    h("div", { class: "xp-two" }, field, h("div", { class: "xp-outcome" }, listName, list, graph)),
    h("div", { class: "xp-row xp-controls" }, run, many, tally, runners), sliderRow,
    h("div", { class: "xp-heat" }, h("label", { for: "xp-weight" }, heatLabel, heatOut), heat), voice);

  const rates = () => scores.map(Math.exp);
  const runTimes = () => rates().map((w) => -Math.log(1 - Math.random()) / w);
  const order = (t) => NAMES.map((_, i) => i).sort((i, j) => t[i] - t[j]);
  const softmax = () => { const w = rates(), all = w.reduce((a, b) => a + b); return w.map((x) => x / all); };
  const timeAt = (place) => FAST * (SLOW / FAST) ** place;

  /** Chances of the places of my runner if it arrives at t: the rivals' coins, one after the other. */
  function chances(t) {
    let ahead = [1];
    rates().forEach((w, j) => {
      if (j === me) return;
      const here = 1 - Math.exp(-w * t), next = new Array(ahead.length + 1).fill(0);
      ahead.forEach((p, k) => { next[k] += p * (1 - here); next[k + 1] += p * here; });
      ahead = next;
    });
    return ahead;
  }
  /** Mean attention of my runner if it arrives at t. */
  const meanBias = (t) => chances(t).reduce((sum, p, k) => sum + p * BIAS[k], 0);
  /** Per unit of the clock. */
  const density = (t) => rates()[me] * t * Math.exp(-rates()[me] * t);

  const display = (node, isShown) => { node.style.display = isShown ? "" : "none"; };
  function show() {
    const sits = step >= 3, t = timeAt(moment), gumbel = step === 2, until = timeAt(running), odds = softmax(), rate = rates();
    lanes.forEach((l, i) => {
      const there = 1 - Math.exp(-rate[i] * t), isMe = sits && i === me, arrived = times && Math.min(times[i], until);
      // On the turned axis a time is minus its logarithm: the score, and the noise on it.
      const spot = !times ? timeAt(0) : gumbel ? Math.exp(-scores[i] - noisy * (-Math.log(times[i]) - scores[i])) : arrived;
      l.lane.classList.toggle("xp-me", isMe);
      display(l.runner, isMe || !sits);
      l.runner.setAttribute("cx", isMe ? across(t) : times ? across(spot) : LEFT);
      display(l.coin, sits && i !== me);
      if (sits) {
        const angle = 2 * Math.PI * Math.min(0.9999, there), x = 10 * Math.sin(angle), y = -10 * Math.cos(angle);
        l.coin.setAttribute("transform", `translate(${across(t).toFixed(1)} ${l.y})`);
        l.sector.setAttribute("d", `M0 0V-10A10 10 0 ${angle > Math.PI ? 1 : 0} 1 ${x.toFixed(2)} ${y.toFixed(2)}Z`);
      }
      l.said.textContent = sits ? (i === me ? "arrives now" : `there: ${short(there, 2)}`) : gumbel ? `score ${short(scores[i], 1)}` : "";
      l.letter.setAttribute("class", i === me ? "xp-mine" : "");
      const part = drawn ? firsts[i] / drawn : 0;
      [l.count, l.odds].forEach((e) => display(e, step === 1));
      [l.noise, l.own].forEach((e) => display(e, gumbel && times));
      [1, 2].forEach((k) => {
        l.odds.setAttribute(`x${k}`, RIGHT + 12 + 95 * odds[i]);
        l.own.setAttribute(`x${k}`, across(Math.exp(-scores[i])));
        l.noise.setAttribute(`x${k}`, across(k === 1 ? Math.exp(-scores[i]) : spot));
      });
      l.count.setAttribute("width", 95 * part);
      l.count.dataset.value = part;
    });
    display(now, sits || (step === 0 && running < 1));
    [1, 2].forEach((k) => now.setAttribute(`x${k}`, across(sits ? t : until)));
    ticks.forEach((tick, k) => {
      const at = gumbel ? Math.exp(2 * k - 4) : 10 ** (k - 2); // noisy scores 4, 2, 0, -2
      tick.setAttribute("x", across(at));
      tick.textContent = gumbel ? 4 - 2 * k : short(at, k < 2 ? 2 - k : 0);
    });
    under.textContent = gumbel ? "−log time = score + Gumbel noise" : "time of arrival";
    const arrivals = times ? order(times) : [], chance = sits ? chances(t) : BIAS;
    listName.textContent = step === 4 ? `What ${NAMES[me]} gets, moment by moment` : sits ? `Chance of each place for ${NAMES[me]}` : "The list, and the attention of its places";
    list.classList.toggle("xp-sits", sits);
    list.hidden = step === 4;
    places.forEach(({ bar, chip }, j) => {
      bar.style.height = `${100 * chance[j]}%`;
      chip.hidden = sits;
      chip.textContent = j < arrivals.length && (step !== 0 || times[arrivals[j]] <= until) ? NAMES[arrivals[j]] : "";
    });
    display(graph, step === 4);
    sliderRow.hidden = runners.hidden = tally.hidden = step < 3;
    pick.forEach((b, i) => b.setAttribute("aria-pressed", i === me));
    run.hidden = many.hidden = step > 2;
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
    if (step === 0 && running < 1) words = "They run.";
    else if (step < 3 && times) words = `The list is ${order(times).map((i) => NAMES[i]).join(" ")}.`;
    if (step === 1 && drawn) words = `After ${drawn} races ${NAMES[0]} was first in ${short((100 * firsts[0]) / drawn, 0)} %; softmax says ${short(100 * softmax()[0], 0)} %.`;
    if (step === 3) words = `If ${NAMES[me]} arrives at ${short(t, 2)}, it can expect an attention of ${short(meanBias(t), 2)}.`;
    if (step === 4) {
      const points = Array.from({ length: 201 }, (_, k) => k / 200);
      const value = points.map((x) => density(timeAt(x)) * meanBias(timeAt(x)));
      const xy = (x, v) => `${(LEFT + (RIGHT - LEFT) * x).toFixed(1)},${(124 - 290 * v).toFixed(1)}`;
      const past = points.filter((x) => x <= moment);
      line.setAttribute("points", points.map((x, k) => xy(x, value[k])).join(" "));
      area.setAttribute("points", [xy(0, 0), ...past.map((x, k) => xy(x, value[k])), xy(past[past.length - 1], 0)].join(" "));
      // Before the clock's first time hardly anybody has arrived.
      const early = (1 - Math.exp(-rates()[me] * FAST)) * meanBias(FAST / 2);
      const inner = past.reduce((sum, _, k) => sum + value[k] * (k === 0 || k === past.length - 1 ? 0.5 : 1), 0);
      const filled = early + (past.length > 1 ? (inner / 200) * Math.log(SLOW / FAST) : 0);
      box.dataset.filled = filled;
      words = `Filled so far: ${short(filled)}. The exact exposure of ${NAMES[me]} is ${short(exact)}` +
        (lists ? `, the mean of ${lists} drawn lists ${short(seen[me] / lists)}.` : ".");
    }
    box.dataset.exact = exact;
    headline.textContent = words;
    say(words);
  }

  /** Calls `part(x)` with x from 0 to 1, picture by picture; at once where motion is unwelcome. */
  function play(pictures, part) {
    cancelAnimationFrame(frame);
    let k = fairpg.still() ? pictures : 0;
    const next = () => {
      part(Math.min(1, k / pictures));
      show();
      frame = k++ < pictures ? requestAnimationFrame(next) : 0;
    };
    next();
  }
  function go(k) {
    cancelAnimationFrame(frame);
    step = k;
    moment = k === 4 ? 0 : 0.5;
    running = noisy = 1;
    turned = 0;
    if (k === 1) { reset(); race(100); return; }
    if (k === 2) { if (!times) times = runTimes(); play(40, (x) => { turned = x; }); return; }
    if (k === 4) { sweep(); return; }
    show();
  }
  /** Time runs through, and beside it lists are drawn. */
  function sweep() {
    lists = 0;
    seen = NAMES.map(() => 0);
    play(170, (x) => {
      moment = x;
      for (let k = 0; k < (fairpg.still() ? 170 : 1); k++) {
        lists++;
        order(runTimes()).forEach((i, j) => { seen[i] += BIAS[j]; });
      }
    });
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
    lists = 0;
    running = 1;
  }
  /** Runs races; of several only the last is shown, one picture for a few of them. */
  function race(count) {
    cancelAnimationFrame(frame);
    let left = count;
    if (count === 1) {
      times = runTimes();
      firsts[order(times)[0]]++;
      drawn++;
      if (step === 0) play(90, (x) => { running = x; });
      else if (step === 2) play(30, (x) => { turned = 1; noisy = x; });
      else show();
      return;
    }
    const some = () => {
      const batch = fairpg.still() ? left : Math.min(left, 2);
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
