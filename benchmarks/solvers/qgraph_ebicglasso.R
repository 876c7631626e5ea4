# qgraph's graphical lasso; it chooses its λ by the extended BIC. Its check of the correlations is off,
# which refuses data with fewer samples than variables and changes nothing elsewhere.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("qgraph", function(x, penalty, threads) {
  edges_of(suppressWarnings(suppressMessages(EBICglasso(correlation(x), nrow(x), checkPD = FALSE, verbose = FALSE))))
})
