"""Documents, tables and figures as values, and their renderers."""
