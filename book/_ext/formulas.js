/* Typesets the formulas of built pages: run by formulas.py in Node, with the MathJax bundle that the
   book ships. Reads {mathjax, macros, pages: [[{tex, display}]]} and writes {style, pages: [{glyphs,
   formulas: [markup]}]}. The glyphs of a page are stored once; its formulas refer to them. */
"use strict";
const fs = require("fs");
const asked = JSON.parse(fs.readFileSync(0, "utf8"));

/** Markup without what only MathJax's menu and explorer read. */
function lean(markup) {
  return markup
    .replace(/ data-mml-node="(?!mtable|merror)[^"]*"/g, "")
    .replace(/ (data-c|data-mjx-texclass|data-semantic-[a-z]+)="[^"]*"/g, "")
    .replace(/ xmlns(:xlink)?="http:[^"]*(svg|xlink)"/g, "")
    .replace(/xlink:href=/g, "href=")
    .replace(/ (role="img"|jax="SVG"|focusable="false"|unselectable="on"|style="position: relative;")/g, "")
    .replace(/ xmlns="http:\/\/www.w3.org\/1998\/Math\/MathML"/g, "")
    .replace(/ stroke="currentColor" fill="currentColor" stroke-width="0"/g, "")
    .replace(/><\/(use|path|rect|line)>/g, "/>")
    .replace(/^[^]*$/, withoutEmptyGroups);
}

/** Markup without the groups that say nothing. */
function withoutEmptyGroups(markup) {
  const open = [];
  return markup.replace(/<g>|<g [^>]*>|<\/g>/g, (tag) => {
    if (tag !== "</g>") open.push(tag !== "<g>");
    const said = tag === "</g>" ? open.pop() : open.at(-1);
    return said ? tag : "";
  });
}

const settings = {
  loader: { load: ["input/tex-full", "output/svg", "adaptors/liteDOM", "a11y/assistive-mml"] },
  tex: { macros: asked.macros },
  svg: { fontCache: "global" },
};
require(`${asked.mathjax}/node-main.js`).init(settings).then((MathJax) => {
  const { adaptor, output } = MathJax.startup;
  const pages = asked.pages.map((formulas) => {
    output.fontCache.clearCache();
    const made = formulas.map(({ tex, display }) => {
      const markup = adaptor.outerHTML(MathJax.tex2svg(tex, { display, em: 16, ex: 7.2, containerWidth: 700 }));
      const wrong = /data-mjx-error="([^"]*)"/.exec(markup);
      return wrong ? { tex, error: wrong[1] } : lean(markup);
    });
    return { glyphs: adaptor.outerHTML(output.fontCache.getCache()).replace(/><\/path>/g, "/>"), formulas: made };
  });
  process.stdout.write(JSON.stringify({ style: adaptor.textContent(MathJax.svgStylesheet()), pages }));
}).catch((error) => {
  console.error(String(error && error.stack || error));
  process.exitCode = 1;
});
