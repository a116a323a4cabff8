"""Congestion controls as suites: the criteria of RFC 9743, and the test cases of BBR's draft."""
