# huge's neighbourhood selection; an edge needs both of its nodes to choose each other.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("huge", function(x, penalty, threads) {
  edges_of(huge.mb(correlation(x), lambda = penalty, sym = "and", verbose = FALSE)$path[[1]])
})
