"""The style of the page of an optimised net: light and dark, from a phone's width up, no scripts.

Time is shown by lightness of one hue and by length, so that it can be told apart without colours;
what was replaced is named in words beside its mark.
"""

STYLE = """
:root { color-scheme: light dark; --text: #1b2330; --quiet: #55606f; --page: #fff;
  --line: #dde2ea; --panel: #f5f7fa; --link: #0b57a4; --mark: #a34700; --bar: #8a97a8;
  --t0: #d3e1f0; --t1: #a9c8e6; --t2: #74a7d6; --t3: #4183bf; --t4: #1d5c98; --t5: #0a3565 }
@media (prefers-color-scheme: dark) { :root { --text: #dfe5ee; --quiet: #9aa7b8; --page: #12161d;
  --line: #2c3441; --panel: #1a2029; --link: #8cc2ff; --mark: #ffb066; --bar: #75849a;
  --t0: #1d2f45; --t1: #24476c; --t2: #2f6499; --t3: #4788c7; --t4: #7bb2e6; --t5: #c3e0fb } }
* { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 0 auto;
  padding: 1.5rem 1rem 4rem; color: var(--text); background: var(--page) }
h1 { font-size: 1.6rem; line-height: 1.25 } h2 { font-size: 1.25rem; margin: 2.5rem 0 .5rem }
h3 { font-size: 1.05rem; margin: 2rem 0 .3rem } h1, h2, p, .says { overflow-wrap: anywhere }
a { color: var(--link) } .quiet { color: var(--quiet) } .used { font-weight: 650 }
.mark { color: var(--mark); font-weight: 600 }
:focus-visible { outline: 3px solid var(--link); outline-offset: 1px }
:target { outline: 3px solid var(--mark); outline-offset: 2px }
summary { cursor: pointer } code, pre { font: 12.5px/1.5 ui-monospace, monospace }
pre { background: var(--panel); border: 1px solid var(--line); padding: .6rem; margin: .3rem 0;
  max-height: 26rem; overflow: auto }
.wide { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top }
th { font-weight: 600; color: var(--quiet) } td.n, th.n { text-align: right; white-space: nowrap }
td.ops { min-width: 13rem } td.says { min-width: 11rem } td.bars { width: 26%; min-width: 7rem }
.bar { display: block; height: .75rem; margin-top: .35rem; background: var(--bar); min-width: 1px }
.used .bar { background: var(--t4) }
.blocks, .blocks ul { list-style: none; margin: 0; padding: 0 }
.row { display: grid; align-items: center; column-gap: .7rem; padding: .1rem 0;
  grid-template-columns: minmax(11rem, 1fr) 19% 4.6rem 3.2rem 20.5rem;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums }
.row > .did { font-size: .9rem } .row > .n { text-align: right }
.name { padding-left: calc(var(--d) * .9rem + 1.1rem);
  text-indent: -1.1rem; overflow-wrap: anywhere }
.name::before { content: ""; display: inline-block; width: 1.1rem; text-indent: 0 }
summary.row > .name::before { content: "▸" } details[open] > summary.row > .name::before
  { content: "▾" }
summary.row::-webkit-details-marker { display: none }
.time { display: block; height: .85rem; min-width: 1px; border: 1px solid var(--t4) }
.t0 { background: var(--t0) } .t1 { background: var(--t1) } .t2 { background: var(--t2) }
.t3 { background: var(--t3) } .t4 { background: var(--t4) } .t5 { background: var(--t5) }
.key > span { display: inline-block; margin-right: .9rem; white-space: nowrap }
.key .time { display: inline-block; width: 1.4rem; vertical-align: -.1rem; margin-right: .3rem }
.hit { padding-left: calc(var(--d) * .9rem + 1.1rem); margin: .15rem 0 }
.trial { border: 1px solid var(--line); margin: .5rem 0; padding: .4rem .7rem }
.trial dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem .9rem;
  margin: .5rem 0 }
.trial dt { color: var(--quiet) } .trial dd { margin: 0; overflow-wrap: anywhere }
@media (max-width: 56rem) {
  .row { grid-template-columns: 1fr 4.6rem 3.2rem; padding: .3rem 0 }
  .row > .name, .row > .did { grid-column: 1 / -1 } .row > .did:empty { display: none }
  .row > .did { padding-left: calc(var(--d) * .9rem + 1.1rem) }
  .trial dl { grid-template-columns: 1fr } .trial dd { padding-left: 1rem } }
@media print { pre { max-height: none } }
"""
