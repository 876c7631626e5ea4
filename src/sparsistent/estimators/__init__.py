"""scikit-learn estimators, one a file: who needs one need not load the others."""
