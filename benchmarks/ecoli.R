# The edges that a method finds in a table: Rscript ecoli.R method data n p
# One line an edge: two column numbers from 1. Methods: EBICglasso, huge mb + RIC, ggmModSelect.
arguments <- commandArgs(trailingOnly = TRUE)
n <- as.integer(arguments[3])
p <- as.integer(arguments[4])
X <- matrix(readBin(arguments[2], "double", n * p), n, p, byrow = TRUE)
suppressMessages(suppressWarnings({
  if (arguments[1] == "EBICglasso") {
    found <- qgraph::EBICglasso(cor(X), n, verbose = FALSE) != 0
  } else if (arguments[1] == "ggmModSelect") {
    found <- qgraph::ggmModSelect(cor(X), n, verbose = FALSE)$graph != 0
  } else {
    set.seed(0)
    path <- huge::huge(X, method = "mb", verbose = FALSE)
    found <- as.matrix(huge::huge.select(path, criterion = "ric", verbose = FALSE)$refit) != 0
  }
}))
edges <- which(found & upper.tri(found), arr.ind = TRUE)
write(t(edges), stdout(), ncolumns = 2)
