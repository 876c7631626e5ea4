"""The maximum-likelihood estimate on a graph, kept up to date while edges come and go.

Θ̂_E minimises L(Θ) = tr(ΘS) − log det Θ over matrices whose off-diagonal support is E. Its inverse
W agrees with S on E and the diagonal. :class:`FittedGraph` holds both for the current graph. A new
edge between two components has its estimate in closed form, so a forest never iterates; any other
change is put right node by node (see :mod:`sparsistent.core.relaxation`), in a block of nodes
around it where correlation decays, else in all of W. Where that gets nowhere, because variables
nearly determine each other, Newton's method solves the component as a whole. All of this is at unit
variances.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

from sparsistent.core import edges as gains
from sparsistent.core import relaxation as kernels
from sparsistent.core.factorisation import factorise
from sparsistent.core.likelihood import invert
from sparsistent.core.moments import LEAST_VARIANCE, Array, is_collinear
from sparsistent.core.newton import newton
from sparsistent.greedy.covariance_rows import MOST_DENSE, CovarianceRows, Places, new_block
from sparsistent.greedy.forest import forest_precision, is_in_tree
from sparsistent.greedy.graph import Graph, Integers, doubled, with_room

# No node may be wrong by more than this share of the resolution when a step's refit ends; for few
# variables the last digits cost nothing, and where many are all correlated each costs a lot.
TOLERANCE = 1e-3
TOLERANCE_IN_A_CROWD = 5e-3
RESOLUTION = 0.1
FEW = 64
TOLERANCE_FOR_FEW = 1e-11
# Entries of W that change by less than this many times the tolerance may be left as they are.
DROP_SHARE = 0.8
DROP_SHARE_WHEN_SPARSE = 1.6
# Nodes of sparse rows with a covariance up to this many times the tolerance are as good as apart.
APART = 0.8
# Nodes with a covariance above this are near each other. Of sparse rows, one that is not near the
# pair that has changed may be wrong by so many times the tolerance: in its covariance with nodes
# near that pair, which is too small for anybody to decide on.
NEAR = 0.03
FAR = 4.0
# Most nodes around which one block is made.
MOST_STARTS = 32
# Up to this many variables, and where it has more than this share of them, a block is all of W.
SMALL = 128
MOST_OF_ALL = 0.4
# Updates of nodes, for each variable, after which Newton's method takes over, those after which it
# does when more digits are wanted, and the largest number of free entries that it is given.
MOST_UPDATES = 1_000
CHEAP = 50
MOST_ENTRIES = 3_000
# An estimate that cannot be brought below this mismatch does not exist, to the precision of
# floating-point numbers.
MISMATCH = 1e-7
# The change of the loss is that of the nodes whose entries have changed most, up to this many: the
# estimate is a minimum, so the others count by the square of their change. Where all of W changes
# at each step, the loss is taken afresh after so many changes, and each time for few variables. So
# it is after a change of more than this, of which the error of W would make too much.
MOST_MOVED = 96
REFRESH = 16
ABRUPT = 0.5

NO_VARIABLES = np.zeros(0, np.int64)
# Of all of W, which is not written back.
NO_SLOTS = np.zeros((0, 0), np.int32)


class NoEstimateError(ValueError):
    """No maximum-likelihood estimate exists on the graph that was asked for.

    Attributes
    ----------
    node : int
        A variable that its neighbours determine exactly.
    neighbors : list of int
        Those neighbours.
    """

    def __init__(self, node: int, neighbors: list[int]) -> None:
        super().__init__(node, neighbors)
        self.node = node
        self.neighbors = neighbors

    def __str__(self) -> str:
        return f"variable {self.node} has no variance left given {self.neighbors}"


@dataclass
class FittedGraph:
    """A graph and its estimate; see :mod:`sparsistent.core.relaxation` for what the arrays hold.

    Entries of W that change by at most ``drop`` may be left as they are. ``edge_values`` has a row
    for each edge: its entries of Θ and S; what that of Θ has changed by since the loss was last
    brought up to date (of a dense W it is taken afresh after ``refresh`` refits); and what the edge
    costs to remove. The numbers of edges whose cost is not known are in ``stale``, after how many
    they are.
    """

    rows: CovarianceRows
    resolution: float = RESOLUTION
    p: int = field(init=False)
    tolerance: float = field(init=False)
    far: float = field(init=False)
    drop: float = field(init=False)
    graph: Graph = field(init=False)
    edge_values: Array = field(init=False)
    stale: Integers = field(init=False)
    theta_diagonal: Array = field(init=False)
    change_diagonal: Array = field(init=False)
    pending: Array = field(init=False)
    loss: float = field(init=False)
    refresh: int = field(init=False)

    def __post_init__(self) -> None:
        self.p = p = len(self.rows.source)
        self._set_tolerance()
        self.graph = Graph(p)
        self.edge_values = np.zeros((len(self.graph.ends), gains.EDGE_VALUES))
        self.stale = np.zeros(len(self.graph.ends) + 1, np.int64)
        self.theta_diagonal = np.ones(p)
        self.pending, self.change_diagonal = np.zeros((2, p))
        self.loss = float(p)
        self.refresh = REFRESH if p > FEW else 0
        self._loss_age = 0
        self._everyone = np.arange(p)
        self._all_places = self._everyone.astype(np.int32)
        self._all_loaded = np.full(p, kernels.LOADED)
        self._place = np.full(p, -1, np.int32)
        self._found = np.empty(p, np.int64)

    def _set_tolerance(self) -> None:
        self.tolerance = TOLERANCE * self.resolution if self.p > FEW else TOLERANCE_FOR_FEW
        if self.is_crowded:
            self.tolerance = TOLERANCE_IN_A_CROWD * self.resolution
        self.far = 1.0 if self.rows.is_dense else FAR
        self.drop = self.tolerance * (DROP_SHARE if self.rows.is_dense else DROP_SHARE_WHEN_SPARSE)

    @property
    def theta(self) -> Array:
        """Entries of Θ on the edges."""
        return self.edge_values[:, gains.THETA]

    @property
    def sample(self) -> Array:
        """Entries of S on the edges."""
        return self.edge_values[:, gains.SAMPLE]

    def forget_cost(self, number: int) -> None:
        """The entry of Θ has changed on an edge."""
        if self.edge_values[number, gains.COST] != gains.UNKNOWN:
            self.edge_values[number, gains.COST] = gains.UNKNOWN
            self.stale[0] += 1
            self.stale[self.stale[0]] = number

    @property
    def is_crowded(self) -> bool:
        """Whether there are many variables and all are correlated, so that steps are expensive."""
        return self.rows.is_dense and self.p > MOST_DENSE

    @property
    def is_small(self) -> bool:
        """Whether there are so few variables that a refit always works on all of W."""
        return self.rows.is_dense and self.p <= SMALL

    def are_apart(self, w: float) -> bool:
        """Whether two nodes with this covariance count as nodes of two components."""
        return w == 0.0 or (not self.rows.is_dense and abs(w) <= APART * self.tolerance)


class Block(NamedTuple):
    """Some nodes and W among them; see :mod:`sparsistent.core.relaxation`."""

    V: Array
    nodes: Integers
    place: Places
    state: Integers
    slots: Places


@dataclass
class Change:
    """Which rows of W a refit has changed; by how much; how far what has may differ from S now.

    The last two are the rows of one array.
    """

    rows: list[tuple[Integers, Array]] = field(default_factory=list)
    everywhere: bool = False


def insert_edge(fit: FittedGraph, i: int, j: int) -> Change:
    """Add the edge (i, j) and refit."""
    w, s = fit.rows.entry(i, j)
    if is_collinear(s):
        raise NoEstimateError(i, [j])
    if fit.are_apart(w):
        return join(fit, i, j, s)
    link(fit, i, j, s)
    change, pair, level = Change(), np.array([i, j]), fit.drop / max(abs(s - w), fit.drop)
    share, nodes = _relax(fit, pair, True, level, s, change)
    in_steps = 0.0 < share < 1.0
    # Where a new edge would leave too little variance, it comes in steps.
    while 0.0 < share < 1.0:
        share, nodes = _relax(fit, pair, True, level, s, change)
    _finish(fit, pair, share, nodes, change)
    if in_steps:
        # On the way W was not S on the graph, for which changes of the loss allow.
        take_loss(fit)
    return change


def delete_edge(fit: FittedGraph, number: int) -> Change:
    """Remove an edge and refit."""
    i, j = fit.graph.ends[number].tolist()
    theta, sample = float(fit.theta[number]), float(fit.sample[number])
    size = abs(theta) / math.sqrt(fit.theta_diagonal[i] * fit.theta_diagonal[j])
    fit.loss += gains.removal_cost(sample, sample, theta)
    unlink(fit, number)
    change, pair = Change(), np.array([i, j])
    share, nodes = _relax(fit, pair, False, fit.drop / max(size, fit.drop), 0.0, change)
    _finish(fit, pair, share, nodes, change)
    if not math.isfinite(fit.loss):
        # Θ without the entry, and all others as they were, was not positive definite.
        take_loss(fit)
    return change


def tighten(fit: FittedGraph, i: int, j: int, share: float) -> Change:
    """Refit the nodes around a pair to this share of the tolerance.

    Of few variables, what that makes of the loss is counted with the next change of the graph.
    """
    change, pair, usual = Change(), np.array([i, j]), (fit.tolerance, fit.drop, fit.far)
    fit.tolerance, fit.drop, fit.far = share * fit.tolerance, share * fit.drop, 1.0
    try:
        if fit.is_small:
            change.everywhere = True
            limit = MOST_UPDATES * fit.p
            done = _relax_block(fit, _everywhere(fit), pair, False, 0.0, fit.tolerance, limit)
        else:
            done, _ = _relax(fit, pair, False, NEAR, 0.0, change)
        if done == 0.0:
            solve_components(fit, pair, change)
    finally:
        fit.tolerance, fit.drop, fit.far = usual
    return change


def sharpen(fit: FittedGraph, resolution: float) -> None:
    """Bring an estimate with a dense W to a finer resolution, and keep it there."""
    fit.resolution = resolution
    fit._set_tolerance()
    update_all(fit, fit.tolerance)


def update_all(fit: FittedGraph, tolerance: float) -> None:
    """Refit all nodes of a dense W, whose entries on the edges are those of the sample."""
    limit = MOST_UPDATES * fit.p
    if _relax_block(fit, _everywhere(fit), fit._everyone, False, 0.0, tolerance, limit) > 0.0:
        _take_loss_of_dense(fit)
    else:
        solve_components(fit, fit._everyone, Change())


def approach(fit: FittedGraph, tolerance: float) -> None:
    """Put the nodes of a dense W right to within a tolerance, as far as that is cheap."""
    limit = CHEAP * fit.p
    _relax_block(fit, _everywhere(fit), fit._everyone, False, 0.0, tolerance, limit)


def precision_matrix(fit: FittedGraph) -> sparse.csr_array:
    """Θ as a sparse matrix."""
    m, everyone = fit.graph.n_edges, np.arange(fit.p)
    i, j = fit.graph.ends[:m].T
    places = np.concatenate([everyone, i, j]), np.concatenate([everyone, j, i])
    values = np.concatenate([fit.theta_diagonal, fit.theta[:m], fit.theta[:m]])
    return sparse.csr_array((values, places), shape=(fit.p, fit.p))


def link(fit: FittedGraph, i: int, j: int, s: float) -> None:
    """Add the edge (i, j) to the graph, with a value of 0."""
    number = fit.graph.link(i, j)
    if number == len(fit.edge_values):
        fit.edge_values = doubled(fit.edge_values)
        fit.stale = with_room(fit.stale, len(fit.edge_values) + 1)
    fit.forget_cost(number)
    fit.edge_values[number, gains.THETA] = 0.0
    fit.edge_values[number, gains.SAMPLE] = s


def unlink(fit: FittedGraph, number: int) -> None:
    """Remove an edge from the graph without a refit; the last edge gets its number."""
    last = fit.graph.unlink(number)
    fit.forget_cost(number)
    fit.edge_values[number, : gains.COST] = fit.edge_values[last, : gains.COST]
    fit.edge_values[last, gains.CHANGE] = 0.0


def join(fit: FittedGraph, i: int, j: int, s: float) -> Change:
    """Add the edge (i, j) between two components: the estimate has a closed form."""
    link(fit, i, j, s)
    rows, gain = fit.rows, s * s / (1.0 - s * s)
    fit.edge_values[fit.graph.n_edges - 1, gains.THETA] = -s / (1.0 - s * s)
    fit.theta_diagonal[i] += gain
    fit.theta_diagonal[j] += gain
    fit.loss += math.log1p(-s * s)
    while True:
        nodes, changes = kernels.join(
            rows.arrays, fit._place, i, j, s, 0.0 if rows.is_dense else fit.drop
        )
        if nodes.size:
            return Change([(nodes, changes)])
        rows.grow()


def _finish(
    fit: FittedGraph, pair: Integers, share: float, nodes: Integers, change: Change
) -> None:
    """Put right what a change at a pair of nodes has left to do among the nodes looked at."""
    if share == 0.0:
        solve_components(fit, pair, change)
    elif nodes.size:
        _put_right(fit, nodes, change)


def _put_right(fit: FittedGraph, nodes: Integers, change: Change) -> None:
    """Put all of these nodes right that are wrong by more than they may be, and what follows."""
    limit = fit.far * fit.tolerance
    while True:
        loose = nodes[fit.pending[nodes] > limit]
        if loose.size == 0:
            return
        level = min(fit.drop / limit, DROP_SHARE)
        share, reached = _relax(fit, loose[:MOST_STARTS], False, level, 0.0, change)
        if share == 0.0:
            solve_components(fit, loose, change)
            return
        nodes = np.union1d(loose, reached)


def _nodes_around(fit: FittedGraph, starts: Integers, level: float) -> Integers:
    """The nodes of a block around some, which stand first; ``fit._place`` says where they stand."""
    rows, graph = fit.rows, fit.graph
    count = kernels.open_block(rows.arrays, graph.arrays, fit._place, fit._found, starts, level)
    return fit._found[:count].copy()


def covariance_around(fit: FittedGraph, node: int, level: float) -> tuple[Integers, Array]:
    """The nodes of a block around one, sorted, and W among them."""
    nodes, rows = np.sort(_nodes_around(fit, np.array([node]), level)), fit.rows
    fit._place[nodes] = np.arange(nodes.size)
    block = _new_block(fit, nodes)
    for a in range(nodes.size):
        kernels.load(block, rows.arrays, a)
    fit._place[nodes] = -1
    return nodes, block.V


def _everywhere(fit: FittedGraph) -> Block:
    """All of a dense W as a block."""
    return Block(fit.rows.matrix, fit._everyone, fit._all_places, fit._all_loaded, NO_SLOTS)


def _new_block(fit: FittedGraph, nodes: Integers) -> Block:
    """A block into which no row is loaded yet."""
    return Block(*new_block(nodes, fit._place))


def _relax(
    fit: FittedGraph, starts: Integers, comes: bool, level: float, target: float, change: Change
) -> tuple[float, Integers]:
    """Put nodes right around some: the share that a new edge has come, and who may be wrong yet."""
    limit = MOST_UPDATES * fit.p
    nodes = NO_VARIABLES if fit.is_small else _nodes_around(fit, starts, level)
    if fit.is_small or (fit.rows.is_dense and nodes.size > MOST_OF_ALL * fit.p):
        fit._place[nodes] = -1
        change.everywhere, block = True, _everywhere(fit)
        share = _relax_block(fit, block, starts, comes, target, fit.tolerance, limit)
        if share > 0.0:
            _note_loss(fit, block)
            fit._loss_age += 1
        return share, NO_VARIABLES
    block = _new_block(fit, nodes)
    share = _relax_block(fit, block, starts, comes, target, fit.tolerance, limit)
    if share > 0.0:
        change.rows.append((nodes, fit.rows.write(block, fit.drop)))
        _note_loss(fit, block)
    fit._place[nodes] = -1
    return share, nodes


def _relax_block(
    fit: FittedGraph,
    block: Block,
    starts: Integers,
    comes: bool,
    target: float,
    tolerance: float,
    limit: int,
) -> float:
    """Put nodes right in a block: the share that a new edge between the starts has come."""
    return kernels.relax(
        block,
        fit.rows.arrays,
        fit.graph.arrays,
        (
            fit.edge_values,
            fit.theta_diagonal,
            fit.change_diagonal,
            fit.pending,
            fit.stale,
        ),
        starts,
        comes,
        target,
        tolerance,
        NEAR,
        fit.far,
        LEAST_VARIANCE,
        limit,
    )


def _note_loss(fit: FittedGraph, block: Block) -> None:
    """Bring the loss up to date after a change of Θ in a block."""
    if fit.rows.is_dense and fit._loss_age >= fit.refresh:
        _take_loss_of_dense(fit)
        return
    change, largest = kernels.change_of_loss(
        block, fit.graph.arrays, fit.edge_values, fit.change_diagonal, MOST_MOVED
    )
    if largest > ABRUPT and fit.rows.is_dense and not fit.is_crowded:
        _take_loss_of_dense(fit)
    elif math.isfinite(change):
        fit.loss += change
    else:
        take_loss(fit)


def take_loss(fit: FittedGraph) -> None:
    """Take the loss afresh."""
    if fit.rows.is_dense and not fit.is_crowded:
        _take_loss_of_dense(fit)
    else:
        _take_loss_of_precision(fit)


def _take_loss_of_precision(fit: FittedGraph) -> None:
    """Take the loss of Θ afresh."""
    m = fit.graph.n_edges
    trace = float(fit.theta_diagonal.sum() + 2 * fit.theta[:m] @ fit.sample[:m])
    try:
        fit.loss = trace - factorise(precision_matrix(fit)).log_determinant
    except np.linalg.LinAlgError:
        raise _no_estimate(fit, int(fit.theta_diagonal.argmax())) from None
    _forget_changes(fit)


def _take_loss_of_dense(fit: FittedGraph) -> None:
    """Take the loss of a dense W afresh: that of an estimate is p + log det W."""
    factor, indefinite = linalg.lapack.dpotrf(fit.rows.matrix.T)
    if indefinite:
        raise _no_estimate(fit, int(fit.theta_diagonal.argmax()))
    fit.loss = fit.p + 2.0 * float(np.log(factor.diagonal()).sum())
    _forget_changes(fit)


def _forget_changes(fit: FittedGraph) -> None:
    """The loss has been taken afresh."""
    fit.edge_values[:, gains.CHANGE] = 0.0
    fit.change_diagonal.fill(0.0)
    fit._loss_age = 0


def solve_components(fit: FittedGraph, members: Integers, change: Change) -> None:
    """Solve the components of some nodes by Newton's method on all of their free entries.

    Those without a cycle are solved in closed form.
    """
    graph, rows = fit.graph, fit.rows
    nodes = graph.components(members)
    edges = np.unique(np.concatenate([graph.edge[graph.slots(k)] for k in nodes.tolist()]))
    if nodes.size + edges.size > MOST_ENTRIES:
        raise _no_estimate(fit, int(nodes[np.argmax(fit.theta_diagonal[nodes])]))
    i, j = _ends_among(fit, nodes, edges)
    tree = is_in_tree(nodes.size, i, j)
    closed = tree[i]
    # No edge in the graph joins collinear columns, so that trees have an estimate.
    diagonal, theta = forest_precision(
        nodes.size, np.array([i[closed], j[closed]]), fit.sample[edges[closed]]
    )
    precision = np.diag(diagonal)
    precision[i[closed], j[closed]] = precision[j[closed], i[closed]] = theta
    if not tree.all():
        rest = np.flatnonzero(~tree)
        precision[np.ix_(rest, rest)] = _solve_by_newton(fit, nodes[rest], edges[~closed])
    V = invert(precision)
    V[i, j] = V[j, i] = fit.sample[edges]
    np.fill_diagonal(V, 1.0)
    fit.theta_diagonal[nodes] = np.diag(precision)
    fit.theta[edges] = precision[i, j]
    for number in edges.tolist():
        fit.forget_cost(number)
    fit.pending[nodes] = 0.0
    rows.replace(nodes, V, fit.drop)
    change.rows.append((nodes, np.full((2, nodes.size), 2.0)))
    _take_loss_of_precision(fit)


def _ends_among(fit: FittedGraph, nodes: Integers, edges: Integers) -> Integers:
    """Where the ends of edges stand among some nodes: in two rows, the smaller first."""
    fit._place[nodes] = np.arange(nodes.size)
    ends = np.sort(fit._place[fit.graph.ends[edges]], axis=1).T.astype(np.int64)
    fit._place[nodes] = -1
    return ends


def _solve_by_newton(fit: FittedGraph, nodes: Integers, edges: Integers) -> Array:
    """Θ among the nodes of some components, whose edges these are."""
    i, j = _ends_among(fit, nodes, edges)
    S, start = np.eye(nodes.size), np.diag(fit.theta_diagonal[nodes])
    S[i, j] = S[j, i] = fit.sample[edges]
    start[i, j] = start[j, i] = fit.theta[edges]
    precision, mismatch = newton(S, i, j, start)
    variance = 1.0 / np.diag(precision).max()
    # Where there is no estimate, the smallest variance and the mismatch vanish together.
    if variance < LEAST_VARIANCE or mismatch > min(MISMATCH, variance / 100):
        raise _no_estimate(fit, int(nodes[np.diag(precision).argmax()]))
    return precision


def _no_estimate(fit: FittedGraph, node: int) -> NoEstimateError:
    return NoEstimateError(node, sorted(fit.graph.neighbors(node).tolist()))
