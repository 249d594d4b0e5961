// The scoreboard's filters: by verdict and by section. A link to a claim opens and marks it.
(function () {
  "use strict";
  var board = document.querySelector(".claims[data-filters]");
  if (board) {
    var claims = [].slice.call(board.querySelectorAll(".claim")), chosen = "";
    var counts = {};
    claims.forEach(function (c) { counts[c.dataset.verdict] = (counts[c.dataset.verdict] || 0) + 1; });
    var bar = document.createElement("div");
    bar.className = "claim-filters";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "Show claims by verdict");
    var buttons = [["", "all " + claims.length]].concat(Object.keys(counts).map(function (word) {
      return [word, counts[word] + " " + word];
    })).map(function (pair) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = pair[1];
      button.addEventListener("click", function () { chosen = pair[0]; show(); });
      bar.append(button);
      return [pair[0], button];
    });
    var show = function () {
      claims.forEach(function (c) { c.hidden = chosen !== "" && c.dataset.verdict !== chosen; });
      board.querySelectorAll(".claim-section").forEach(function (title) {
        var next = title.nextElementSibling, any = false;
        for (; next && next.matches(".claim"); next = next.nextElementSibling) any = any || !next.hidden;
        title.hidden = !any;
      });
      buttons.forEach(function (pair) { pair[1].setAttribute("aria-pressed", pair[0] === chosen); });
    };
    board.prepend(bar);
    show();
  }
  function openTarget() {
    var target = location.hash.slice(1) && document.getElementById(location.hash.slice(1));
    if (!target || !target.matches("details.claim")) return;
    document.querySelectorAll(".claim.marked").forEach(function (c) { c.classList.remove("marked"); });
    target.hidden = false;
    target.open = true;
    target.classList.add("marked");
    target.scrollIntoView({ block: "center" });
  }
  window.addEventListener("hashchange", openTarget);
  openTarget();
})();
