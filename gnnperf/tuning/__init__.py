"""Search for a configuration whose networks predict families that they never saw (Optuna)."""
