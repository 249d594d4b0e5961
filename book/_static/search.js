// Sphinx reads this file as `html_search_scorer`: it decides which hit comes first.
//
// Readers search for a word and want the chapter that explains it. Sphinx's own scores put the names
// of functions first.
var Scorer = {
  score: function (result) {
    var page = result[0], score = result[4];
    return /^book\/\d\d_/.test(page) ? score + 20 : score;
  },
  objNameMatch: 4,
  objPartialMatch: 2,
  objPrio: { 0: 5, 1: 3, 2: 0 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};

// The summary of a hit is cut from the text of its page. Here it loses what the page does not show
// (tooltips, folded checks) and reads formulas as words: D_group, not \mathcal{D}_{\mathrm{group}}.
(function () {
  "use strict";
  // A browser does not read another page from the disk, and complains when a summary needs one.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
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
