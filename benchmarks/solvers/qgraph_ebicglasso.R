# qgraph's graphical lasso; it chooses its λ by the extended BIC.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("qgraph", function(x, penalty, threads) {
  edges_of(suppressWarnings(suppressMessages(EBICglasso(correlation(x), nrow(x), verbose = FALSE))))
})
