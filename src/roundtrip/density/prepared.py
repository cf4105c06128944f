"""`PreparedModel`: a model with what scoring measures of it once, and a cache of its banks."""

from collections import OrderedDict
from typing import Any

from torch import Tensor

from roundtrip.density.net_variance import NetVariance, net_variance, refinement_covers
from roundtrip.density.starts.bank import Bank, make_bank
from roundtrip.model.core import RoundtripModel

MOST_KEPT = 64
"""Largest number of banks and of contexts in the cache; the oldest are dropped first."""


class PreparedModel:
    """A model with its banks of prior draws by seed, and its models given a context.

    Both are computed from the model and cached to save time. Pickles do not contain them.

    Parameters
    ----------
    model : RoundtripModel
        Model in evaluation mode, which must not change afterwards.
    nets : bool, default=False
        Whether the model is scored so often that the measurement of `net_variance` pays.
    """

    def __init__(self, model: RoundtripModel, *, nets: bool = False) -> None:
        self.model = model
        self.nets = nets and model.has_posterior
        self._net_variance: NetVariance | None = None
        self._refines: bool | None = None
        self._banks: OrderedDict[int, Bank] = OrderedDict()
        self._given: OrderedDict[bytes, PreparedModel] = OrderedDict()

    @classmethod
    def precise(cls, model: RoundtripModel) -> "PreparedModel":
        """Prepare a model with a float64 encoder, so that densities do not depend on other rows."""
        return cls(model.with_precise_encoder() if model.has_posterior else model, nets=True)

    @property
    def net_variance(self) -> NetVariance:
        """Variance of a net over that of random draws, see `net_variance.net_variance`."""
        if self._net_variance is None:
            self._net_variance = net_variance(self.model)
        return self._net_variance

    @property
    def refines(self) -> bool:
        """Whether posteriors are refined for each row, see `net_variance.refinement_covers`."""
        if self._refines is None:
            self._refines = self.nets and refinement_covers(self.model)
        return self._refines

    def bank(self, seed: int) -> Bank:
        """Return the bank of a seed."""
        if seed not in self._banks:
            _keep(self._banks, seed, make_bank(self.model, seed))
        return self._banks[seed]

    def given(self, context: Tensor) -> "PreparedModel":
        """Return the prepared model of p(x | context) for one context, `(context_dim,)`."""
        key = context.cpu().numpy().tobytes()
        if key not in self._given:
            # No nets: a measurement per context would cost more than it saves.
            _keep(self._given, key, PreparedModel(self.model.given(context).eval()))
        return self._given[key]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_banks": OrderedDict(), "_given": OrderedDict()}


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    if len(store) > MOST_KEPT:
        store.popitem(last=False)
