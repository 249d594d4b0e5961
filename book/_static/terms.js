// Keeps the definition of a glossary term inside the window, and closes it on Escape.
(function () {
  "use strict";

  function place(event) {
    var term = event.target.closest && event.target.closest(".defined-term");
    if (!term) return;
    term.classList.remove("dismissed");
    var tip = term.querySelector('[role="tooltip"]');
    tip.style.left = "0";
    if (term.closest("table")) {
      // A table scrolls inside its own box, which would cut the definition off.
      var link = term.getBoundingClientRect();
      tip.style.position = "fixed";
      tip.style.left = Math.max(8, link.left) + "px";
      tip.style.top = link.bottom + "px";
    }
    var room = document.documentElement.clientWidth - 8;
    var over = tip.getBoundingClientRect().right - room;
    if (over > 0) tip.style.left = parseFloat(tip.style.left) - over + "px";
  }

  document.addEventListener("mouseover", place);
  document.addEventListener("focusin", place);
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Escape") return;
    document.querySelectorAll(".defined-term").forEach(function (term) {
      if (term.matches(":hover, :focus-within")) term.classList.add("dismissed");
    });
  });
})();
