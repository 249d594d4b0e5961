// Arrow keys, Page Up and Down, Space, Home and End turn the slides; a slider under the focus keeps its keys.
const slides = [...document.querySelectorAll('.slide')];
const counter = document.querySelector('#counter');
let now = 0;
function show(index, move = true) {
  now = Math.max(0, Math.min(slides.length - 1, index));
  slides.forEach((slide, k) => {
    slide.classList.toggle('now', k === now);
    slide.inert = k !== now;
  });
  counter.textContent = `${now + 1} of ${slides.length}`;
  if (move) history.replaceState(null, '', `#${now + 1}`);
}
const turns = {
  ArrowRight: () => now + 1, PageDown: () => now + 1, ' ': () => now + 1,
  ArrowLeft: () => now - 1, PageUp: () => now - 1, Home: () => 0, End: () => slides.length - 1,
};
document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.target.closest('input') || (event.key === ' ' && event.target.closest('button'))) return;
  if (event.key in turns) { event.preventDefault(); show(turns[event.key]()); }
});
document.querySelector('#back').addEventListener('click', () => show(now - 1));
document.querySelector('#next').addEventListener('click', () => show(now + 1));
addEventListener('hashchange', () => show(Number(location.hash.slice(1)) - 1 || 0, false));
show(Number(location.hash.slice(1)) - 1 || 0, false);
