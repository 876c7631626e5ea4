# Neighbourhood selection by glmnet; an edge needs both of its nodes to choose each other.
source(file.path(Sys.getenv("BENCHMARK_SOLVERS"), "harness.R"))

measure("glmnet", function(x, penalty, threads) {
  z <- scale(x)
  neighbors <- function(node) {
    fit <- glmnet(z, z[, node], lambda = penalty, exclude = node, standardize = FALSE, intercept = FALSE)
    setdiff(which(as.vector(fit$beta) != 0), node)
  }
  chosen <- parallel::mclapply(seq_len(ncol(z)), neighbors, mc.cores = threads)
  matrix <- matrix(FALSE, ncol(z), ncol(z))
  matrix[cbind(rep(seq_along(chosen), lengths(chosen)), unlist(chosen))] <- TRUE
  edges_of(matrix & t(matrix))
})
