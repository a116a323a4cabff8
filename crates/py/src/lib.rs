//! PyO3 bindings: translates, decides nothing.
