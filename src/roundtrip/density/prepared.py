"""`PreparedModel`: a model with what scoring measures of it once, and a cache of its banks."""

import math
from collections import OrderedDict
from typing import Any

import numpy as np
from torch import Tensor

from roundtrip.density.net_variance import NetVariance, net_variance, refinement_covers
from roundtrip.density.part_encoder import PartEncoder, fit_part_encoder
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
    part_encoder : PartEncoder or None, default=None
        Encoder of parts of rows, if it was trained before.
    complete : PreparedModel or None, default=None
        The model of complete rows that this one is of parts of.
    """

    def __init__(
        self,
        model: RoundtripModel,
        *,
        nets: bool = False,
        part_encoder: PartEncoder | None = None,
        complete: "PreparedModel | None" = None,
    ) -> None:
        self.model = model
        self.scored_often = nets
        self.nets = nets and model.has_posterior
        self._net_variance: NetVariance | None = None
        self._refines: bool | None = None
        self._observed: PreparedModel | None = None
        self._part_encoder = part_encoder
        self._complete = complete
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

    @property
    def observed(self) -> "PreparedModel":
        """The model of rows of numbers with missing cells, if training had complete rows."""
        if self._observed is None:
            outputs = self.bank(0).outputs
            typical = self.model.noise.mean(outputs).median(dim=0).values
            self._observed = PreparedModel(
                self.model.observed(typical), nets=self.scored_often, complete=self
            )
        return self._observed

    @property
    def of_parts(self) -> "PreparedModel":
        """The model that takes rows with missing cells: this one, or that of observed cells."""
        return self if self.model.inputs is not None else self.observed

    def model_of(self, x: Tensor) -> RoundtripModel:
        """Return the model, or that of observed cells if some are missing in these rows."""
        if self.model.inputs is None and bool(x.isnan().any()):
            return self.observed.model
        return self.model

    @property
    def known_part_encoder(self) -> PartEncoder | None:
        """The encoder of parts of rows, if it was trained or read from a file."""
        return self._part_encoder

    def part_encoder(self, verbose: bool = False) -> PartEncoder:
        """Return the encoder of parts of rows, trained at the first call."""
        self.learn_parts(verbose=verbose)
        assert self._part_encoder is not None
        return self._part_encoder

    def learn_parts(self, *, seconds: float = math.inf, verbose: bool = False) -> None:
        """Train the encoder of parts of rows, unless there is one or it takes too long."""
        if self._part_encoder is None and self._complete is not None:
            self._complete.learn_parts(seconds=seconds, verbose=verbose)
            self._part_encoder = self._complete.known_part_encoder
        elif self._part_encoder is None:
            z = self.model.prior.sample(1, np.random.RandomState(0)).to(self.model.device)
            features = self.model.noise.mean(self.model.decode(z)).shape[1]
            self._part_encoder = fit_part_encoder(
                self.model, features, seed=0, seconds=seconds, verbose=verbose
            )

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
        computed: dict[str, Any] = {
            "_banks": OrderedDict(),
            "_given": OrderedDict(),
            "_observed": None,
        }
        return self.__dict__ | computed


def _keep(store: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    store[key] = value
    if len(store) > MOST_KEPT:
        store.popitem(last=False)
