// A tap, a click or the Enter key on a figure shows it as large as the window; Escape closes it.
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
})();
