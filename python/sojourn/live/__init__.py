"""Dashboards, metrics and control of a live run."""
