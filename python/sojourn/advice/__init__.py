"""Advice on shaping an access link: candidates, their simulation, grades, and lines to copy."""
