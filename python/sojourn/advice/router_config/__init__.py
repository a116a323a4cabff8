"""The present configuration of a router: SQM files and the output of ``tc``."""
