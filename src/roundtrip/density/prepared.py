"""`PreparedModel`: a model with what its densities need besides, made once."""

from collections import OrderedDict
from typing import Any

from torch import Tensor

from roundtrip.density.starts.bank import Bank, make_bank
from roundtrip.model.core import RoundtripModel

MOST_KEPT = 64
"""Banks and contexts that are kept; of more, as with covariates, the oldest go."""


class PreparedModel:
    """A model and its banks of prior draws, by seed.

    What is kept only saves time: it follows from the model, and is left out of pickles.

    Parameters
    ----------
    model : RoundtripModel
        In evaluation mode. Must not change while it is in use here.
    """

    def __init__(self, model: RoundtripModel) -> None:
        self.model = model
        self._banks: OrderedDict[int, Bank] = OrderedDict()
        self._given: OrderedDict[bytes, PreparedModel] = OrderedDict()

    @classmethod
    def precise(cls, model: RoundtripModel) -> "PreparedModel":
        """With the encoder in float64, so that a row's value does not depend on its neighbours."""
        return cls(model.with_precise_encoder() if model.has_posterior else model)

    def bank(self, seed: int) -> Bank:
        """The bank for a seed."""
        if seed not in self._banks:
            _keep(self._banks, seed, make_bank(self.model, seed))
        return self._banks[seed]

    def given(self, context: Tensor) -> "PreparedModel":
        """The model of p(x | context) for one context, `(context_dim,)`."""
        key = context.cpu().numpy().tobytes()
        if key not in self._given:
            _keep(self._given, key, PreparedModel(self.model.given(context).eval()))
        return self._given[key]

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_banks": OrderedDict(), "_given": OrderedDict()}


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    if len(store) > MOST_KEPT:
        store.popitem(last=False)
