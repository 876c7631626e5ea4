# huge's normal scores, then its neighbourhood selection with the λ of its rotation information criterion.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("huge", function(x, penalty, threads) {
  set.seed(0)
  path <- huge(huge.npn(x, verbose = FALSE), method = "mb", verbose = FALSE)
  edges_of(huge.select(path, criterion = "ric", verbose = FALSE)$refit)
})
