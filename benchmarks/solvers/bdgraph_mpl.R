# BDgraph's birth-death search over graphs by marginal pseudo-likelihood, from the empty graph; an edge
# is in more than half of the posterior. As users call it, with more steps than its default of 5,000.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("BDgraph", function(x, penalty, threads) {
  set.seed(0)
  fit <- bdgraph.mpl(x, method = "ggm", iter = 20000, g.start = "empty", cores = threads, verbose = FALSE)
  edges_of(BDgraph::select(fit, cut = 0.5))
})
