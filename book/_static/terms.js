// Keeps the definition of a glossary term inside the window, and closes it on Escape. On a touch
// screen the first tap opens the definition, and a second one goes to the glossary.
(function () {
  "use strict";

  function place(event) {
    var term = event.target.closest && event.target.closest(".defined-term");
    if (!term) return;
    term.classList.remove("dismissed");
    var tip = term.querySelector('[role="tooltip"]');
    var link = term.getBoundingClientRect();
    // A table scrolls inside its own box, which would cut off what is placed in it.
    var fixed = term.closest("table") !== null;
    tip.style.position = fixed ? "fixed" : "absolute";
    tip.style.left = fixed ? Math.max(8, link.left) + "px" : "0";
    tip.style.top = fixed ? link.bottom + "px" : "100%";
    tip.style.bottom = "auto";
    var box = tip.getBoundingClientRect();
    var over = box.right - (document.documentElement.clientWidth - 8);
    if (over > 0) tip.style.left = parseFloat(tip.style.left) - over + "px";
    if (box.bottom > window.innerHeight && link.top > box.height) {
      tip.style.top = fixed ? link.top - box.height + "px" : "auto";
      tip.style.bottom = fixed ? "auto" : "100%";
    }
  }

  var touched = false;
  document.addEventListener("pointerdown", function (event) { touched = event.pointerType === "touch"; });
  document.addEventListener("click", function (event) {
    var term = event.target.closest && event.target.closest(".defined-term");
    document.querySelectorAll(".defined-term.open").forEach(function (other) {
      if (other !== term) other.classList.remove("open");
    });
    if (!term || !touched || term.classList.contains("open")) return;
    event.preventDefault();
    term.classList.add("open");
    place(event);
  });

  document.addEventListener("mouseover", place);
  document.addEventListener("focusin", place);
  document.addEventListener("keydown", function (event) {
    if (event.key !== "Escape") return;
    document.querySelectorAll(".defined-term").forEach(function (term) {
      term.classList.remove("open");
      if (term.matches(":hover, :focus-within")) term.classList.add("dismissed");
    });
  });
})();
