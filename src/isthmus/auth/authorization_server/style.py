"""How the pages look: one style sheet of our own, as no page loads anything from elsewhere."""

import hashlib

__all__ = ["STYLE", "STYLE_NAME"]

# Contrast is at least 7:1 for text and 3:1 for borders of fields and for the ring of the focus, in
# both schemes. Sizes are relative, so that a page zoomed to 400 % or 320 px wide stays one column.
STYLE = b"""\
:root {
  color-scheme: light dark;
  --ground: #f3f4f7; --card: #ffffff; --text: #14171f; --soft: #4b5263; --line: #d9dce4;
  --edge: #767d8f; --accent: #2547c4; --accent-over: #1b369c; --on-accent: #ffffff;
  --well: #f3f4f7; --warn: #fff4d6; --warn-line: #b07a00; --warn-text: #4d3500;
  --bad: #fdeaea; --bad-line: #c22f2f; --bad-text: #7a1414;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #0f1117; --card: #191c25; --text: #eceef4; --soft: #b4bac9; --line: #2e3342;
    --edge: #7f879b; --accent: #a9bcff; --accent-over: #c6d3ff; --on-accent: #0f1630;
    --well: #11141b; --warn: #2d2410; --warn-line: #c99a2e; --warn-text: #ffe3a3;
    --bad: #331717; --bad-line: #e06464; --bad-text: #ffc9c9;
  }
}
*, *::before, *::after { box-sizing: border-box; }
html { font: 100%/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body { margin: 0; min-height: 100vh; display: flex; flex-direction: column;
  align-items: center; justify-content: center; padding: 1.5rem 1rem;
  background: var(--ground); color: var(--text); overflow-wrap: anywhere; }
main { width: 100%; max-width: 30rem; background: var(--card); border: 1px solid var(--line);
  border-radius: 1rem; padding: 2rem; box-shadow: 0 1px 2px #0000000d, 0 12px 32px #00000012; }
.place { margin: 0 0 1.25rem; color: var(--soft); font-size: .875rem; font-weight: 600; }
.place::before { content: ""; display: inline-block; width: .625rem; height: .625rem;
  margin-inline-end: .5rem; border-radius: 50%; background: var(--accent); }
h1 { margin: 0 0 .5rem; font-size: 1.5rem; line-height: 1.25; letter-spacing: -.01em; }
h2 { margin: 1.5rem 0 .5rem; font-size: .875rem; color: var(--soft); }
p { margin: 0 0 1rem; }
code { font: .875em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
a { color: var(--accent); }
.soft { color: var(--soft); font-size: .875rem; }
.badge { display: inline-block; margin: .25rem 0 .375rem; padding: .125rem .625rem; font-size: .8125rem;
  font-weight: 600; border: 1px solid var(--line); border-radius: 1rem; color: var(--soft); }
.badge.unverified { border-color: var(--warn-line); background: var(--warn);
  color: var(--warn-text); }
.notice { margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem;
  border-inline-start: .25rem solid var(--warn-line); background: var(--warn);
  color: var(--warn-text); }
.notice.bad { border-color: var(--bad-line); background: var(--bad); color: var(--bad-text); }
.target { margin: 0 0 1rem; padding: .75rem 1rem; border-radius: .5rem; background: var(--well);
  border: 1px solid var(--line); }
.target strong { display: block; font-size: 1.125rem; }
.target span { color: var(--soft); font-size: .875rem; }
ul.scopes { margin: 0; padding: 0; list-style: none; border: 1px solid var(--line);
  border-radius: .5rem; }
ul.scopes li { padding: .625rem 1rem; }
ul.scopes li + li { border-top: 1px solid var(--line); }
ul.scopes code { display: block; color: var(--soft); }
details { margin: 1.25rem 0 0; }
summary { cursor: pointer; padding: .5rem 0; color: var(--soft); font-size: .875rem; }
dl { margin: 0; font-size: .875rem; }
dt { color: var(--soft); }
dd { margin: 0 0 .625rem; }
label { display: block; margin: 0 0 .25rem; font-weight: 600; }
input { display: block; width: 100%; min-height: 2.75rem; margin: 0 0 1rem; padding: .5rem .75rem;
  font: inherit; color: var(--text); background: var(--card); border: 1px solid var(--edge);
  border-radius: .5rem; }
button { flex: 1 1 9rem; min-height: 2.75rem; padding: .5rem 1rem; font: inherit; font-weight: 600;
  cursor: pointer; border: 1px solid var(--edge); border-radius: .5rem; background: var(--card);
  color: var(--text); }
button:hover { background: var(--well); }
button.main { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
button.main:hover { border-color: var(--accent-over); background: var(--accent-over); }
button.plain { flex: none; min-height: 0; padding: .25rem 0; border: 0; background: none;
  color: var(--accent); text-decoration: underline; }
:focus-visible { outline: .1875rem solid var(--accent); outline-offset: .125rem; }
.choice { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1.5rem 0 0; }
.who { display: flex; flex-wrap: wrap; align-items: baseline; column-gap: .75rem;
  margin: 1.25rem 0 0; padding: .75rem 0 0; border-top: 1px solid var(--line); color: var(--soft);
  font-size: .875rem; }
.who strong { color: var(--text); }
@media (max-width: 26rem) {
  body { padding: 0; justify-content: flex-start; background: var(--card); }
  main { padding: 1.25rem 1rem 2rem; border: 0; border-radius: 0; box-shadow: none; }
}
@media (forced-colors: active) { .place::before { background: CanvasText; } }
"""

STYLE_NAME = f"style-{hashlib.sha256(STYLE).hexdigest()[:12]}.css"
"""Its name changes with it, so that browsers may keep it for as long as they like."""
