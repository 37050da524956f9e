"""Concordance: how closely a head's attention changes over inputs with that of a compiled head.

Computed from pairs of positions between which the compiled head attends on some inputs and not on others, also
on rows where it selects nothing. A learned head without a BOS has to attend to something there; what it attends to
does not count, as long as it is not what the compiled head attends to on other inputs.
"""

import numpy as np
from jaxtyping import Bool, Float

CHANGES = 1e-3
"""A row's attention counts as changing over inputs if its variance exceeds this share of its mean square, and
that between two positions if its variance exceeds this share of the largest in the row."""

TAKES = 1e-3
"""Lower bound on the mean attention to the sequence by which a row is scaled."""

Rows = Float[np.ndarray, "input query key"]


def concordance(moments: Float[np.ndarray, "3 *draw"]) -> Float[np.ndarray, " *draw"]:  # noqa: F821 - a shape
    """The concordance of the deviations from their means of two heads' attention.

    (Lin 1989, "A concordance correlation coefficient to evaluate reproducibility", without means.) It is 1 if they
    are equal, 0 if they have nothing to do with each other or the learned head's attention does not change, -1 if
    they are opposite; NaN if the compiled head attends alike on all inputs.

    Args:
        moments: Their covariance, the variance of the compiled head's and of the learned one's, in total over
            pairs of positions and inputs.
    """
    both, compiled, learned = moments
    total = compiled + learned
    return np.where(total > 0, 2 * both / np.where(total > 0, total, 1), np.nan)


def moments(
    compiled: Rows,
    learned: Rows,
    active: Bool[np.ndarray, "input query"],
    inactive: Bool[np.ndarray, "input query"],
) -> Float[np.ndarray, "3 input"]:
    """Covariance and variances of two heads' attention over inputs: what each input adds to them.

    A sink that takes the same share of every row is left out.

    Args:
        compiled: The compiled head's attention, without what a BOS takes.
        learned: The learned head's.
        active: The query rows on which the compiled head selects something.
        inactive: Those on which it could have, and does not.
    """
    counted = (active | inactive)[..., None]
    n = np.maximum(1, counted.sum(axis=0))

    def scaled(rows: Rows) -> Rows:
        share = (rows.sum(axis=-1, dtype=np.float64) * active).sum(axis=0) / np.maximum(1, active.sum(axis=0))
        return rows / np.where(share > TAKES, share, 1)[:, None] * counted

    ours, theirs = scaled(compiled), scaled(learned)
    square = (ours**2).sum(axis=0) / n
    ours, theirs = ((rows - rows.sum(axis=0) / n) * counted for rows in (ours, theirs))
    variance = (ours**2).sum(axis=0) / n
    changes = variance > CHANGES * variance.max(axis=1, keepdims=True)
    changes &= variance.sum(axis=1, keepdims=True) > CHANGES * square.sum(axis=1, keepdims=True)
    if not changes.any():
        return np.full((3, len(ours)), np.nan)
    ours, theirs = ours * changes, theirs * changes
    return np.stack([(a * b).sum(axis=(1, 2)) for a, b in ((ours, theirs), (ours, ours), (theirs, theirs))])
