//! Scenarios, runs, records and statistics.
