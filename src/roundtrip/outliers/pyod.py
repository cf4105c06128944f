"""`RoundtripOD`: the detector as one of PyOD's; needs the extra ``roundtrip[pyod]``."""

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
    contamination : share of outliers in the data of `fit`, in (0, 0.5]; it sets `threshold_`.
    estimator, sigma, gaussian_columns, trim, calibration_fraction, device, random_state, verbose :
        as in `RoundtripDetector`.

    Attributes
    ----------
    detector_ : the fitted `RoundtripDetector`, with p-values and explanations.
    decision_scores_, threshold_, labels_ : as everywhere in PyOD, of the rows of `fit`.

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
        self.calibration_fraction = calibration_fraction
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to the rows of `X`, `(rows, features)`; `y` is ignored."""
        self._set_n_classes(y)
        settings = dict(self.get_params(deep=False))
        del settings["contamination"]  # PyOD sets the threshold
        self.detector_ = RoundtripDetector(**settings).fit(X)
        self.decision_scores_ = -self.detector_.score_samples(X)
        self._process_decision_scores()
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """How odd each row of `X` is, `(rows,)`: the negative of the detector's score."""
        check_is_fitted(self, ["decision_scores_", "threshold_", "labels_"])
        return -self.detector_.score_samples(X)
