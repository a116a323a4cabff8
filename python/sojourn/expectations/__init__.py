"""Expectations on metrics, such as ``ping_ms_p99 < 40``: pass, fail or undecided."""
