"""A warning for fits that learnt little, or that overfit the training rows."""

from roundtrip.exceptions import warn_user
from roundtrip.training.data import FittingData
from roundtrip.training.result import TrainingResult

NO_TRIAL = 20.0
"""Seconds of training from which on a user expects a result; shorter ones are trials."""

LARGEST_GAP = 1.0
"""Nats per feature by which training rows may be more likely than held-out rows."""

FEWEST_ROWS = 10
"""With fewer rows, held-out rows can't tell how good a fit is."""


def warn_of_overfitting(result: TrainingResult, data: FittingData, *, trained: bool = True) -> None:
    """Issue one warning with all reasons why a fit is unreliable, if there are any.

    Parameters
    ----------
    result : TrainingResult
        The course of training, by likelihood.
    data : FittingData
        Training and validation rows.
    trained : bool, default=True
        Whether the networks were trained; otherwise no training was better than linear networks.
    """
    reasons = []
    if data.n_rows < FEWEST_ROWS:
        reasons.append(
            f"{data.n_rows} rows are too few to tell how good the density is: use more rows"
        )
    elif data.n_rows < data.features:
        reasons.append(
            f"the table has more columns ({data.features}) than rows ({data.n_rows}): relations "
            "between columns are mostly guessed. Leave columns out"
        )
    ended = result.stopped_by in ("patience", "validation")
    if trained and ended and result.best_epoch <= 1:
        reasons.append(
            f"held-out rows were likeliest after epoch {result.best_epoch}, so the density is "
            "close to a single Gaussian. If the columns are not, try a lower learning_rate or a "
            "narrower network"
        )
    seconds = result.history.get("seconds", [0.0])[-1] if result.n_epochs else 0.0
    cut_short = result.stopped_by == "max_time" and seconds >= NO_TRIAL
    if trained and cut_short and not result.best_epoch:
        reasons.append(
            "training did not get ahead of the linear networks that it starts from within "
            "max_time, and these are kept: allow more time"
        )
    if result.best_epoch and "bound" in result.history:
        best = result.best_epoch - 1
        training = result.history["bound"][best] + data.log_det
        gap = training - result.history["validation_log_likelihood"][best]
        if gap > LARGEST_GAP * data.features:
            reasons.append(
                f"training rows are {gap:.0f} nats more likely than held-out rows, so the density "
                "of rows like the training rows is too high: use more rows or fewer columns, and "
                "look for columns that number or name the rows"
            )
    if reasons:
        warn_user("; ".join(reasons) + ".")
