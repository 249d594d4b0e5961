// N shows the speaker's notes. Arrow keys, Page Up and Down, Space, Home and End turn the slides; a slider under the focus keeps its keys.
const slides = [...document.querySelectorAll('.slide')];
const counter = document.querySelector('#counter');
let now = 0;
// What a chapter shows may be too tall for a slide: shrink it until it fits.
function fit(slide) {
  const body = slide.querySelector('.body');
  for (const picture of body.querySelectorAll('figure:not(.frames) :is(img, .drawn)')) {
    const drawn = parseFloat(picture.style.getPropertyValue('--ratio'));
    const ratio = drawn || picture.naturalWidth / picture.naturalHeight;
    if (ratio < 1.1) picture.closest('figure').classList.add('tall');
  }
  body.style.zoom = 1;
  for (let zoom = 1; zoom > 0.3 && body.scrollHeight > body.clientHeight + 1; zoom -= 0.05) body.style.zoom = zoom;
}
function speak() {
  const off = slides[now].querySelector('.notes').hidden;
  slides.forEach(slide => { slide.querySelector('.notes').hidden = !off; });
}
function show(index, move = true) {
  now = Math.max(0, Math.min(slides.length - 1, index));
  slides.forEach((slide, k) => {
    slide.classList.toggle('now', k === now);
    slide.inert = k !== now;
  });
  fit(slides[now]);
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
  if (event.key === 'n') speak();
  if (event.key in turns) { event.preventDefault(); show(turns[event.key]()); }
});
document.querySelector('#back').addEventListener('click', () => show(now - 1));
document.querySelector('#next').addEventListener('click', () => show(now + 1));
document.querySelector('#speak').addEventListener('click', speak);
addEventListener('load', () => (window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => fit(slides[now])));
addEventListener('resize', () => fit(slides[now]));
addEventListener('hashchange', () => show(Number(location.hash.slice(1)) - 1 || 0, false));
show(Number(location.hash.slice(1)) - 1 || 0, false);
