"""Every regime and every tuned number of the algorithms.

A number is here if another value would give the same graph later, or with more or fewer digits:
tolerances, sizes at which one method takes over from another, blocks of work. What defines an
algorithm (the backward factor, a level) is a parameter of that algorithm instead.

Functions below the estimators take a ``plan``; without one they use `PLAN`. Tests pass another one
to reach a regime with a small problem.
"""

import math
from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Plan:
    """The numbers, by the part of the package that reads them.

    Each has a comment with its unit and the reason, or the measurement, behind its value.
    """

    # The estimate: how W is stored. Up to so many variables as a matrix, as models of the profile
    # search need it; beyond, only where more than a share of all pairs are candidates. On grids
    # sparse rows are as fast at 150 variables, and take 2/3 of the time at 600. Regressions have
    # all correlations in double precision up to there: quantised ones save 6% at 289, 15% at 400;
    # and a node's profile search has as many candidates where correlations do not fit. Up to that
    # share, as well, a sparse factor is solved with to invert, column by column.
    max_dense_variables: int = 256
    max_sparse_share: float = 0.05
    # Sparse rows with more than this share of all entries of W take as long as a matrix, and as
    # much memory: a random graph of degree six on 2,000 variables fills nine in ten of them, and a
    # search takes 15 s instead of 2.
    max_row_share: float = 1 / 3
    # A pair is a candidate where |w| is above this share of the least |s - w| that gains enough, or
    # |s| is above the rest of it.
    covariance_share: float = 0.25

    # Refits. The tolerance, by which a node may be off, as a share of the resolution, the smallest
    # |s - w| that matters; a larger one where more variables than this are all correlated and each
    # digit is expensive. There, decisions are taken as they are, too.
    tolerance_share: float = 1e-3
    correlated_tolerance_share: float = 5e-3
    max_exact_correlated: int = 600
    # There, a search comes to its end with a tolerance that is so many times larger first, and goes
    # on from there: of tables like gene expression the penalised loss is the same within 0.2%.
    search_looseness: float = 10.0
    # For few variables the last digits cost little: the tolerance rises from this one, at the first
    # number of variables, to the share above, at the second, so that the time has no step.
    tight_tolerance: float = 1e-11
    max_tight_variables: int = 16
    min_loose_variables: int = 64
    # Entries of W that change by less than this many tolerances (twice as many where W is sparse)
    # may stay as they are; of sparse rows, changes below a share of that are not written.
    drop_share: float = 0.8
    negligible_change: float = 0.15
    # Nodes with a covariance above this with a changed node are in the update's neighbourhood. With
    # sparse rows, a node outside it may be off by so many tolerances: no decision depends on that.
    # Worth 18 to 22% on grids.
    near_covariance: float = 0.03
    far_tolerance: float = 4.0
    # Updates for each variable in one refit, after which Newton's method takes over.
    max_updates: int = 1_000
    # Nodes that are off by more than so many tolerances are updated first.
    update_priority: float = 8.0
    # A new edge may explain at most this share of a node's residual variance at once; while it has
    # been inserted in part, refits are looser by a factor, and in searches on subsamples.
    max_variance_taken: float = 0.9
    rough_tolerance: float = 100.0
    # An error of W counts for the loss by its square times that of θ: below this residual variance
    # it weighs more.
    min_residual_variance: float = 0.04

    # The loss. Its change is computed from so many nodes at most, those whose entries of Θ have
    # changed by more than a share of the largest change. A dense W is factorised for it after so
    # many refits for each squared variable: of 1,000 after 200, which takes 5% of the time.
    max_moved_nodes: int = 96
    min_moved_share: float = 3e-3
    loss_refresh: float = 2e-4

    # Decisions. Two gains are close where their roots differ by less than so many times the error
    # of W. Then W is refitted to this share of the error. A pair competes with those that have an
    # end with a covariance above a bound with one of its own.
    decision_margin: float = 10.0
    tightening: float = 0.01
    competitor_covariance: float = 0.5

    # The profile search. Whether moves start at the neighbourhoods of all nodes, or at the graph of
    # the paper's search alone. Θ is refitted until no more than this share of the threshold is left
    # to gain.
    starts_at_neighborhoods: bool = True
    profile_tolerance: float = 1e-2
    # Variables and edges up to which there are models: one of 1,000 and 1,700 takes 0.6 s.
    max_model_variables: int = 1_024
    max_model_edges: int = 3_000
    # Pairs of a model besides the edges, ...
    model_pairs: int = 256
    # ... and by what share of the threshold a prediction may err: pairs that cannot gain as much
    # are not among them, and moves that are predicted to raise F by no more than that are tried,
    # until so many in a row have failed. With .1 some graphs of few variables end one edge worse.
    prediction_error: float = 0.3
    max_failures: int = 6
    # Moves that are carried out at once at most; none of two changes the variance of the other's
    # entries by more than the square of this share. They are kept if F falls by this share of what
    # was predicted, and one that is carried out alone if it falls by this share of the threshold. A
    # search ends when the moves of a model lower F by no more than that for each edge.
    max_moves: int = 64
    max_coupling: float = 0.25
    min_share: float = 0.25
    min_fall: float = 1e-3

    # The resolution on a graph that no search has found.
    default_resolution: float = 0.1

    # Estimates on a given graph (engine/solve.py, engine/inverse_on_graph.py, engine/precision.py)

    # Variables up to which a precision is factorised as a dense matrix. At 128, with two edges a
    # variable, LAPACK takes 0.13 ms; a sparse factor 0.02 ms, after an analysis of 0.29 ms.
    max_dense_factor: int = 128
    # Columns of such a system that are solved for at a time: with more, of 5,041 variables, they
    # leave the cache and take four times as long.
    solve_columns: int = 64
    # The residual (a correlation) at which an estimate is accepted; for up to so many variables the
    # last digits cost nothing.
    polished_residual: float = 1e-8
    polished_residual_for_few: float = 1e-13
    few_variables: int = 64
    # Free entries (variables and edges) up to which Newton steps may factorise the Hessian, and
    # entries for each product with it that may come before. A factorisation takes as long as 45
    # products at 1,232 entries and 75 at 2,664; it comes after about half as many, as it serves
    # later steps as well.
    max_direct_entries: int = 3_000
    entries_per_product: int = 50
    # Variables up to which the exact covariance is a dense matrix (32 MB); of more, entries up to
    # ``near_covariance`` are dropped, which changes steps and not what they converge to.
    max_dense_inverse: int = 2_000
    # Where a Newton step leaves more than this share of the residual, W is computed afresh.
    slow_convergence: float = 0.3
    # Of a known graph, squared degrees for each variable, on average, up to which the correlations
    # of second neighbours are computed to start with.
    max_near_pairs: int = 200

    # --- data: moments, screening, missing values ---

    # Array entries that a compiled call works on before it returns, some hundredths of a second, so
    # that Ctrl-C is served; also entries of the largest temporary array, and of four tiles of
    # correlations: larger ones are not faster.
    entries_per_call: int = 1 << 22
    # Bytes of a table, in double precision, up to which it is read into memory as a whole.
    max_table_bytes: int = 1 << 30
    # Entries of the rows whose products are added up at a time, half a megabyte, which stays in
    # cache; but not fewer rows than this where products are larger than that themselves. Of 250
    # variables it takes 1.1 to 1.2 times the product of all rows, with eight times as many 1.3.
    cached_entries: int = 1 << 16
    min_product_rows: int = 1_024
    # Products of samples in a square tile of correlations: a fraction of a second between two polls
    # for Ctrl-C.
    tile_products: int = 6 * 10**9
    # Variables whose unit columns are one block on a cluster, a multiple of those of a panel. With
    # 500 samples a block has 33 MB, and a task, all pairs of two blocks, takes some tenths of a
    # second.
    cluster_rows: int = 8_192
    # Quantised rows, or else single precision, find pairs above a cutoff where the error of a
    # correlation is at most this share of it: pairs within the error are computed again.
    max_relative_error: float = 1 / 3
    # Correlations of pairs that are kept, for each variable: two nodes of a lattice that are
    # neighbours, or have neighbours in common, need the same ones, as does the estimate.
    kept_products: int = 16
    # The nearest correlation matrix is found when its diagonal is one but for this, in the root
    # mean square; the step that remains leaves about the square. EM has converged when the next
    # quasi-Newton step is shorter: an upper bound of how far means, variances and covariances are
    # off at unit variances.
    moments_tolerance: float = 1e-5
    # Rounds of plain EM at first, as gradients far from the maximum mislead quasi-Newton steps.
    plain_em_rounds: int = 3
    # Rounds of an iteration after which it does not converge; where it does, it takes tens. Of EM
    # one takes 0.04 s for 1,000 samples of 400 variables with a tenth of the values missing.
    max_rounds: int = 500
    # Earlier steps that a quasi-Newton step takes account of, two triangles of memory each.
    em_memory: int = 10
    # Columns, at equal distances, whose tails and autocorrelations are measured: so many give the
    # factor of a table to within 1/1,000. Of a table that is read in blocks, so many values of them
    # are kept.
    max_noise_columns: int = 256
    max_noise_values: int = 1 << 22

    # --- regressions at nodes ---
    # Bytes of all correlations, quantised or in double precision; beyond, rows are multiplied.
    max_correlation_bytes: int = 1 << 30
    # Candidates that a node may compare in double precision on average with quantised correlations,
    # as a share of the variables; with more, all correlations in double precision would cost less.
    exact_products_of_node: float = 1 / 16
    # Where correlations do not fit, pairs whose |s| exceeds this share of what a candidate needs at
    # first are kept, if they are few: on a chain of 30,000 variables and 300 samples the search
    # takes 10.7 s of processor time and 0.65 GB; without them 16.7 and 0.29.
    strong_pair_share: float = 0.5

    def refit_tolerance(self, p: int, is_dense: bool, resolution: float) -> float:
        """By how much a node may be off where differences |s - w| of this size matter."""
        correlated = is_dense and p > self.max_exact_correlated
        share = self.correlated_tolerance_share if correlated else self.tolerance_share
        few, many = math.log(self.max_tight_variables), math.log(self.min_loose_variables)
        looseness = min(max((math.log(max(p, 1)) - few) / (many - few), 0.0), 1.0)
        loose = resolution * share
        return float(min(self.tight_tolerance ** (1.0 - looseness) * loose**looseness, loose))

    def loose(self) -> "Plan":
        """For searches of which only the rough course counts, as on subsamples.

        Refits are loose, decisions are not taken again, and the loss is followed roughly: of two
        pairs that gain about as much either may come first. Paths of 200 variables on 20 subsamples
        take a sixth of the time, and StARS chooses a threshold that differs by less than 1%.
        """
        return replace(
            self,
            tolerance_share=self.rough_tolerance * self.tolerance_share,
            tightening=1.0,
            max_moved_nodes=self.max_moved_nodes // 4,
        )

    def for_correlated(self) -> "Plan":
        """For tables in which most pairs are correlated, where nearly every decision is close.

        452 stocks take 0.05 s instead of 0.45, and the penalised loss is the same within 0.02%.
        """
        return replace(self, max_exact_correlated=self.max_dense_variables)

    def for_weak_dependences(self) -> "Plan":
        """For profile searches where the paper's graph needs few moves, if any.

        On networks of 50 variables the default takes 20 to 35 ms instead of 70 to 150, and finds
        graphs of the same MCC within 0.01.
        """
        return replace(
            self,
            starts_at_neighborhoods=False,
            model_pairs=self.model_pairs // 2,
            max_failures=self.max_failures // 3,
        )

    def refresh_interval(self, p: int) -> int:
        """Refits after which the loss of a dense W is taken afresh."""
        return int(self.loss_refresh * p**2)

    def describe(self, p: int, n: int | None) -> str:
        """What ``verbose=2`` shows: the size of a problem and a line for each number."""
        size = [f"p = {p} variables", f"n = {'unknown' if n is None else n} samples"]
        numbers = [f"{field.name} = {getattr(self, field.name)!r}" for field in fields(self)]
        return "\n".join([*size, *numbers]) + "\n"


PLAN = Plan()
