"""Arrays in, arrays out: moments, the Gaussian likelihood, and the compiled inner loops."""
