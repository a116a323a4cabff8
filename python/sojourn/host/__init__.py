"""What this machine can do for live runs: readings, and their assessment."""
