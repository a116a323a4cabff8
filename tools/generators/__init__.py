"""Generators of committed files, one module per catalogue."""
