# The graphical lasso of its inventors; like the others, the diagonal is not penalized.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("glasso", function(x, penalty, threads) {
  edges_of(glasso(correlation(x), penalty, penalize.diagonal = FALSE)$wi)
})
