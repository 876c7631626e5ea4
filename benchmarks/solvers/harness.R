# Time one R solver in this process; the arguments and the files are those of benchmarks/worker.py.
# A solver's file calls measure() with its package and a function of data, λ and threads.

correlation <- function(x) {
  # R's own cor() takes long; with a good BLAS this does not.
  z <- scale(x)
  crossprod(z) / (nrow(z) - 1)
}

edges_of <- function(matrix) {
  edges <- Matrix::which(matrix != 0, arr.ind = TRUE)
  edges[edges[, 1] < edges[, 2], , drop = FALSE]
}

write_result <- function(path, version, edges, seconds) {
  part <- paste0(path, ".part")
  writeLines(c(paste("version", version), paste("seconds", paste(format(seconds, digits = 6), collapse = " ")),
               "certificate ", "edges"), part)
  write.table(edges - 1, part, append = TRUE, row.names = FALSE, col.names = FALSE)
  file.rename(part, path)
}

# CPU seconds where BENCHMARK_CLOCK is "cpu", for machines that are busy with other things too.
clock <- function() {
  if (Sys.getenv("BENCHMARK_CLOCK") == "cpu") sum(proc.time()[-3]) else as.numeric(Sys.time())
}

timed <- function(fit, repeats, budget) {
  seconds <- c()
  while (length(seconds) == 0 || (length(seconds) < repeats && sum(seconds) < budget)) {
    started <- clock()
    edges <- fit()
    seconds <- c(seconds, clock() - started)
  }
  list(edges = edges, seconds = seconds)
}

measure <- function(package, fit) {
  suppressPackageStartupMessages(library(package, character.only = TRUE))
  arguments <- commandArgs(TRUE)
  threads <- as.integer(arguments[2])
  penalties <- if (length(arguments) > 5) as.numeric(arguments[-(1:5)]) else NA
  shape <- scan(file.path(arguments[1], "shape.txt"), quiet = TRUE)
  x <- matrix(readBin(file.path(arguments[1], "X.bin"), "double", prod(shape)), nrow = shape[1], byrow = TRUE)
  blas <- basename(dirname(extSoftVersion()[["BLAS"]]))
  version <- paste0(package, " ", packageVersion(package), ", R ", getRversion(), ", ", blas)
  invisible(fit(x[, 1:8], penalties[1], threads))
  for (k in seq_along(penalties)) {
    result <- timed(function() fit(x, penalties[k], threads), as.integer(arguments[3]), as.numeric(arguments[4]))
    write_result(file.path(arguments[5], paste0(k - 1, ".txt")), version, result$edges, result$seconds)
  }
}
