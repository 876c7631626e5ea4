"""The paper's two algorithms, the searches beyond it, and the path that a run leaves behind."""
