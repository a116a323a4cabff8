"""What test suites share: quotations, cases, metrics, selection of sections, tables and figures."""
