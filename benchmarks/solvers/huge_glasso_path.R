# huge's graphical lasso for ten λ of its own choice, as its users call it; the last graph counts.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("huge", function(x, penalty, threads) {
  edges_of(huge.glasso(correlation(x), nlambda = 10, verbose = FALSE)$path[[10]])
})
