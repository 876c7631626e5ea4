"""The estimate on a graph, kept up to date; regressions at nodes."""
