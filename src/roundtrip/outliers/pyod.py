"""`RoundtripOD`: the detector with PyOD's interface; needs the extra ``roundtrip[pyod]``."""

from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from roundtrip.estimator import Roundtrip
from roundtrip.outliers.detector import RoundtripDetector

try:
    from pyod.models.base import BaseDetector
except ImportError as error:
    raise ImportError(
        "RoundtripOD needs PyOD: pip install 'roundtrip[pyod]' (or use RoundtripDetector)"
    ) from error


class RoundtripOD(BaseDetector):
    """PyOD's interface to `RoundtripDetector`: scores are high for outliers, labels are 0 and 1.

    Parameters
    ----------
    contamination : float, default=0.1
        Share of outliers among the rows of `fit`, in (0, 0.5]; it sets `threshold_`.
    estimator : Roundtrip, optional
        As in `RoundtripDetector`, like all that follow.
    sigma : float, "auto" or None, default="auto"
        Noise that rows are scored with.
    gaussian_columns, trim : bool, default=True
        Whether columns are made Gaussian, and clear outliers trimmed from the training rows.
    clean : bool, default=False
        Whether the rows of `fit` contain no outliers.
    calibration_fraction : float, default=0.2
        Share of the rows held out for p-values.
    device : str or torch.device, default="auto"
        Device of the default density.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed.
    verbose : int, default=0
        1 shows progress on stderr.

    Attributes
    ----------
    detector_ : RoundtripDetector
        The fitted detector, which also gives p-values and explanations.
    decision_scores_, threshold_, labels_ : numpy.ndarray, float, numpy.ndarray
        As in PyOD, for the rows of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> X[:3] += 9
    >>> clf = RoundtripOD(contamination=0.02, random_state=0).fit(X)
    >>> clf.labels_[:3].tolist()
    [1, 1, 1]
    """

    def __init__(
        self,
        contamination: float = 0.1,
        estimator: Roundtrip | None = None,
        sigma: float | Literal["auto"] | None = "auto",
        gaussian_columns: bool = True,
        trim: bool = True,
        clean: bool = False,
        calibration_fraction: float = 0.2,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(contamination=contamination)
        self.estimator = estimator
        self.sigma = sigma
        self.gaussian_columns = gaussian_columns
        self.trim = trim
        self.clean = clean
        self.calibration_fraction = calibration_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of `X`, `(rows, features)`; `y` is ignored, as in PyOD."""
        self._set_n_classes(y)
        settings = dict(self.get_params(deep=False))
        del settings["contamination"]  # PyOD sets the threshold
        self.detector_ = RoundtripDetector(**settings).fit(X)
        self.decision_scores_ = -self.detector_.score_samples(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Negative score of each row of `X`, `(rows,)`: high for outliers."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return -self.detector_.score_samples(X)
