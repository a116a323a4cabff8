"""Comparison of simulated runs with others: tolerances, the table and its page."""
