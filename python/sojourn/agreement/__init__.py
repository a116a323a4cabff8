"""Comparison of simulated with live runs: tolerances, the table and its page."""
