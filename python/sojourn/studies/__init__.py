"""Studies: comparison of results with published numbers and claims."""
