"""Presentation: figures as values, and their drawings."""
