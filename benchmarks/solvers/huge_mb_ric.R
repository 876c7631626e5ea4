# huge's neighbourhood selection with the λ of its rotation information criterion, as users call it.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("huge", function(x, penalty, threads) {
  set.seed(0)
  edges_of(huge.select(huge(x, method = "mb", verbose = FALSE), criterion = "ric", verbose = FALSE)$refit)
})
