# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx: sphinx-build -W -b html doc/guides OUT (devtools/test --all --only docs)."""

project = 'Bluebell'
author = 'The Bluebell authors'
copyright = '2026, The Bluebell authors'
version = release = '0.1.0'
extensions = []
exclude_patterns = []
html_theme = 'alabaster'
html_theme_options = {'description': 'Poll-mode RDMA transport on DPDK and rdma-core'}
highlight_language = 'c'
nitpicky = True
