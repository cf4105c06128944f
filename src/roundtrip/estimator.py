"""`Roundtrip`: the density estimator with scikit-learn's interface."""

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)

from roundtrip.data import Rows, Schema
from roundtrip.data.checks import unchanged_if_it_fails
from roundtrip.data.images import ImageLayout, are_images
from roundtrip.data.inference import check_overrides, reading
from roundtrip.data.missing import MISSING
from roundtrip.data.scaling import SCALES
from roundtrip.data.tags import TakesAnyCells
from roundtrip.density import FittedDensity
from roundtrip.density.method import LARGEST_TOL
from roundtrip.density.part_encoder import restored_part_encoder
from roundtrip.density.proposals import Proposal
from roundtrip.density.scoring import Scoring
from roundtrip.density.time_of_parts import TimeOfParts
from roundtrip.io.atomic import check_writable
from roundtrip.io.devices import resolve_device
from roundtrip.io.model_file import check_finite
from roundtrip.io.saved import FileParts, Restoring, SavedToFile, plain_parameters
from roundtrip.model.networks import Network
from roundtrip.model.noise import Noise
from roundtrip.model.prior import Prior
from roundtrip.options import HasComponents, PaperPresets, fit_options
from roundtrip.parameters import Seeds, check_choice, check_integer, check_number
from roundtrip.training import Objective, Validation
from roundtrip.training.checkpoint import Checkpoint, fingerprint
from roundtrip.training.concentration import warn_of_concentration
from roundtrip.training.data import FittingData
from roundtrip.training.objective import FitOptions
from roundtrip.training.overfitting import warn_of_overfitting
from roundtrip.training.plan import fit_in_stages
from roundtrip.training.result import check_record
from roundtrip.training.run import restored_model

RECORDS = ("n_iter", "best_epoch", "stopped_by", "prior_gain", "history")
"""Fitted attributes, without their underscore, that a file holds unchanged."""


class Roundtrip(
    PaperPresets,
    HasComponents,
    Scoring,
    SavedToFile,
    TakesAnyCells,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    DensityMixin,
    BaseEstimator,
):
    """Roundtrip density estimator: log densities with error bars, samples and encodings.

    Learns a generator G (latent z → x) and an encoder H (x → z) from a table, or from images,
    `(rows, height, width, channels)` or `(rows, channels, height, width)`. Tables are arrays, or
    DataFrames of pandas, polars or pyarrow with numbers, categories (text, booleans), dates,
    durations and missing cells. The density of a point
    is ``p(x) = ∫ p(x | G(z)) p(z) dz``. Defaults suit a laptop CPU; `Roundtrip.paper` and
    `Roundtrip.paper_images` give the settings of the paper.

    Settings of a noise model, a network or another component belong to the component:
    ``noise=Mixture(boxes=16)``. A string stands for a component with its default settings:
    ``noise="mixture"``.

    Parameters
    ----------
    latent_dim : int or "auto", default="auto"
        Dimension of z. "auto" is the number of features if there are at most 3, and two thirds
        of them up to 24; beyond, a dimension is added for every six features. In tables of at
        least 20,000 rows and at most 24 columns, half and all of the features are tried, too, for
        a thirtieth of `max_epochs` or `max_time` each, unless that is shorter than 2 epochs or
        half a second, and replace two thirds if they are better by 0.05 nats per feature. "auto"
        is half of the features for the adversarial objective, and 16 for images.
    objective : {"likelihood", "adversarial", "hybrid"} or Objective, default="likelihood"
        What training optimises: `Likelihood`, a bound on log p(x); `Adversarial`, the paper's
        losses; `Hybrid`, first the paper's losses, then the bound.
    noise : {"isotropic", "diagonal", "heteroscedastic", "mixture"} or Noise, default="auto"
        Observation model p(x | z): `Isotropic`, `Diagonal`, `Heteroscedastic` or `Mixture`. "auto"
        is a mixture, isotropic with sigma 0.25 for images, and isotropic for the adversarial
        objective.
    network : {"residual", "mlp", "conv"} or Network, default="auto"
        `Residual`, `MLP` or, for images, `Conv`. "auto" is residual, of width 32 for tables of
        fewer than 5,000 rows and 64 below 20,000, and an MLP as in the paper for the adversarial
        objective.
    prior : {"normal", "mixture"} or Prior, default="auto"
        Distribution of z: `NormalPrior` as in the paper or `MixturePrior`, fitted to the codes
        after training. "auto" is a mixture, and normal for the adversarial objective.
    scale : {"standard", "minmax", None}, default="standard"
        How columns are scaled. Densities are in the user's units whatever the scaling.
    columns : dict, default=None
        Kinds of columns by their names (by their numbers in an array), where they are not to be
        inferred: "number", "category", "ordered", "date", "duration", or the list of the levels of
        an ordered category in their order, as in ``{"zip": "category", "size": ["S", "M", "L"]}``.
    missing : {"ignore", "model"}, default="ignore"
        What a missing cell (NaN, None, NaT, pandas.NA) is. "ignore": a cell that was not observed;
        the density of a row is that of its observed cells. "model": besides, which cells are
        missing is a part of the density, and samples have missing cells, too.
    dequantize : bool or "auto", default="auto"
        Whether fitting spreads rounded values evenly over their rounding steps, so that the
        density's integral over a step is the probability of the value. "auto" does, unless the
        objective is adversarial.
    max_epochs : int or "auto", default="auto"
        Largest number of epochs; training may stop earlier. With "auto", cross-validation
        chooses the length of training for tables of fewer than 20,000 rows; otherwise it is 60,
        30 for the adversarial objective, and without limit if `fit` has a `max_time`.
    validation : Validation or "auto", default="auto"
        How held-out rows choose the epoch whose weights are kept.
    proposal : Proposal or "auto", default="auto"
        The paper's proposal distribution, used by ``density(X, method="importance")``.
    tol : float, default=0.05
        Standard error of a log density, in nats, at which scoring stops.
    part_encoder : bool or "auto", default="auto"
        Whether `fit` trains the encoder of parts of rows in the end, within `max_time`, so that
        the first question about a part of a row need not. "auto" does if it takes at most a
        twentieth of the time of the fit. It only makes proposals: answers are the same whenever it
        is trained.
    warm_start : bool, default=False
        Whether `fit` starts from the weights (and scaling) of an earlier `fit` of the same
        estimator, for instance when rows were added. Networks must have the same shape.
    device : str or torch.device, default="auto"
        "auto" is a CUDA GPU if there is one.
    random_state : int, numpy.random.RandomState or None, default=None
        Seed. The same seed on the same machine gives the same fit.
    verbose : int, default=0
        1 shows a progress bar on stderr while fitting and scoring.

    Attributes
    ----------
    model_ : RoundtripModel
        The networks, noise and prior, in scaled units.
    schema_ : Schema
        Columns, scaling, context and image layout of the rows.
    columns_ : dict
        Kind of each column by its name; ``str(est.columns_["job"])`` describes it.
    options_ : FitOptions
        The parameters with every shorthand and "auto" replaced by what it stood for.
    sigma_ : float or numpy.ndarray
        Standard deviation of the noise in scaled units, if it does not depend on z.
    resolution_ : numpy.ndarray
        `(features,)`, rounding step of each column; 0 for columns that are not rounded.
    rounding_ : tuple of Rounding
        How each column is rounded; ``str(est.rounding_[0])`` shows the evidence.
    latent_dim_ : int
        Dimension of z.
    latent_dims_tried_ : dict
        Validation log-likelihood of each latent dimension that was tried, in the user's units;
        empty without trials.
    prior_gain_ : float
        Nats per validation row by which the prior that was fitted after training is better than
        N(0, I); 0 without one.
    n_iter_, best_epoch_ : int
        Number of epochs trained, and the epoch whose weights were kept. 0 is the start, or for
        tables of up to 5,000 rows a linear model with a mixture as prior.
    stopped_by_ : str
        What ended training: "max_epochs", "max_time", "patience", "interrupt" or "divergence";
        "validation" if it took all rows, for as many epochs as cross-validation chose.
    history_ : dict of lists
        One entry per epoch: every loss (NaN in a stage without it), "validation_log_likelihood"
        (in the user's units), "learning_rate", "seconds", and "sigma" if validation chooses it.
    scoring_seed_ : int
        Seed of the draws used in scoring.
    n_features_in_, feature_names_in_ : int, numpy.ndarray
        As in scikit-learn.

    Examples
    --------
    >>> from roundtrip import Roundtrip
    >>> from roundtrip.datasets import make_independent_mixture
    >>> X = make_independent_mixture(500, sd=0.1, random_state=0).X
    >>> est = Roundtrip(latent_dim=2, max_epochs=2, random_state=0).fit(X)
    >>> est.score_samples(X[:3]).shape, est.sample(4).shape, est.transform(X[:3]).shape
    ((3,), (4, 2), (3, 2))
    """

    def __init__(
        self,
        latent_dim: int | Literal["auto"] = "auto",
        *,
        objective: str | Objective = "likelihood",
        noise: str | Noise = "auto",
        network: str | Network = "auto",
        prior: str | Prior = "auto",
        scale: str | None = "standard",
        columns: Mapping[Any, Any] | None = None,
        missing: str = "ignore",
        dequantize: bool | Literal["auto"] = "auto",
        max_epochs: int | Literal["auto"] = "auto",
        validation: Validation | Literal["auto"] = "auto",
        proposal: Proposal | Literal["auto"] = "auto",
        tol: float = 0.05,
        part_encoder: bool | Literal["auto"] = "auto",
        warm_start: bool = False,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.objective = objective
        self.noise = noise
        self.network = network
        self.prior = prior
        self.scale = scale
        self.columns = columns
        self.missing = missing
        self.dequantize = dequantize
        self.max_epochs = max_epochs
        self.validation = validation
        self.proposal = proposal
        self.tol = tol
        self.part_encoder = part_encoder
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        context: Any = None,
        validation_data: Any = None,
        validation_context: Any = None,
        max_time: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Fit to the rows of `X`. If this fails, the estimator does not change.

        Parameters
        ----------
        X : array-like or DataFrame
            `(rows, features)`, or images.
        y : None
            Ignored.
        context : array-like, optional
            Condition of each row, for a conditional density p(x | context): class labels,
            `(rows,)` of anything hashable, or covariates, `(rows,)` or `(rows, columns)` of
            numbers. Integers of shape `(rows,)` are labels; of shape `(rows, 1)`, a covariate.
            Scoring and sampling then need a context, too.
        validation_data : array-like or DataFrame, optional
            Rows that choose the best epoch; by default a share of `X` is held out.
        validation_context : array-like, optional
            Context of `validation_data`.
        max_time : float, optional
            Seconds after which training ends, with the best weights so far. In tables of at least
            20,000 rows the learning-rate schedule is fitted to this time; smaller ones may end
            earlier. The first validation always runs to its end, which takes about ten seconds for
            the paper's large networks.
        checkpoint : str or os.PathLike, optional
            File that keeps the state of training between epochs. If it exists, training resumes
            from it, and the result is that of a fit without interruption; the file must belong to
            the same data and parameters. It is kept when the fit has ended.

        Returns
        -------
        self
        """
        with unchanged_if_it_fails(self):
            return self._fit(X, context, validation_data, validation_context, max_time, checkpoint)

    def _fit(
        self,
        X: Any,
        context: Any,
        validation_data: Any,
        validation_context: Any,
        max_time: float | None,
        checkpoint: str | os.PathLike[str] | None,
    ) -> Self:
        start = time.perf_counter()
        if max_time is not None:
            max_time = check_number("max_time", max_time, above=0)
        pixels = ImageLayout.of(X).features if are_images(X) else 0
        params = self.get_params(deep=False)
        timed = max_time is not None
        fit_options(params, pixels=pixels)  # checks the parameters before the rows
        check_choice("warm_start", self.warm_start, (True, False))
        check_choice("scale", self.scale, SCALES)
        check_choice("part_encoder", self.part_encoder, ("auto", True, False))
        check_choice("missing", self.missing, MISSING)
        check_overrides(self.columns)
        check_number("tol", self.tol, above=0, below=LARGEST_TOL)
        device = resolve_device(self.device)
        # Networks that were not trained, of a linear model, are no start for training.
        trained = getattr(self, "best_epoch_", 0) > 0
        previous = self.model_ if self.warm_start and trained else None
        if previous is None:
            schema, rows = Schema.fit(
                self, X, context, scale=self.scale, columns=self.columns, missing=self.missing
            )
        else:
            self._check_reading()
            schema = self.schema_.with_columns_of(X)
            rows = schema.rows(self, X, context, min_rows=2)
        if previous is not None:
            schema.check_complete("X", rows)
        options = fit_options(
            params, pixels=pixels, rows=len(rows), features=rows.features, has_max_time=timed
        )
        if schema.is_mixed and not options.objective.takes_mixed_rows:
            raise ValueError(
                f"objective={self.objective!r} takes complete tables of numbers, but there are "
                f"categories or missing cells in {schema.mixed_columns()}; use "
                "objective='likelihood', or encode and fill these columns"
            )
        held_out: Rows | None = None
        if validation_data is not None:
            held_out = schema.rows(self, validation_data, validation_context)
            schema.check_complete("validation_data", held_out)
        elif validation_context is not None:
            raise ValueError("validation_context needs validation_data")
        states, random_state = None, self.random_state
        if checkpoint is not None:
            check_writable(checkpoint)
            settings = {**vars(options), "max_time": max_time, "random_state": random_state}
            del settings["verbose"]
            states = Checkpoint(checkpoint, fingerprint(settings, schema, rows, held_out, previous))
            random_state = states.seed if random_state is None else random_state
        seeds = Seeds.from_random_state(random_state)
        data = FittingData.of(
            schema,
            rows,
            held_out,
            validation=options.validation,
            dequantize=options.dequantize,
            rng=seeds.rng("split"),
            device=device,
        )
        asked = False if schema.context or schema.images else self.part_encoder
        time_of = TimeOfParts(asked, max_time, start)
        fitted = fit_in_stages(
            options,
            data,
            seeds=seeds,
            max_time=time_of.training,
            start=previous,
            checkpoint=states,
        )
        result = fitted.result
        warn_of_concentration(fitted.model, data, schema, seeds["validation"])
        if options.max_epochs == "auto" and previous is None:
            warn_of_overfitting(result, data, trained=fitted.trained)
        self.options_ = replace(
            options,
            latent_dim=fitted.model.latent_dim,
            noise=fitted.noise,
            max_epochs=result.n_epochs if options.max_epochs == "auto" else options.max_epochs,
        )
        self.latent_dims_tried_ = fitted.latent_dims_tried
        self.prior_gain_ = fitted.prior_gain
        self.n_iter_ = result.n_epochs
        self.best_epoch_ = result.best_epoch
        self.history_ = result.history
        self.stopped_by_ = result.stopped_by
        if previous is None:
            self._reading = reading(self.columns, self.missing)
        self.fitted_ = FittedDensity(fitted.model, schema, seeds["scoring"])
        if result.stopped_by != "interrupt" and (seconds := time_of.parts):
            self.fitted_.prepared.learn_parts(seconds=seconds, verbose=bool(self.verbose))
        return self

    def _check_reading(self) -> None:
        """Raise `ValueError` if a warm start is to read tables in another way than before."""
        now = reading(self.columns, self.missing)
        changed = [f"{name}=" for name, value in now.items() if value != self._reading[name]]
        if changed:
            raise ValueError(
                f"{' and '.join(changed)} differ{'s' * (len(changed) == 1)} from the earlier fit; "
                "set warm_start=False, or the parameters of that fit"
            )

    def _file_parts(self) -> FileParts:
        content = {
            "parameters": plain_parameters(self.get_params(deep=False)),
            "options": plain_parameters(vars(self.options_)),
            "latent_dim": self.latent_dim_,
            "scoring_seed": self.scoring_seed_,
            "reading": plain_parameters(self._reading),
            "latent_dims_tried": list(self.latent_dims_tried_.items()),
            **{name: getattr(self, f"{name}_") for name in RECORDS},
        }
        parts = FileParts(content, {})
        parts.add("schema", FileParts(*self.schema_.file_parts()))
        parts.add("model", FileParts({}, self.model_.state_dict()))
        encoder = self.fitted_.prepared.known_part_encoder
        if encoder is not None:
            parts.add("part_encoder", FileParts({}, encoder.state_dict()))
        return parts

    @classmethod
    def _from_file_parts(cls, parts: FileParts, how: Restoring) -> Self:
        content, state = parts.content, parts.within("model").tensors
        est = cls(**how.parameters(content["parameters"]))
        check_integer("scoring_seed", content["scoring_seed"], minimum=0)
        check_record(content)
        est.options_ = FitOptions(**how.parameters(content["options"]))
        of_schema = parts.within("schema")
        schema = Schema.from_file(of_schema.content, of_schema.tensors)
        model = restored_model(est.options_, schema, content["latent_dim"], state)
        encoder = None
        # Without one in the file, the first question makes it.
        if "part_encoder" in content:
            of_encoder = parts.within("part_encoder").tensors
            encoder = restored_part_encoder(model, schema.features, of_encoder).to(how.device)
            check_finite("encoder of parts of rows", of_encoder)
        model, seed = model.to(how.device), content["scoring_seed"]
        est.fitted_ = FittedDensity(model, schema, seed, encoder)
        est.latent_dims_tried_ = dict(content["latent_dims_tried"])
        est._reading = how.parameters(content["reading"])
        for name in RECORDS:
            setattr(est, f"{name}_", content[name])
        schema.name_features(est)
        return est
