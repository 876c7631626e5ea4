"""The data of ``sparsistent demo``: images of handwritten digits, 8 by 8 pixels each.

The variables are pixels, called r2c3 by row and column, so that the truth can be seen: what depends
directly on a pixel are the pixels around it.
"""

from sparsistent.optional import optional_import

# Pixels near the border that are blank in almost every image have no distribution to speak of.
MIN_VARIED_SHARE = 0.01
DIGITS_NAME = "digits.csv"
# Ink has a limit and most pixels are blank in most images: so ranks, not values. At this threshold
# four of five edges are between neighbouring pixels, and the picture can be read; the slider of the
# report goes down to all edges.
DIGITS_OPTIONS = {"correlation": "nonparanormal", "gain": "coordinate", "threshold": "0.15"}


def digits_csv() -> str:
    """The pixels that vary, as CSV with one row an image."""
    from sklearn.datasets import load_digits

    pd = optional_import("pandas", "the demonstration")
    images = load_digits().data.astype(int)
    varies = (images != 0).mean(axis=0) > MIN_VARIED_SHARE
    names = [f"r{k // 8}c{k % 8}" for k in range(64)]
    frame = pd.DataFrame(images, columns=names).loc[:, varies]
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text
