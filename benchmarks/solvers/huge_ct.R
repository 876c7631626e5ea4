# huge's thresholding of correlations.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("huge", function(x, penalty, threads) {
  edges_of(huge.ct(correlation(x), lambda = penalty, verbose = FALSE)$path[[1]])
})
