//! Senders and receivers as Linux does them, sans-IO.
