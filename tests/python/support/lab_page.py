"""The page of the lab without the site around it: what Sphinx adds are the colours of the theme."""

import shutil
from pathlib import Path

from support.shell import ROOT
from support.wasm import lab, module

HEAD = """<!doctype html>
<html lang="en" data-theme="light"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Lab</title>
<style>
html { --pst-color-text-base: #222832; --pst-color-text-muted: #48566b; --pst-color-border: #d1d5da;
  --pst-color-surface: #f3f4f5; --pst-color-link: #085d76; --pst-color-danger: #b4232d;
  --pst-font-family-monospace: monospace; }
html[data-theme="dark"] { --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
  --pst-color-border: #48566b; --pst-color-surface: #29313d; --pst-color-link: #3fb1c5;
  --pst-color-danger: #ff9a9a; background: #14181e; }
* { box-sizing: border-box; }
a { color: var(--pst-color-link); }
body { color: var(--pst-color-text-base); font-family: sans-serif; margin: 1rem; }
.visually-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden;
  clip-path: inset(50%); }
</style></head><body><main><h1>Lab</h1>
"""


def written(folder: Path) -> Path:
    """Write the page and all that it loads; return its file."""
    static = folder / "_static" / "lab"
    shutil.copytree(ROOT / "docs" / "_static" / "lab", static)
    (static / "generated.js").write_text(lab.script(module()), encoding="utf-8")
    page = folder / "docs" / "lab.html"
    page.parent.mkdir()
    content = (ROOT / "docs" / "_lab" / "page.html").read_text(encoding="utf-8")
    page.write_text(f"{HEAD}{content}</main></body></html>\n", encoding="utf-8")
    return page
