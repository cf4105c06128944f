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
class FlowBaseline(DensityBaseline):
    """A normalizing flow on standardised columns, fitted by maximum likelihood.

    Parameters
    ----------
    hidden : widths of the hidden layers of each transform's network.
    learning_rate : of Adam at the start; it falls to 0 along a cosine over `max_time` or
        `max_epochs`, whichever is used up faster.
    batch_size : rows of a step.
    max_epochs : upper limit; training may stop earlier.
    patience : epochs without a better validation log-likelihood after which training stops.
    averaging : decay of the running average of the weights that is validated and kept; 0 keeps
        the weights themselves.
    device : "auto" (a CUDA GPU if there is one), or a torch device.
    random_state : seed; without `max_time`, the same seed on the same machine gives the same fit.
    verbose : 1 shows a progress bar on stderr while fitting.

    Attributes
    ----------
    flow_ : zuko.flows.Flow, in standardised units.
    n_iter_ : int, epochs trained.
    best_epoch_ : int, the epoch whose weights were kept.
    validation_log_likelihood_ : float, mean over the validation rows, in the user's units.
    history_ : dict of lists, one entry an epoch: "validation_log_likelihood", "learning_rate",
        "seconds" (since the start).
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
        """The untrained flow, initialised from torch's global random state (as zuko does)."""

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
        random: np.random.RandomState,
    ) -> None:
        device = resolve_device(self.device)
        with torch.random.fork_rng(devices=[]):  # the global state is left as it was
            torch.default_generator.manual_seed(int(random.randint(2**31 - 1)))
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
            rng=torch.Generator(device).manual_seed(int(random.randint(2**31 - 1))),
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
    def _sample(self, n_samples: int, random: np.random.RandomState) -> np.ndarray:
        z = random.standard_normal((n_samples, self.n_features_in_))
        return self._in_blocks(self.flow_().transform.inv, z)

    def _in_blocks(self, function: Any, rows: np.ndarray) -> np.ndarray:
        device = next(self.flow_.parameters()).device
        return map_blocks(function, _as_float32(rows, device), ROWS_PER_CALL).double().cpu().numpy()


@dataclass(kw_only=True, eq=False, repr=False)
class MADE(FlowBaseline):
    """Masked autoregressive density estimator: each column Gaussian given the columns before it.

    Parameters and attributes are those of `FlowBaseline`.

    >>> import numpy as np
    >>> from roundtrip.baselines import MADE
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = MADE(max_epochs=1, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    # One network has to do what five do in MAF, and can be wide at the same cost.
    hidden: Sequence[int] = (512, 512)

    def _build(self, features: int) -> nn.Module:
        return _zuko().flows.MAF(features, transforms=1, hidden_features=self.hidden)


@dataclass(kw_only=True, eq=False, repr=False)
class RealNVP(FlowBaseline):
    """Real NVP: affine couplings, in which one half of the columns moves the other half.

    Parameters and attributes are those of `FlowBaseline`, and

    transforms : number of couplings. They come in pairs: a random half of the columns, then the
        other half.

    >>> import numpy as np
    >>> from roundtrip.baselines import RealNVP
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> est = RealNVP(max_epochs=1, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape
    ((3,), (4, 2))
    """

    transforms: int = 8

    def _build(self, features: int) -> nn.Module:
        flows = _zuko().flows
        flow = flows.NICE(features, transforms=0)  # for its base, a standard normal
        # Pairs of opposite masks: zuko's own random masks may leave a column untouched.
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
class MAF(FlowBaseline):
    """Masked autoregressive flow: several MADEs, one after the other, in alternating order.

    Parameters and attributes are those of `FlowBaseline`, and

    transforms : number of autoregressive transforms.

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
class NSF(FlowBaseline):
    """Neural spline flow: an autoregressive flow of monotonic rational-quadratic splines.

    Parameters and attributes are those of `FlowBaseline`, and

    transforms : number of autoregressive transforms.
    bins : pieces of each spline.
    affine : whether each column is shifted and scaled, given the columns before it, on its way
        into the spline. The splines cover [-5, 5] and leave what is beyond as it is: alone (False,
        as published) they can neither reach outliers nor resolve narrow conditional densities.

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
    """A monotonic affine map of each column, then a monotonic rational-quadratic spline."""
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
    """The package zuko, which is optional."""
    try:
        import zuko
    except ImportError as error:
        raise ImportError(
            "the flow baselines need the package zuko: pip install 'roundtrip[baselines]'"
        ) from error
    return zuko
