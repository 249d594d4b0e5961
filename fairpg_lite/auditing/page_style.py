"""How a report looks: on a screen, on a phone, in the dark, and on two sheets of paper."""

STYLE = """
:root { color-scheme: light dark; --text: #1c2127; --soft: #5a636d; --line: #d5d9de;
  --ground: #fff; --panel: #f4f6f8; --attention: #0072b2; --merit: #9a5b00; --documents: #6b737c; }
@media screen and (prefers-color-scheme: dark) { :root { --text: #e7eaee; --soft: #a9b2bc;
  --line: #434b54; --ground: #15191d; --panel: #20262c; --attention: #56b4e9; --merit: #e69f00;
  --documents: #98a1ab; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem 1.25rem 3rem; color: var(--text);
  background: var(--ground); font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Liberation Sans",
  sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; }
.soft, caption, th { color: var(--soft); }
@media screen { .short p:first-child { font-size: 1.15rem; line-height: 1.4; } }
.short { background: var(--panel); border-left: 4px solid var(--attention); padding: .5rem 1rem;
  margin: 1rem 0; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
caption { text-align: left; padding: .2rem 0; caption-side: bottom; font-size: .9em; }
th { text-align: left; font-weight: 600; font-size: .9em; }
th, td { padding: .25rem .5rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }
td.name { overflow-wrap: anywhere; min-width: 4.5rem; }
.bar { display: grid; grid-template-columns: 5.6rem 1fr 3.6rem; gap: .5rem; align-items: center;
  font-size: .92rem; line-height: 1.3; }
.bar .track { height: .8rem; background: var(--panel); }
.bar .fill { height: 100%; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.bar .value { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.group { margin: .6rem 0; }
.group > p { margin: 0 0 .1rem; }
.attention { background: var(--attention); } .merit { background: var(--merit); }
.documents { background: var(--documents); }
svg { width: 100%; height: auto; display: block; }
table.plain { width: auto; min-width: 70%; }
td:nth-child(2) { min-width: 3rem; }
ul { margin: .3rem 0; padding-left: 1.2rem; }
li { margin: .15rem 0; }
code { font-size: .88em; overflow-wrap: anywhere; }
footer { margin-top: 1.6rem; font-size: .85rem; color: var(--soft); }
@media (max-width: 34rem) { body { padding: 1rem .8rem 2rem; }
  table.plain { width: 100%; font-size: .9rem; overflow-wrap: anywhere; }
  table.stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  table.stack tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  table.stack td { display: block; border: 0; padding: 0; text-align: left; white-space: normal; }
  table.stack td[data-head]::before { content: attr(data-head) ": "; color: var(--soft); } }
@page { size: A4; margin: 14mm 15mm; }
@media print { body { max-width: none; padding: 0; font-size: 8.7pt; line-height: 1.3; }
  h1 { font-size: 15pt; } h2 { font-size: 10.5pt; margin: 3mm 0 1mm; break-after: avoid; }
  .short { margin: 2mm 0; padding: 1mm 3mm; border: 1px solid var(--line);
    border-left: 4px solid var(--attention); background: none; }
  p { margin: 1mm 0; } li { margin: 0; } ul { margin: 1mm 0; }
  th, td { padding: .6mm 2mm .6mm 0; }
  .many { columns: 2; column-gap: 8mm; }
  .group { margin: 1.2mm 0; break-inside: avoid; } .bar { font-size: 8.5pt; line-height: 1.2; }
  .bar .track { height: 2.4mm; background: none; border-bottom: 1px solid var(--line); }
  svg { max-height: 22mm; } .pair { display: grid; grid-template-columns: 1.25fr 1fr; gap: 8mm; }
  .counts td.name { white-space: nowrap; }
  tr, .short, figure, table.plain { break-inside: avoid; }
  footer { margin-top: 3mm; font-size: 7.5pt; } }
"""
