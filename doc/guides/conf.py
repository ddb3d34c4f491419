# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: devtools/docs --only guides."""

import importlib.util

project = 'Bluebell'
author = 'The Bluebell authors'
copyright = '2026, The Bluebell authors'
version = release = '0.1.0'
extensions = []
exclude_patterns = []
# Debian's package furo; without it the pages have the theme that Sphinx brings.
html_theme = 'furo' if importlib.util.find_spec('furo') else 'alabaster'
html_title = 'Bluebell'
html_static_path = ['_static']
html_css_files = ['bluebell.css']
html_copy_source = False
highlight_language = 'c'
nitpicky = True
