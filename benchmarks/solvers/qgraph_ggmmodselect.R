# qgraph's stepwise search without penalties.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("qgraph", function(x, penalty, threads) {
  edges_of(suppressWarnings(suppressMessages(ggmModSelect(correlation(x), nrow(x), gamma = 0.5, nCores = threads, verbose = FALSE)))$graph)
})
