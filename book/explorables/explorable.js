/* What all explorables need: elements, numbers as the book writes them, a voice, and a lottery. */
(function () {
  "use strict";
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  /** An element; properties that start with "on" are listeners, false and null leave it out. */
  function element(tag, properties, ...children) {
    const svg = /^(svg|g|path|circle|text|tspan|line|polygon|polyline|rect)$/.test(tag);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag)
      : document.createElement(tag);
    for (const [name, value] of Object.entries(properties || {})) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value != null && value !== false) made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  /** .63 and not 0.63. */
  const short = (x, digits = 3) => x.toFixed(digits).replace(/^(-?)0\./, "$1.").replace(/^-(\.?0*)$/, "$1");

  /** A button that is not the page's submit. */
  const button = (label, act, more) => element("button", { type: "button", onclick: act, ...more }, label);

  /** Says the state to a screen reader when the reader has paused. */
  function speaker(node) {
    let waiting;
    return (text) => {
      clearTimeout(waiting);
      waiting = setTimeout(() => { node.textContent = text; }, 400);
    };
  }

  /** Draws lists one by one. `step(list)` is called for each, `shown()` once per picture. */
  function lottery(draw, step, shown) {
    let queue = 0, frame = 0;
    function some() {
      const now = still.matches ? queue : Math.min(queue, 2);
      for (let k = 0; k < now; k++) step(draw());
      queue -= now;
      frame = queue > 0 ? requestAnimationFrame(some) : 0;
      shown(queue);
    }
    return {
      draw(count) { queue += count; if (!frame) some(); },
      stop() { cancelAnimationFrame(frame); queue = frame = 0; },
    };
  }

  /** A row of buttons that is one stop of the Tab key: arrows, Home and End go from one to the next. */
  function toolbar(label, buttons) {
    const row = element("div", { class: "xp-row", role: "toolbar", "aria-label": label }, ...buttons);
    const stop = (chosen) => buttons.forEach((b) => { b.tabIndex = b === chosen ? 0 : -1; });
    row.addEventListener("focusin", (event) => stop(event.target));
    row.addEventListener("keydown", (event) => {
      const seen = buttons.filter((b) => !b.hidden), k = seen.indexOf(document.activeElement);
      const to = { ArrowRight: k + 1, ArrowDown: k + 1, ArrowLeft: k - 1, ArrowUp: k - 1, Home: 0, End: seen.length - 1 }[event.key];
      if (to == null || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      seen[(to + seen.length) % seen.length].focus();
    });
    stop(buttons[0]);
    return row;
  }

  /** Follows the mouse or a finger from here on. A finger that may yet scroll the page moves nothing
      before it goes sideways or, as a tap, is lifted where it was. */
  function follow(event, move) {
    if (event.button) return;
    const node = event.currentTarget, { clientX: x, clientY: y } = event;
    let waits = event.pointerType === "touch" && getComputedStyle(event.target).touchAction !== "none";
    event.preventDefault();
    node.setPointerCapture(event.pointerId);
    const far = (e) => [Math.abs(e.clientX - x), Math.abs(e.clientY - y)];
    const go = (e) => {
      const [across, along] = far(e);
      waits = waits && (across < 10 || across < along);
      if (!waits) move(e);
    };
    const lift = (e) => { if (waits && Math.max(...far(e)) < 10) move(e); drop(); };
    const listeners = { pointermove: go, pointerup: lift, pointercancel: () => drop() };
    const drop = () => Object.entries(listeners).forEach(([name, f]) => node.removeEventListener(name, f));
    Object.entries(listeners).forEach(([name, f]) => node.addEventListener(name, f));
    if (!waits) move(event);
  }

  /** `act` in the next picture, once, however often it is asked for before. */
  function once(act) {
    let frame = 0;
    return () => {
      frame = frame || requestAnimationFrame(() => { frame = 0; act(); });
    };
  }

  /** Work in small parts while nothing else is to be done, from when the figure comes into view. */
  function whenIdle(node, part) {
    const idle = globalThis.requestIdleCallback || ((act) => setTimeout(act, 30));
    const go = () => { const end = performance.now() + 8; if (!part(() => performance.now() > end)) idle(go); };
    const seen = new IntersectionObserver((all) => {
      if (all.some((one) => one.isIntersecting)) { seen.disconnect(); idle(go); }
    });
    seen.observe(node);
  }

  /** Puts what `start(figure, box)` makes in the place of the figure's picture. */
  function mount(id, start) {
    const begin = () => {
      const figure = document.getElementById(id);
      if (!figure || figure.querySelector(".xp-box")) return;
      const box = element("div", { class: "xp-box" });
      figure.querySelector(".xp-room").prepend(box);
      start(box);
      figure.classList.add("xp-live");
    };
    if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
    else begin();
  }

  /** Words of the text that set a figure's state: buttons with data-explorable and data-state. */
  function answer(name, set) {
    document.addEventListener("click", (event) => {
      const word = event.target.closest(`button[data-explorable="${name}"]`);
      if (!word) return;
      set(Object.fromEntries(new URLSearchParams(word.dataset.state)));
      const figure = document.getElementById(`explore-${name}`), { top, bottom } = figure.getBoundingClientRect();
      if (top > innerHeight - 120 || bottom < 120) {
        figure.scrollIntoView({ block: "center", behavior: still.matches ? "auto" : "smooth" });
      }
    });
  }

  Object.assign(globalThis.fairpg, { element, short, button, speaker, lottery, toolbar, follow, once, whenIdle, mount, answer, still: () => still.matches });
})();
