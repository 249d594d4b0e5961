// A tap, a click or the Enter key on a figure shows it as large as the window; Escape closes it.
// What is wider than its box, and so moves sideways, fades out at the edge where more is to come.
(function () {
  "use strict";

  function open(image) {
    var box = document.createElement("dialog");
    box.className = "enlarged";
    box.setAttribute("aria-label", "figure, enlarged");
    var large = image.cloneNode();
    large.removeAttribute("tabindex");
    large.removeAttribute("role");
    large.removeAttribute("style");
    box.appendChild(large);
    box.addEventListener("click", function () { box.close(); });
    // The theme takes Escape for its search box, so that the dialog's own answer never comes.
    box.addEventListener("keydown", function (event) { if (event.key === "Escape") box.close(); });
    box.addEventListener("close", function () { box.remove(); image.focus(); });
    document.body.appendChild(box);
    box.showModal();
  }

  document.querySelectorAll(".bd-content div.cell_output img, .bd-content figure.frames img").forEach(
    function (image) {
      image.tabIndex = 0;
      image.setAttribute("role", "button");
      image.setAttribute("aria-label", "Enlarge the figure: " + image.alt);
      image.addEventListener("click", function () { open(image); });
      image.addEventListener("keydown", function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open(image);
      });
    }
  );

  // The picture scrolls, and its caption does not fade with it.
  document.querySelectorAll(".bd-content div.cell_output figure:not(.frames, .explorable) > img").forEach(
    function (image) {
      var box = document.createElement("div");
      box.className = "pictures";
      image.replaceWith(box);
      box.appendChild(image);
    }
  );

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
      box.querySelectorAll("img").forEach(function (image) {
        image.addEventListener("load", function () { fade(box); });
      });
    });
  }
  fadeAll(".bd-content .pictures, .bd-content div.cell_output .text_html, .bd-content div.cell_output pre");
  fadeAll(".bd-content mjx-container[display='true']");
})();
