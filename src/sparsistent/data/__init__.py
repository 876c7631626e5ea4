"""From a table to moments: correlations of any kind, missing values, strong pairs, noise."""
