# The lassos of the paper, as a process that answers until its input ends: one start for a whole run.
# A request is four integers (operation, p, length, 0) and doubles; an answer is doubles.
#   1  p * p doubles, a correlation matrix that later requests use; no answer
#   2  graphical lasso: penalty, tolerance -> precision matrix
#   3  lasso of one node on the others: node (from 1), then penalties, falling
#      -> p coefficients for each penalty
suppressPackageStartupMessages({library(glasso); library(glmnet)})
input <- file("stdin", "rb")
output <- file("/dev/stdout", "wb", raw = TRUE)

graphical_lasso <- function(penalty, tolerance) {
  start <- if (is.null(state$fit)) list() else
    list(start = "warm", w.init = state$fit$w, wi.init = state$fit$wi)
  arguments <- list(state$S, penalty, thr = tolerance, penalize.diagonal = FALSE)
  state$fit <<- do.call(glasso, c(arguments, start))
  state$fit$wi
}

# p rows with the same second moments as the n rows of the data: the same lasso, and cheaper.
condensed_rows <- function(S) {
  spectrum <- eigen(S, symmetric = TRUE)
  sqrt(nrow(S)) * t(spectrum$vectors) * sqrt(pmax(spectrum$values, 0))
}

node_lasso <- function(node, penalties) {
  if (is.null(state$rows)) state$rows <<- condensed_rows(state$S)
  fit <- glmnet(state$rows[, -node], state$rows[, node], lambda = penalties, standardize = FALSE,
                intercept = FALSE, thresh = 1e-10)
  coefficients <- matrix(0, ncol(state$S), length(penalties))
  coefficients[-node, ] <- as.matrix(fit$beta)
  coefficients
}

state <- list()
repeat {
  request <- readBin(input, "integer", 4)
  if (length(request) < 4) break
  p <- request[2]
  numbers <- readBin(input, "double", request[3])
  if (request[1] == 1) {
    state <- list(S = matrix(numbers, p))
    next
  }
  answer <- if (request[1] == 2) graphical_lasso(numbers[1], numbers[2]) else
    node_lasso(numbers[1], numbers[-1])
  writeBin(as.vector(answer), output)
  flush(output)
}
