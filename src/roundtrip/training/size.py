"""Memory that a fit will take, checked before it starts."""

import torch

from roundtrip.io.memory import check_memory
from roundtrip.model.build import build_model
from roundtrip.training.data import FittingData
from roundtrip.training.objective import FitOptions

WIDE = 256
"""Fits of fewer features take little memory, whatever their number of rows."""

COPIES = 8
"""Weights, gradients, two moments of Adam, their average, the best, the last good and new ones."""

ACTIVATIONS = 4
"""Arrays of the size of G's outputs that an update or a validation keeps at once."""

FEWEST_EVALUATIONS = 512
FLOAT, DOUBLE = 4, 8


def check_size(options: FitOptions, data: FittingData, latent_dim: int) -> None:
    """Raise `MemoryError` for a fit that needs more memory than is free.

    Parameters
    ----------
    options : FitOptions
        Components and numbers of the fit.
    data : FittingData
        Training and validation rows.
    latent_dim : int
        Dimension of z.
    """
    features = data.features
    if features < WIDE:
        return
    try:
        with torch.device("meta"):  # shapes alone
            model = build_model(
                data.sizes(latent_dim),
                network=options.network,
                noise=options.noise,
                prior=options.prior,
                has_posterior=options.objective.has_posterior,
                rng=torch.Generator("cpu"),
            )
    except Exception:  # a network of the user's may be made of more than shapes
        return
    weights = sum(part.numel() for part in model.state_dict().values())
    outputs = model.noise.n_outputs
    draws = int(getattr(options.objective, "draws", 1))
    at_once = max(int(options.objective.batch_size) * draws, FEWEST_EVALUATIONS)
    needed = FLOAT * (COPIES * weights + ACTIVATIONS * at_once * outputs)
    needed += DOUBLE * ACTIVATIONS * data.n_rows * features
    check_memory(
        needed,
        f"a fit of {features:,} columns with {outputs:,} outputs of G",
        "use fewer columns, a noise with fewer outputs (noise='diagonal') or a smaller network "
        "(network=Residual(width=16, blocks=1))",
    )
