"""`Roundtrip`: the density estimator with scikit-learn's interface."""

import math
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
import torch
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    DensityMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_array, check_is_fitted
from torch import Tensor

from roundtrip.data.context import Context
from roundtrip.data.images import ImageLayout, are_images
from roundtrip.data.scaling import Scaling, checked_table, column_resolution
from roundtrip.density import DensityEstimate, estimate
from roundtrip.density.adaptive import DEFAULT_EVALUATIONS
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, ROWS_PER_ENCODER_CALL, map_blocks
from roundtrip.io.atomic import check_writable
from roundtrip.io.devices import resolve_device
from roundtrip.io.model_file import plain, write_model_file
from roundtrip.model.core import RoundtripModel
from roundtrip.model.noise import ConstantGaussian
from roundtrip.parameters import check_integer, check_number, random_stream
from roundtrip.settings import (
    DEFAULT_SIGMA_GRID,
    PAPER,
    PAPER_IMAGES,
    check_settings,
    resolved,
)
from roundtrip.training.checkpoint import Checkpoint, fingerprint
from roundtrip.training.plan import fit_in_stages
from roundtrip.training.run import FittingData

NOT_OF_THE_FIT = {"tol", "n_samples", "device", "verbose"}
"""Parameters that a fit does not depend on."""


class Roundtrip(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):
    """Roundtrip density estimator: log densities with error bars, samples and encodings.

    Learns a generator G (latent z → x) and an encoder H (x → z) from a table, or from images,
    `(rows, height, width, channels)` or `(rows, channels, height, width)`; the density of a point
    is ``p(x) = ∫ p(x | G(z)) p(z) dz``. Defaults suit a laptop CPU; `Roundtrip.paper` and
    `Roundtrip.paper_images` give the settings of the paper. What is "auto" and not explained
    depends on the objective (`roundtrip.settings.AUTOMATIC`).

    Parameters
    ----------
    latent_dim : dimension of z, or "auto": as many as features up to 3. Above, half, two thirds and
        all of the features are each tried for a thirtieth of `max_epochs` or `max_time`, and
        training goes on with two thirds, or with the one of the best validation log-likelihood if
        that is clearly ahead (by 0.05 nats a feature). No trials, but two thirds, if they would be
        shorter than 2 epochs or half a second; half for the adversarial objective. 16 for images.
    objective : "likelihood" maximises an importance-weighted bound on log p(x); "adversarial" is
        the paper's training; "hybrid" adds the paper's losses for the first third of training.
    noise : observation model p(x | z): "isotropic", N(G(z), sigma² I) as in the paper; "diagonal",
        a sigma for each feature; "heteroscedastic", sigmas that depend on z; "mixture", for each
        feature Gaussians that G moves and fixed boxes that G weighs.
    prior : distribution of z: "normal", N(0, I) as in the paper; "mixture", a mixture of Gaussians
        that is fitted, after training, to where the encoder puts the rows (if validation rows
        gain by it). "auto": "mixture", but "normal" for the adversarial objective.
    noise_components, noise_boxes : Gaussians and boxes a feature of the mixture.
    dequantize : whether columns of rounded values are spread evenly over their rounding steps
        while fitting; "auto" and True: those that are found to be rounded, unless the objective is
        adversarial ("auto"). The density is then that of the spread values: its integral over a
        rounding step is the probability of the value.
    network : "mlp" (the paper's leaky ReLU layers), "residual", or, for images, "conv".
    generator_hidden, encoder_hidden, discriminator_x_hidden, discriminator_z_hidden :
        widths of the hidden layers (or residual blocks) of G, H, D_x and D_z. "conv" has one fully
        connected hidden layer each, of the first width.
    training_draws : draws of z a row for the bound.
    alpha, beta : weights of the roundtrip losses of x and z, eq. (14).
    learning_rate : of Adam; "auto" is lower for images of more than 784 numbers. With the
        likelihood objective the matrices between hidden layers are trained by Muon, at five times
        that rate, and the rates fall to zero along a cosine. An eighth of it, by Adam alone, while
        "hybrid" has the paper's losses.
    batch_size : rows a step, at most all of them.
    max_epochs : upper limit; training may stop earlier.
    min_steps_per_epoch : an epoch is one pass over the rows, but at least so many steps, so that
        small tables are trained as long as large ones.
    patience : epochs without a better validation log-likelihood after which training (each stage
        of "hybrid") stops.
    sampling : "shuffle" (every row once an epoch) or "replacement" (as the paper).
    pool_size : batches of earlier fakes shown to the discriminators.
    averaging : decay of the running average of G's and H's weights that is validated and kept;
        0 keeps the weights themselves (the paper).
    sigma : observation noise in scaled units, or "auto": learnt with the networks; 0.25 for images
        unless a noise is given; for the adversarial objective the value of `sigma_grid` with the
        best validation log-likelihood.
    sigma_grid : candidates for sigma.
    sigma_epochs : epochs after which sigma is settled (the paper's 20), or None: sigma is chosen
        together with the weights that are kept.
    scale : "standard", "minmax" or None. Densities are in the user's units whatever it is.
    validation_fraction : share of the rows held out to choose sigma and the epoch.
    validation_rows : at most so many of them are scored each epoch.
    validation_samples : importance draws a row in validation.
    tol : standard error of a log density, in nats, that scoring aims at.
    n_samples : draws a row of ``density(X, method="importance")``.
    proposal_scale, proposal_df : of the Student-t proposal at H(x) that validation and
        ``method="importance"`` use.
    warm_start : whether `fit` goes on from the weights (and scaling) of an earlier `fit` of the
        same estimator, for instance when rows were added; networks must be of the same shape.
    device : "auto" (a CUDA GPU if there is one), or a torch device.
    random_state : seed; the same seed on the same machine gives the same fit.
    verbose : 1 shows a progress bar on stderr while fitting and scoring.

    Attributes
    ----------
    model_ : RoundtripModel, in scaled units.
    scaling_ : Scaling between the user's and the scaled units.
    sigma_ : the observation noise in scaled units where it does not depend on z.
    resolution_ : (features,) the rounding step of each column, 0 for columns that are not rounded.
    stopped_by_ : what ended training: "max_epochs", "max_time", "patience", "interrupt" or
        "divergence".
    latent_dim_ : int.
    latent_dims_tried_ : dict, the validation log-likelihood of each latent dimension that was tried
        (in the user's units, after its short trial); empty if none was.
    prior_gain_ : nats a validation row that the fitted prior is ahead of N(0, I) by; 0 without one.
    n_iter_ : int, epochs trained.
    best_epoch_ : int, the epoch whose weights were kept.
    history_ : dict of lists, one entry an epoch: every loss (NaN in a stage of "hybrid" without
        it), "validation_log_likelihood" (in the user's units), "learning_rate", "seconds",
        "sigma" where validation chooses it.
    context_ : how a context becomes numbers, or None if there was none; `context_.labels` are the
        classes.
    image_layout_ : how images were passed, or None for tables.
    columns_ : column labels of the DataFrame it was fitted on, or None.
    scoring_seed_ : int, seed of the draws that all scoring shares.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

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
        objective: str = "likelihood",
        noise: str = "auto",
        prior: str = "auto",
        noise_components: int = 6,
        noise_boxes: int = 32,
        dequantize: bool | Literal["auto"] = "auto",
        network: str = "auto",
        generator_hidden: Sequence[int] | Literal["auto"] = "auto",
        encoder_hidden: Sequence[int] | Literal["auto"] = "auto",
        discriminator_x_hidden: Sequence[int] = (256,) * 3,
        discriminator_z_hidden: Sequence[int] = (128,) * 2,
        alpha: float = 10.0,
        beta: float = 10.0,
        training_draws: int | Literal["auto"] = "auto",
        learning_rate: float | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        max_epochs: int | Literal["auto"] = "auto",
        min_steps_per_epoch: int = 100,
        patience: int = 20,
        sampling: str = "shuffle",
        pool_size: int = 50,
        averaging: float | Literal["auto"] = "auto",
        sigma: float | Literal["auto"] = "auto",
        sigma_grid: Sequence[float] = DEFAULT_SIGMA_GRID,
        sigma_epochs: int | None = None,
        scale: str | None = "standard",
        validation_fraction: float = 0.1,
        validation_rows: int | Literal["auto"] = "auto",
        validation_samples: int | Literal["auto"] = "auto",
        tol: float = 0.05,
        n_samples: int = 2000,
        proposal_scale: float = 0.2,
        proposal_df: float = 1.0,
        warm_start: bool = False,
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.latent_dim = latent_dim
        self.objective = objective
        self.noise = noise
        self.prior = prior
        self.noise_components = noise_components
        self.noise_boxes = noise_boxes
        self.dequantize = dequantize
        self.network = network
        self.generator_hidden = generator_hidden
        self.encoder_hidden = encoder_hidden
        self.discriminator_x_hidden = discriminator_x_hidden
        self.discriminator_z_hidden = discriminator_z_hidden
        self.alpha = alpha
        self.beta = beta
        self.training_draws = training_draws
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.min_steps_per_epoch = min_steps_per_epoch
        self.patience = patience
        self.sampling = sampling
        self.pool_size = pool_size
        self.averaging = averaging
        self.sigma = sigma
        self.sigma_grid = sigma_grid
        self.sigma_epochs = sigma_epochs
        self.scale = scale
        self.validation_fraction = validation_fraction
        self.validation_rows = validation_rows
        self.validation_samples = validation_samples
        self.tol = tol
        self.n_samples = n_samples
        self.proposal_scale = proposal_scale
        self.proposal_df = proposal_df
        self.warm_start = warm_start
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, latent_dim: int | Literal["auto"] = "auto", **overrides: Any) -> Self:
        """An estimator with every setting as in the paper; `overrides` replace single ones.

        Networks, losses and stopping are the paper's; batch size, Adam's betas, the pool and the
        discriminators' layers, which it does not state, are those of the authors' code. How much
        of the validation set is scored after each epoch is ours, for speed. Tables are min-max
        scaled (Appendix D); the paper's simulations are not: pass ``scale=None``.

        >>> Roundtrip.paper(latent_dim=5).generator_hidden == (512,) * 10
        True
        """
        return cls._preset(PAPER, latent_dim, overrides)

    @classmethod
    def paper_images(cls, latent_dim: int = 100, **overrides: Any) -> Self:
        """The paper's settings for images: the networks of its Table S3, 100 latent dimensions.

        Fit it with ``context=labels`` for p(x | y), as in the paper's Fig. 3.

        >>> Roundtrip.paper_images().network
        'conv'
        """
        return cls._preset(PAPER_IMAGES, latent_dim, overrides)

    @classmethod
    def _preset(cls, preset: dict[str, Any], latent_dim: Any, overrides: dict[str, Any]) -> Self:
        unknown = overrides.keys() - set(cls._get_param_names())
        if unknown:
            raise ValueError(
                f"unknown parameter {', '.join(sorted(unknown))}; "
                f"known are {', '.join(cls._get_param_names())}"
            )
        return cls(latent_dim, **(preset | overrides))

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
        """Fit to the rows of `X`, `(rows, features)`; `y` is ignored.

        Parameters
        ----------
        X : `(rows, features)`.
        context : makes it a conditional density p(x | context): a class label a row, `(rows,)` of
            anything hashable, or covariates, `(rows,)` or `(rows, columns)` of numbers (whole
            numbers count as labels if they come as `(rows,)`, as covariates if as `(rows, 1)`).
            Scoring and sampling then need a context, too.
        validation_data : rows to choose the best epoch by; None holds out a share of `X`.
        validation_context : their context.
        max_time : seconds after which training ends, best weights kept; its schedule is stretched
            or shortened accordingly, and `max_epochs` "auto" sets no limit. A first validation, ten
            seconds or so for the paper's large networks, is not cut short.
        checkpoint : file in which the state of training is kept between epochs. If it exists,
            training goes on from there, with the result of a fit that was never interrupted; it
            must be of the same data and parameters. It stays when the fit has ended.

        If it fails, the estimator is what it was before.
        """
        before = dict(self.__dict__)
        try:
            return self._fit(X, context, validation_data, validation_context, max_time, checkpoint)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

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
        layout = ImageLayout.of(X) if are_images(X) else None
        settings = resolved(self.get_params(), pixels=0 if layout is None else layout.features)
        check_settings(settings)
        if max_time is not None:
            max_time = check_number("max_time", max_time, above=0)
            if self.max_epochs == "auto":
                settings["max_epochs"] = math.inf
        device = resolve_device(self.device)
        previous: RoundtripModel | None = None
        if self.warm_start:
            previous = getattr(self, "model_", None)
        columns = list(X.columns) if isinstance(X, pd.DataFrame) else None
        if previous is None:
            self.image_layout_ = layout
        X = self._checked(X, ensure_min_samples=2, reset=previous is None)
        if previous is None and layout is not None:
            # Images are rescaled and nothing else, as in the paper.
            self.scaling_ = Scaling(np.zeros(layout.features), np.full(layout.features, layout.top))
            self.resolution_ = np.zeros(layout.features)
            self.context_ = None if context is None else Context.fit(context)
        elif previous is None:
            self.scaling_ = Scaling.fit(X, self.scale)
            self.resolution_ = column_resolution(X)
            self.context_ = None if context is None else Context.fit(context)
        X = self._beside(X, context)
        self.columns_ = columns
        states = None
        random_state = self.random_state
        if validation_data is not None:
            validation_data = self._beside(
                self._checked(validation_data, reset=False), validation_context
            )
        elif validation_context is not None:
            raise ValueError("validation_context needs validation_data")
        if checkpoint is not None:
            check_writable(checkpoint)
            states = Checkpoint(
                checkpoint, self._fingerprint(settings, X, validation_data, max_time, previous)
            )
            random_state = states.seed if random_state is None else random_state
        random = random_stream(random_state)
        self.scoring_seed_ = int(random.randint(2**31 - 1))
        if validation_data is None:
            order = random.permutation(len(X))
            held_out = min(max(1, round(self.validation_fraction * len(X))), len(X) - 1)
            X, validation_data = X[order[held_out:]], X[order[:held_out]]
        else:
            validation_data = validation_data[random.permutation(len(validation_data))]
        data = self._fitting_data(X, validation_data[: settings["validation_rows"]], device)
        fitted = fit_in_stages(
            settings,
            data,
            seed=int(random.randint(2**31 - 1)),
            validation_seed=self.scoring_seed_ + 1,  # scores must not reuse validation's draws
            max_time=None if max_time is None else max_time - (time.perf_counter() - start),
            start=previous,
            checkpoint=states,
        )
        self.model_, result = fitted.model, fitted.result
        self.latent_dim_ = fitted.model.latent_dim
        self.latent_dims_tried_ = fitted.latent_dims_tried
        self.prior_gain_ = fitted.prior_gain
        self.n_iter_ = result.n_epochs
        self.best_epoch_ = result.best_epoch
        self.history_ = result.history
        self.stopped_by_ = result.stopped_by
        return self

    def _fingerprint(
        self,
        settings: dict[str, Any],
        X: np.ndarray,
        validation_data: np.ndarray | None,
        max_time: float | None,
        previous: RoundtripModel | None,
    ) -> str:
        """A name for all that the fit depends on."""
        of_fit = {name: value for name, value in settings.items() if name not in NOT_OF_THE_FIT}
        if isinstance(self.random_state, np.random.RandomState):
            of_fit["random_state"] = [plain(part) for part in self.random_state.get_state()]
        arrays = [X, self.scaling_.shift, self.scaling_.scale, self.resolution_]
        if validation_data is not None:
            arrays.append(validation_data)
        if previous is not None:
            arrays += [value.cpu().numpy() for value in previous.state_dict().values()]
        of_fit = {name: plain(value) for name, value in of_fit.items()}
        return fingerprint(of_fit | {"max_time": max_time}, *arrays)

    def _fitting_data(
        self, training: np.ndarray, validation: np.ndarray, device: torch.device
    ) -> FittingData:
        features = self.n_features_in_

        def scaled(rows: np.ndarray) -> Tensor:
            x = self.scaling_.apply(rows[:, :features])
            return torch.from_numpy(np.concatenate([x, rows[:, features:]], axis=1)).to(device)

        parts = scaled(training), scaled(validation)
        if not all(torch.isfinite(rows.float()).all() for rows in parts):
            raise ValueError("the table spans a range too wide for float32; rescale its columns")
        dequantize = self.dequantize
        if dequantize == "auto":
            dequantize = self.objective != "adversarial"
        return FittingData(
            *parts,
            resolution=torch.from_numpy(self.resolution_ / self.scaling_.scale).to(device),
            jitter=bool(dequantize) and bool((self.resolution_ > 0).any()),
            log_det=self.scaling_.log_det,
            context_dim=0 if self.context_ is None else self.context_.width,
            image_shape=None if self.image_layout_ is None else self.image_layout_.shape,
        )

    def density(
        self,
        X: Any,
        *,
        context: Any = None,
        method: str = "adaptive",
        tol: float | None = None,
        max_evaluations: int | None = None,
        n_samples: int | None = None,
        sigma: float | None = None,
    ) -> DensityEstimate:
        """Log densities of the rows of `X` in `X`'s own units, with error bars.

        Parameters
        ----------
        X : `(rows, features)`.
        context : of each row, or one for all, if there was one in `fit`; the density is then that
            of x given its context.
        method : "adaptive": importance sampling until the standard error of a row is below `tol`;
            "importance": eq. (5) with the paper's proposal; "laplace": the closed form of eq. (12),
            error unknown.
        tol : in nats; the estimator's `tol` when None. Rows that do not reach it raise one
            `DensityWarning` and are marked in the result's `converged`.
        max_evaluations : evaluations of G a row at most (adaptive); 20,000 when None.
        n_samples : draws a row (importance); the estimator's `n_samples` when None.
        sigma : observation noise in scaled units other than the fitted `sigma_` (isotropic noise).
        """
        for name, value, only in (
            ("tol", tol, "adaptive"),
            ("max_evaluations", max_evaluations, "adaptive"),
            ("n_samples", n_samples, "importance"),
        ):
            if value is not None and method != only:
                raise ValueError(f"{name} is for method={only!r}, not for method={method!r}")
        index = X.index if isinstance(X, pd.DataFrame) else None
        X = self._validated(X)
        result = estimate(
            self.model_,
            self.scaling_.apply(X),
            context=self._encoded_context(context, len(X)),
            method=method,
            tol=self.tol if tol is None else tol,
            max_evaluations=DEFAULT_EVALUATIONS if max_evaluations is None else max_evaluations,
            n_samples=self.n_samples if n_samples is None else n_samples,
            scale=self.proposal_scale,
            df=self.proposal_df,
            sigma=sigma,
            random_state=self.scoring_seed_,
            verbose=bool(self.verbose),
        )
        return replace(result.shifted(self.scaling_.log_det), index=index)

    def score_samples(self, X: Any, *, context: Any = None) -> np.ndarray:
        """Log density of each row of `X` in `X`'s own units, `(rows,)` float64."""
        return self.density(X, context=context).log_density

    def score(self, X: Any, y: Any = None, *, context: Any = None) -> float:
        """The *mean* log-likelihood of the rows of `X` (not their sum); `y` is ignored."""
        return float(self.score_samples(X, context=context).mean())

    def sample(
        self,
        n_samples: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        context: Any = None,
    ) -> np.ndarray | pd.DataFrame:
        """Draw rows from the fitted density, like the `X` of `fit`: `(n_samples, features)`.

        `context` is that of each row, or one for all, if there was one in `fit`. A DataFrame if the
        estimator was fitted on one. `random_state` None: new rows every time.
        """
        check_is_fitted(self)
        n_samples = check_integer("n_samples", n_samples, minimum=1)
        encoded = self._encoded_context(context, n_samples)
        random = random_stream(random_state)
        z = self.model_.draw_codes(n_samples, random)
        codes = torch.cat([z, torch.from_numpy(encoded)], dim=1)
        generator = torch.Generator().manual_seed(int(random.randint(2**31 - 1)))
        noise = self.model_.noise

        def draw(block: Tensor) -> Tensor:
            return noise.sample(self.model_.decode(block), generator)

        X = self.scaling_.undo(self._in_blocks(draw, codes, EVALUATIONS_PER_CALL))
        if self.image_layout_ is not None:
            return self.image_layout_.unflatten(X)
        return X if self.columns_ is None else pd.DataFrame(X, columns=self.columns_)

    def transform(self, X: Any, *, context: Any = None) -> np.ndarray:
        """The encoding H(x) of each row, `(rows, latent_dim)` float64."""
        X = self._validated(X)
        encoded = self._encoded_context(context, len(X))
        rows = torch.from_numpy(np.concatenate([self.scaling_.apply(X), encoded], axis=1))
        encode = self.model_.with_precise_encoder().encode
        return self._in_blocks(encode, rows, ROWS_PER_ENCODER_CALL)

    def inverse_transform(self, Z: Any, *, context: Any = None) -> np.ndarray:
        """G(z) in `X`'s own units for each row of `Z`, `(rows, latent_dim)`."""
        check_is_fitted(self)
        Z = check_array(Z, dtype=np.float64, input_name="Z")
        if Z.shape[1] != self.latent_dim_:
            raise ValueError(f"Z has {Z.shape[1]} columns, but latent_dim is {self.latent_dim_}")
        codes = np.concatenate([Z, self._encoded_context(context, len(Z))], axis=1)
        generated = self._in_blocks(
            self.model_.generate, torch.from_numpy(codes), EVALUATIONS_PER_CALL
        )
        X = self.scaling_.undo(generated)
        return X if self.image_layout_ is None else self.image_layout_.unflatten(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file that `roundtrip.load` reads; never half a file."""
        check_is_fitted(self)
        write_model_file(path, *self.file_parts())

    def file_parts(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """What a model file holds: plain JSON and tensors."""
        content = {
            "parameters": {name: plain(value) for name, value in self.get_params().items()},
            "latent_dim": self.latent_dim_,
            "scoring_seed": self.scoring_seed_,
            "n_iter": self.n_iter_,
            "best_epoch": self.best_epoch_,
            "stopped_by": self.stopped_by_,
            "prior_gain": self.prior_gain_,
            "prior_components": 0 if self.model_.prior is None else len(self.model_.prior.weights),
            "history": self.history_,
            "latent_dims_tried": list(self.latent_dims_tried_.items()),
            "columns": plain(self.columns_),
            "context": None if self.context_ is None else self.context_.plain(),
            "image_layout": None if self.image_layout_ is None else self.image_layout_.plain(),
        }
        tensors = {
            **{f"model.{name}": value for name, value in self.model_.state_dict().items()},
            "scaling.shift": torch.from_numpy(self.scaling_.shift),
            "scaling.scale": torch.from_numpy(self.scaling_.scale),
            "resolution": torch.from_numpy(self.resolution_),
        }
        return content, tensors

    @property
    def sigma_(self) -> float | np.ndarray:
        """Observation noise in scaled units: one number, or one a feature."""
        check_is_fitted(self)
        if not isinstance(self.model_.noise, ConstantGaussian):
            raise AttributeError(f"noise={self.noise!r} has no sigma_: its width depends on z")
        sigma = self.model_.sigma.cpu().numpy()
        return sigma if sigma.ndim else float(sigma)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    @property
    def _n_features_out(self) -> int:
        return self.latent_dim_

    def _validated(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._checked(X, reset=False)

    def _checked(self, X: Any, **settings: Any) -> np.ndarray:
        if self.image_layout_ is not None:
            X = self.image_layout_.flatten(X)
        return checked_table(self, X, **settings)

    def _encoded_context(self, context: Any, n_rows: int) -> np.ndarray:
        """The context of rows as numbers, `(n_rows, context_dim)`; no columns if there is none."""
        if self.context_ is not None:
            return self.context_.encode(context, n_rows)
        if context is not None:
            raise ValueError("context= was not given in fit, so this density has none")
        return np.empty((n_rows, 0))

    def _beside(self, X: np.ndarray, context: Any) -> np.ndarray:
        """Rows with their context behind them."""
        return np.concatenate([X, self._encoded_context(context, len(X))], axis=1)

    @torch.no_grad()
    def _in_blocks(self, network: Any, rows: Tensor, size: int) -> np.ndarray:
        output = map_blocks(network, rows.to(self.model_.device), size)
        return output.double().cpu().numpy()
