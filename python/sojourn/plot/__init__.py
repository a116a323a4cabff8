"""Plots: the curves of a result and the matplotlib figures that draw them."""
