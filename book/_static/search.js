// The summary of a hit is cut from the text of its page. Here it loses what the page does not show
// (tooltips, folded checks) and reads formulas as words: D_group, not \mathcal{D}_{\mathrm{group}}.
(function () {
  "use strict";
  if (typeof Search === "undefined") return;
  var original = Search.htmlToText;

  Search.htmlToText = function (page, anchor) {
    var parsed = new DOMParser().parseFromString(page, "text/html");
    parsed.querySelectorAll('[role="tooltip"], figcaption, .eqno').forEach(function (x) { x.remove(); });
    parsed.querySelectorAll(".math").forEach(function (formula) {
      formula.textContent = formula.textContent
        .replace(/\\(Dgroup|Dind)\b/g, function (_, name) { return name === "Dind" ? "D_ind" : "D_group"; })
        .replace(/\\[()[\]]/g, "")
        .replace(/\\(mathcal|mathrm|mathbf|mathbb|text|operatorname)\*?/g, "")
        .replace(/\\([a-zA-Z]+)/g, "$1 ")
        .replace(/[{}\\]|\$/g, "")
        .replace(/\s+/g, " ");
    });
    return original(parsed.documentElement.outerHTML, anchor);
  };
})();
