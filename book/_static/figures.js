// A tap, a click or the Enter key on a figure shows it as large as the window; Escape closes it.
// What is wider than its box, and so moves sideways, fades out at the edge where more is to come.
(function () {
  "use strict";

  function open(drawn) {
    var box = document.createElement("dialog");
    box.className = "enlarged";
    box.setAttribute("aria-label", "figure, enlarged");
    var large = drawn.cloneNode(true);
    large.removeAttribute("tabindex");
    large.setAttribute("role", "img");
    large.setAttribute("aria-label", drawn.dataset.alt);
    box.appendChild(large);
    box.addEventListener("click", function () { box.close(); });
    // The theme takes Escape for its search box, so that the dialog's own answer never comes.
    box.addEventListener("keydown", function (event) { if (event.key === "Escape") box.close(); });
    box.addEventListener("close", function () { box.remove(); drawn.focus(); });
    document.body.appendChild(box);
    box.showModal();
  }

  document.querySelectorAll(".bd-content .drawn").forEach(function (drawn) {
    drawn.dataset.alt = drawn.getAttribute("aria-label");
    drawn.tabIndex = 0;
    drawn.setAttribute("role", "button");
    drawn.setAttribute("aria-label", "Enlarge the figure: " + drawn.dataset.alt);
    drawn.addEventListener("click", function () {
      if (getSelection().isCollapsed) open(drawn); // else its words are being copied
    });
    drawn.addEventListener("keydown", function (event) {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      open(drawn);
    });
  });

  // The theme calls the button of every fold "Toggle hidden content"; it is called as its title.
  function nameFolds() {
    document.querySelectorAll(".admonition > .admonition-title > .toggle-button").forEach(function (button) {
      var title = button.parentElement.cloneNode(true);
      title.querySelectorAll("button, mjx-assistive-mml").forEach(function (part) { part.remove(); });
      button.setAttribute("aria-label", title.textContent.trim().replace(/\s+/g, " "));
    });
  }
  if (document.readyState === "complete") nameFolds();
  else window.addEventListener("load", nameFolds);

  function fade(box) {
    var left = box.scrollWidth - box.clientWidth - box.scrollLeft;
    box.classList.toggle("more-right", left > 4);
    box.classList.toggle("more-left", box.scrollLeft > 4);
  }
  var watch = new ResizeObserver(function (entries) { entries.forEach(function (e) { fade(e.target); }); });
  function fadeAll(selector) {
    document.querySelectorAll(selector).forEach(function (box) {
      watch.observe(box); // a fold that opens, a window that turns
      box.addEventListener("scroll", function () { fade(box); }, { passive: true });
    });
  }
  fadeAll(".bd-content div.cell_output .text_html, .bd-content div.cell_output pre");
  fadeAll(".bd-content mjx-container[display='true']");
})();
