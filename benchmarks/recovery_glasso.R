# The wrong edges of glasso's best penalty in hindsight: Rscript recovery_glasso.R data truth p draws
# One line a draw: missed and extra edges.
arguments <- commandArgs(trailingOnly = TRUE)
p <- as.integer(arguments[3])
truth <- matrix(FALSE, p, p)
truth[as.matrix(read.table(arguments[2]))] <- TRUE
truth <- (truth | t(truth))[upper.tri(truth)]
data <- file(arguments[1], "rb")
for (draw in seq_len(as.integer(arguments[4]))) {
  S <- matrix(readBin(data, "double", p * p), p, p)
  largest <- max(abs(S[upper.tri(S)]))
  best <- c(Inf, Inf)
  for (rho in exp(seq(log(0.9 * largest), log(0.05 * largest), length.out = 100))) {
    found <- abs(glasso::glasso(S, rho)$wi[upper.tri(S)]) > 1e-8
    wrong <- c(sum(truth & !found), sum(found & !truth))
    if (sum(wrong) < sum(best)) best <- wrong
    if (sum(best) == 0 || sum(found) > 4 * sum(truth)) break
  }
  cat(best, "\n")
}
