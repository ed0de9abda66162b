"""Sphinx: docs/ to HTML by `sphinx-build -W docs build/html` (Debian: python3-sphinx,
python3-myst-parser)."""
project = "tessera"
copyright = "the tessera authors"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
myst_heading_anchors = 3
html_theme_options = {"page_width": "1100px", "fixed_sidebar": True}
