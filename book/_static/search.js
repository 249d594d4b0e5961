// Sphinx reads this file as `html_search_scorer`: it decides which hit comes first.
//
// Readers search for a word and want the chapter that explains it. Sphinx's own scores put the names
// of functions first.
var Scorer = {
  score: function (result) {
    var page = result[0], score = result[4];
    return /^book\/(\d\d_|intro)/.test(page) ? score + 20 : score;
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

// The summary of a hit is cut from the text of its page: from its prose only, without code, contents,
// headings and tooltips, and with formulas as words: D_group, not \mathcal{D}_{\mathrm{group}}. For a
// word of the glossary it is the definition.
(function () {
  "use strict";
  // A browser does not read another page from the disk, and complains when a summary needs one.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  function inWords(tex) {
    return tex
      .replace(/\\(Dgroup|Dind)\b/g, function (_, name) { return name === "Dind" ? "D_ind" : "D_group"; })
      .replace(/\\[()[\]]/g, "")
      .replace(/\\(mathcal|mathrm|mathbf|mathbb|text|operatorname|[bB]igg?[lrm]?|left|right)\*?/g, "")
      .replace(/\\([a-zA-Z]+)/g, "$1 ")
      .replace(/[{}\\]|\$/g, "");
  }

  Search.htmlToText = function (page, anchor) {
    var parsed = new DOMParser().parseFromString(page, "text/html");
    var article = parsed.querySelector("article") || parsed.body;
    article.querySelectorAll("[role=tooltip], figcaption, .eqno, .headerlink, pre, .cell, script").forEach(function (x) { x.remove(); });
    article.querySelectorAll(".math").forEach(function (formula) {
      formula.textContent = inWords(formula.dataset.tex || formula.textContent);
    });
    var place = anchor && parsed.getElementById(anchor.replace(/^#/, ""));
    if (place && place.tagName === "DT") return place.nextElementSibling.textContent.replace(/\s+/g, " ");
    var from = place && place.closest("section") || article;
    return [].map.call(from.querySelectorAll("p, li, dd"), function (x) {
      return x.querySelector("p, li") ? "" : x.textContent;
    }).join(" ").replace(/\s+/g, " ");
  };
})();
