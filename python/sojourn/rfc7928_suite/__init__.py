"""RFC 7928 as a suite: scenarios, measurements, directions that the RFC states, and reports."""
