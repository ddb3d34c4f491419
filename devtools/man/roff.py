# SPDX-License-Identifier: BSD-3-Clause
"""Shared by manpage and man3."""


def escape(text):
    """Escapes text so that roff shows it unchanged."""
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return '\\&' + text if text.startswith(('.', "'")) else text
