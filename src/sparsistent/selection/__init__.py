"""Where to stop: thresholds by name."""
