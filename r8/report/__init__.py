"""Renderings of what was judged: pages, tables, charts. Nothing is computed here."""
