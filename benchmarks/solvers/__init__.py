"""Who is measured: one file each, and a line here that says what it needs.

A Python file has ``version()`` and ``setup(X, penalty, job)``, which returns the function to time;
an R file calls ``measure`` of ``harness.R``. Everybody starts from the data matrix in memory and
ends with the edges.
"""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Solver:
    """A way from data to a graph, or a floor under all ways.

    ``home`` says where it runs: "own" (this environment), "rivals" (.venv-rivals) or "R", with the
    ``package`` that it needs there. ``penalized`` ones are given λ; ``threaded`` ones can use more
    than one core; ``largest`` is the most variables that it is meant for.
    """

    name: str
    file: str
    home: str = "own"
    package: str = ""
    penalized: bool = False
    threaded: bool = False
    floor: bool = False
    largest: int = 1_000_000


OURS = (
    Solver("GlobalGreedy", "global_greedy.py", threaded=True),
    Solver("NeighborhoodGreedy", "neighborhood_greedy.py", threaded=True),
)
FLOORS = (
    Solver("X'X, float64", "product64.py", threaded=True, floor=True, largest=10_000),
    Solver("X'X, float32", "product32.py", threaded=True, floor=True, largest=10_000),
    Solver("X'X, rounded rows", "product_rounded.py", threaded=True, floor=True, largest=10_000),
    Solver("X'X, float32 in tiles", "product_tiles.py", threaded=True, floor=True),
)
RIVALS = (
    Solver("huge ct", "huge_ct.R", "R", "huge", penalized=True),
    Solver("huge mb", "huge_mb.R", "R", "huge", penalized=True),
    Solver("huge glasso", "huge_glasso.R", "R", "huge", penalized=True),
    Solver("huge glasso, ten λ", "huge_glasso_path.R", "R", "huge", largest=1_000),
    Solver("glasso", "glasso.R", "R", "glasso", penalized=True),
    Solver("scikit-learn graphical_lasso", "graphical_lasso.py", penalized=True, threaded=True),
    Solver("GGLasso", "gglasso_admm.py", "rivals", penalized=True, threaded=True),
    Solver("GGLasso by blocks", "gglasso_blocks.py", "rivals", penalized=True, threaded=True),
    Solver("scikit-learn Lasso by node", "lasso_nodes.py", penalized=True, threaded=True),
    Solver("glmnet by node", "glmnet.R", "R", "glmnet", penalized=True, threaded=True),
    Solver("qgraph EBICglasso", "qgraph_ebicglasso.R", "R", "qgraph", largest=100),
    Solver("qgraph ggmModSelect", "qgraph_ggmmodselect.R", "R", "qgraph", largest=100),
)
# Those that choose their own penalty, whose graphs are compared with ours.
CHOOSING = (
    Solver("BDgraph mpl", "bdgraph_mpl.R", "R", "BDgraph"),
    Solver("huge mb, RIC", "huge_mb_ric.R", "R", "huge"),
    Solver("EBICglasso", "qgraph_ebicglasso.R", "R", "qgraph"),
    Solver("GraphicalLassoCV", "graphical_lasso_cv.py"),
    Solver("adaptive lasso, EBIC", "adaptive_lasso_ebic.py", "rivals", "skglm"),
)
SEARCHES = (
    Solver("GlobalGreedy after correlations", "global_search.py"),
    Solver("NeighborhoodGreedy after correlations", "neighborhood_search.py"),
)
# Our calls as users type them, and the option that never makes a dense matrix, for comparison.
DEFAULTS = (
    Solver("GlobalGreedy()", "default_global.py", threaded=True),
    Solver("GlobalGreedy(sparse_output=True)", "sparse_global.py", threaded=True),
    Solver("NeighborhoodGreedy()", "default_nodes.py", threaded=True),
)
# For tables with heavy tails, with missing values, and for resamples.
BY_RANKS = (
    Solver("SciPy's spearmanr alone", "scipy_spearman.py", floor=True, largest=2_000),
    Solver('GlobalGreedy(correlation="spearman")', "global_spearman.py", threaded=True),
    Solver('GlobalGreedy(correlation="kendall")', "global_kendall.py", threaded=True),
    Solver('GlobalGreedy(correlation="nonparanormal")', "global_nonparanormal.py", threaded=True),
    Solver("huge npn, mb, RIC", "huge_npn_mb_ric.R", "R", "huge"),
)
WITH_HOLES = (Solver('GlobalGreedy(missing="em")', "global_em.py", threaded=True),)
RESAMPLES = (
    Solver("bootstrap, 100 resamples", "bootstrap_global.py"),
    Solver("graphical_lasso, 100 resamples", "bootstrap_graphical_lasso.py", penalized=True),
)
