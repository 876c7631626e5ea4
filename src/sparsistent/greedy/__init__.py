"""The paper's two algorithms, the refit that both share, and the path that a run leaves behind."""
