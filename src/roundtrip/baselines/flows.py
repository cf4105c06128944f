"""Normalizing flows, built by zuko: MADE, Real NVP, MAF and NSF."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from roundtrip.baselines.base import DensityBaseline
from roundtrip.baselines.budget import Budget
from roundtrip.baselines.flow_training import ROWS_PER_CALL, flow_log_density, train_flow
from roundtrip.density.blocks import map_blocks
from roundtrip.io.devices import resolve_device
from roundtrip.parameters import check_choice, check_integer, check_number, check_widths


@dataclass(kw_only=True, eq=False, repr=False)
class FlowBaseline(DensityBaseline):  # numpydoc ignore=PR02
    """A normalizing flow on standardised columns, fitted by maximum likelihood.

    Parameters
    ----------
    hidden : sequence of int, default=(256, 256)
        Widths of the hidden layers of each transform's network.
    learning_rate : float, default=2e-3
        Initial learning rate of Adam. It falls to 0 along a cosine over `max_time` or `max_epochs`,
        whichever is used up faster.
    batch_size : int, default=256
        Rows per step.
    max_epochs : int, default=200
        Largest number of epochs.
    patience : int, default=20
        Epochs without a better validation log-likelihood after which training stops.
    averaging : float, default=0.995
        Decay of the running average of the weights that is validated and kept; 0 keeps the weights
        themselves.
    device : str or torch.device, default="auto"
        "auto" is a CUDA GPU if there is one, else the CPU.
    random_state : int, RandomState or None, default=None
        Seed. Without `max_time`, the same seed on the same machine gives the same fit.
    verbose : int, default=0
        1 shows a progress bar on stderr while fitting.

    Attributes
    ----------
    flow_ : zuko.flows.Flow
        The flow, in standardised units.
    n_iter_ : int
        Number of epochs.
    best_epoch_ : int
        The epoch whose weights were kept.
    stopped_by_ : str
        "max_epochs", "max_time", "patience" or "divergence".
    validation_log_likelihood_ : float
        Mean over the validation rows, in the user's units.
    history_ : dict of lists
        "validation_log_likelihood", "learning_rate" and "seconds" (since the start), with one entry
        per epoch.
    """

    hidden: Sequence[int] = (256, 256)
    learning_rate: float = 2e-3
    batch_size: int = 256
    max_epochs: int = 200
    patience: int = 20
    averaging: float = 0.995
    device: str | torch.device = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    @abstractmethod
    def _build(self, features: int) -> nn.Module:
        """Return the untrained flow; zuko initialises it from torch's global random state."""

    def _check_settings(self) -> None:
        _zuko()
        check_widths("hidden", self.hidden)
        check_number("learning_rate", self.learning_rate, above=0)
        for name in ("batch_size", "max_epochs", "patience"):
            check_integer(name, getattr(self, name), minimum=1)
        if hasattr(self, "transforms"):
            check_integer("transforms", self.transforms, minimum=1)
        if self.averaging != 0:
            check_number("averaging", self.averaging, above=0, below=1)
        resolve_device(self.device)

    def _fit(
        self,
        training: np.ndarray,
        validation: np.ndarray,
        *,
        budget: Budget,
        rng: np.random.RandomState,
    ) -> None:
        device = resolve_device(self.device)
        with torch.random.fork_rng(devices=[]):  # restores the global random state
            torch.default_generator.manual_seed(int(rng.randint(2**31 - 1)))
            flow = self._build(training.shape[1]).to(device)
        result = train_flow(
            flow,
            _as_float32(training, device),
            _as_float32(validation, device),
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            max_epochs=self.max_epochs,
            patience=self.patience,
            averaging=self.averaging,
            budget=budget,
            rng=torch.Generator(device).manual_seed(int(rng.randint(2**31 - 1))),
            log_det=self.scaling_.log_det,
            verbose=bool(self.verbose),
        )
        self.flow_ = flow
        self.n_iter_ = result.n_epochs
        self.stopped_by_ = result.stopped_by
        self.best_epoch_ = result.best_epoch
        self.validation_log_likelihood_ = result.best_score
        self.history_ = result.history

    @torch.no_grad()
    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        return self._in_blocks(lambda x: flow_log_density(self.flow_, x), rows)

    @torch.no_grad()
    def _sample(self, n_samples: int, rng: np.random.RandomState) -> np.ndarray:
        z = rng.standard_normal((n_samples, self.n_features_in_))
        return self._in_blocks(self.flow_().transform.inv, z)

    def _in_blocks(self, function: Any, rows: np.ndarray) -> np.ndarray:
        device = next(self.flow_.parameters()).device
        return map_blocks(function, _as_float32(rows, device), ROWS_PER_CALL).double().cpu().numpy()


@dataclass(kw_only=True, eq=False, repr=False)
class MADE(FlowBaseline):
    """Masked autoregressive density estimator: each column is Gaussian given those before it.

    Parameters and attributes are those of `FlowBaseline`; `hidden` is (512, 512) by default.

    Examples
    --------
    >>> import numpy as np
    >>> from roundtrip.baselines import MADE
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = MADE(max_epochs=1, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    # One network does the work of MAF's five, and can be wider at the same cost.
    hidden: Sequence[int] = (512, 512)

    def _build(self, features: int) -> nn.Module:
        return _zuko().flows.MAF(features, transforms=1, hidden_features=self.hidden)


@dataclass(kw_only=True, eq=False, repr=False)
class RealNVP(FlowBaseline):  # numpydoc ignore=PR02
    """Real NVP: affine couplings, in which one half of the columns transforms the other half.

    Further parameters, and the attributes, are those of `FlowBaseline`.

    Parameters
    ----------
    transforms : int, default=8
        Number of couplings. They come in pairs: the second transforms the columns that the first
        left unchanged. Each pair divides the columns at random.
    """

    transforms: int = 8

    def _build(self, features: int) -> nn.Module:
        flows = _zuko().flows
        flow = flows.NICE(features, transforms=0)  # provides the base, a standard normal
        # Masks come in opposite pairs, because zuko's own random masks may leave a column as it is.
        for number in range(self.transforms):
            if number % 2 == 0:
                half = torch.randperm(features) % 2 == 0
            flow.transform.transforms.append(
                flows.GeneralCouplingTransform(
                    features,
                    mask=half if number % 2 == 0 else ~half,
                    hidden_features=self.hidden,
                )
            )
        return flow


@dataclass(kw_only=True, eq=False, repr=False)
class MAF(FlowBaseline):  # numpydoc ignore=PR02
    """Masked autoregressive flow: several MADEs in sequence, with alternating order of columns.

    Further parameters, and the attributes, are those of `FlowBaseline`.

    Parameters
    ----------
    transforms : int, default=5
        Number of autoregressive transforms.

    Examples
    --------
    >>> import numpy as np
    >>> from roundtrip.baselines import MAF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = MAF(max_epochs=1, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    transforms: int = 5

    def _build(self, features: int) -> nn.Module:
        return _zuko().flows.MAF(features, transforms=self.transforms, hidden_features=self.hidden)


@dataclass(kw_only=True, eq=False, repr=False)
class NSF(FlowBaseline):  # numpydoc ignore=PR02
    """Neural spline flow: an autoregressive flow of monotonic rational-quadratic splines.

    Further parameters, and the attributes, are those of `FlowBaseline`.

    Parameters
    ----------
    transforms : int, default=3
        Number of autoregressive transforms.
    bins : int, default=8
        Pieces of each spline.
    affine : bool, default=True
        Whether each column is shifted and scaled, given the columns before it, before its spline.
        Splines transform only [-5, 5] and are the identity elsewhere, so without the affine map
        (as published) they fit neither outliers nor narrow conditional densities.

    Examples
    --------
    >>> import numpy as np
    >>> from roundtrip.baselines import NSF
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = NSF(max_epochs=1, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    transforms: int = 3
    bins: int = 8
    affine: bool = True

    def _check_settings(self) -> None:
        super()._check_settings()
        check_integer("bins", self.bins, minimum=2)
        check_choice("affine", self.affine, (True, False))

    def _build(self, features: int) -> nn.Module:
        flows = _zuko().flows
        if not self.affine:
            return flows.NSF(
                features, transforms=self.transforms, bins=self.bins, hidden_features=self.hidden
            )
        return flows.MAF(
            features,
            transforms=self.transforms,
            univariate=_affine_spline,
            shapes=[(), (), (self.bins,), (self.bins,), (self.bins - 1,)],
            hidden_features=self.hidden,
        )


def _affine_spline(
    shift: Tensor, scale: Tensor, widths: Tensor, heights: Tensor, derivatives: Tensor
) -> Any:
    """Return an affine map of each column, followed by a rational-quadratic spline."""
    transforms = _zuko().transforms
    return transforms.ComposedTransform(
        transforms.MonotonicAffineTransform(shift, scale),
        transforms.MonotonicRQSTransform(widths, heights, derivatives),
    )


def _as_float32(rows: np.ndarray, device: torch.device) -> Tensor:
    data = torch.from_numpy(rows).float().to(device)
    if not torch.isfinite(data).all():
        raise ValueError("the table spans a range too wide for float32; rescale its columns")
    return data


def _zuko() -> Any:
    """Import zuko, which is an optional dependency."""
    try:
        import zuko
    except ImportError as error:
        raise ImportError(
            "the flow baselines need the package zuko: pip install 'roundtrip[baselines]'"
        ) from error
    return zuko
