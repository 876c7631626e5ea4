"""Thresholds that say what they are a threshold of, so that they can be passed on as numbers.

A plain number is a gain of the search that is run. What rules choose may be on another scale; as
``threshold_`` such a number gives the same graph when it is passed back.
"""

import math

from sparsistent.data.moments import LEAST_GAIN


class ThresholdInUnit(float):
    """Base of the numbers that show their unit."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float(self)!r})"

    __str__ = __repr__


class AbsoluteThreshold(ThresholdInUnit):
    """The paper's threshold of a neighbourhood, in the squared units of each variable.

    A neighbour of r must lower (1/2n)‖X_r − XΓ‖² by more than this. It can be given to
    :class:`~sparsistent.NeighborhoodGreedy` as its threshold, and depends on the units of X: a
    plain number, which is the fall of log RSS, does not. For
    :class:`~sparsistent.GlobalGreedy`, whose gains have no units, it is a number like any other.

    Examples
    --------
    >>> AbsoluteThreshold(0.25)
    AbsoluteThreshold(0.25)
    """


class ProfileThreshold(ThresholdInUnit):
    """A threshold of profile gains, where the search is left to ``gain="auto"``.

    An edge must lower the loss by more than this with all other entries refitted. A plain number
    is a threshold of the paper's gains there, unless variables are strongly correlated.

    Examples
    --------
    >>> ProfileThreshold(0.25)
    ProfileThreshold(0.25)
    """


class TestedThreshold(ThresholdInUnit):
    """A threshold of tests: an edge must be as unlikely to be noise as a pair with this gain.

    The tests are those of :mod:`sparsistent.selection.edge_tests`. The gain is that of two
    variables alone, so that the number depends on the sample size as other thresholds do.

    Examples
    --------
    >>> TestedThreshold(0.05)
    TestedThreshold(0.05)
    """

    __test__ = False  # for pytest, which collects classes with such names


class SoftThreshold(ThresholdInUnit):
    """A threshold that also shrinks the edges it keeps, for prediction; ``"cv"`` chooses one.

    See :mod:`sparsistent.search.soft`. For :class:`~sparsistent.NeighborhoodGreedy` the edges are
    among those of the neighbourhoods at this threshold.

    Examples
    --------
    >>> SoftThreshold(0.25)
    SoftThreshold(0.25)
    """

    @property
    def penalty(self) -> float:
        """By how much the correlation of an edge is moved, at unit variances."""
        return math.sqrt(-math.expm1(-self)) if self > LEAST_GAIN else 0.0
