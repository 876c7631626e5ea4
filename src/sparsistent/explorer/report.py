"""The explorer as an object: made by :func:`explore`, saved as a file or shown in a notebook."""

import html
import os
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from sparsistent.estimators.base import GraphEstimator
from sparsistent.explorer.page import render
from sparsistent.explorer.summary import Summary, summarise
from sparsistent.io.files import write_whole
from sparsistent.lazy import cached_property
from sparsistent.uncertainty.bootstrap import BootstrapResult

# Pixels that the page has in a notebook.
NOTEBOOK_HEIGHT = 820


class Explorer:
    """A page on which a fitted graph can be explored; :func:`explore` makes it.

    A notebook shows it as it is.

    Attributes
    ----------
    summary : Summary
        What the page shows, as plain data.
    """

    def __init__(self, summary: Summary) -> None:
        self.summary = summary

    def __repr__(self) -> str:
        positions = self.summary.positions
        return (
            f"Explorer({len(self.summary.nodes.names)} variables, "
            f"{positions.present[positions.chosen].sum()} edges, "
            f"{len(positions.threshold)} positions)"
        )

    @cached_property
    def _page(self) -> str:
        return render(self.summary)

    def to_html(self) -> str:
        """The page as one HTML document that needs no other file and no network."""
        return self._page

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write the page to a file, whole or not at all.

        Parameters
        ----------
        path : path
            The file, such as ``report.html``, in a folder that exists.
        overwrite : bool, default=False
            Whether a file that is there is replaced.

        Returns
        -------
        Path
            The file.
        """
        write_whole(path, self.to_html(), overwrite=overwrite)
        return Path(path)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that neither it nor the notebook styles the other."""
        return (
            f'<iframe srcdoc="{html.escape(self.to_html())}" title="sparsistent explorer" '
            f'style="width: 100%; height: {NOTEBOOK_HEIGHT}px; border: 0"></iframe>'
        )


def explore(
    model: GraphEstimator,
    X: Any = None,
    *,
    bootstrap: BootstrapResult | None = None,
    title: str | None = None,
) -> Explorer:
    """Make a page on which a fitted graph can be explored, with its whole path on a slider.

    Parameters
    ----------
    model : GlobalGreedy, NeighborhoodGreedy or FixedGraph
        Fitted.
    X : array or data frame of shape (n_samples, n_features), optional
        The table that the model was fitted to: for scatter plots of residuals, and for checks of
        the data.
    bootstrap : BootstrapResult, optional
        What :func:`sparsistent.bootstrap` returned for the same table: for the share of resamples
        that have an edge, and for intervals.
    title : str, optional
        The page's headline.

    Returns
    -------
    Explorer
        ``.save("report.html")`` writes it; a notebook shows it.

    Examples
    --------
    >>> from sparsistent import GaussianGraphicalModel, GlobalGreedy, explore
    >>> X = GaussianGraphicalModel.chain(5, 0.6).sample(400, random_state=0)
    >>> page = explore(GlobalGreedy().fit(X), X, title="A chain")
    >>> page.to_html()[:15]
    '<!doctype html>'
    """
    if not isinstance(model, GraphEstimator):
        raise TypeError(
            "explore needs a fitted estimator, such as GlobalGreedy().fit(X), but got "
            f"{type(model).__name__}"
        )
    check_is_fitted(model)
    if bootstrap is not None:
        _check_bootstrap(model, bootstrap)
    return Explorer(summarise(model, X, bootstrap=bootstrap, title=title))


def _check_bootstrap(model: GraphEstimator, bootstrap: Any) -> None:
    if not isinstance(bootstrap, BootstrapResult):
        raise TypeError(
            "bootstrap must be what sparsistent.bootstrap(model, X) returns, but is "
            f"{type(bootstrap).__name__}"
        )
    if len(bootstrap.names) != model.n_features_in_:
        raise ValueError(
            f"bootstrap is of {len(bootstrap.names)} variables, but model has "
            f"{model.n_features_in_}; pass the bootstrap of the same table"
        )
