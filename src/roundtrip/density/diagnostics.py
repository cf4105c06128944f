"""Pareto k: the tail shape of importance weights, which shows whether estimates are reliable."""

import math

import torch
from torch import Tensor

SMALLEST_ESS = 5.0
LARGEST_LOG_DENSITY = 1e12
"""Above this, float64 can't resolve a tolerance."""


def pareto_k(log_weights: Tensor) -> Tensor:
    """Fit a generalised Pareto distribution to the largest weights of each row; return its shape.

    Below 0.5 the variance of the weights is finite. Above about 0.7 estimates are unreliable at any
    practical number of draws (Vehtari, Simpson, Gelman, Yao and Gabry, 2024). The fit is that of
    Zhang and Stephens (2009) with the weak prior of Pareto smoothed importance sampling.

    Parameters
    ----------
    log_weights : Tensor
        Log weights, `(rows, n)`.

    Returns
    -------
    Tensor
        Shapes k, `(rows,)`; NaN if the tail has fewer than 5 weights.

    Examples
    --------
    >>> import torch
    >>> pareto_k(torch.zeros(1, 4)).isnan().item()
    True
    """
    n = log_weights.shape[1]
    tail_length = math.ceil(min(0.2 * n, 3 * math.sqrt(n)))
    if tail_length < 5:
        return torch.full_like(log_weights[:, 0], math.nan)
    largest = log_weights.sort(dim=1).values[:, -tail_length - 1 :]
    weights = torch.exp(largest - largest[:, -1:])
    exceedances = weights[:, 1:] - weights[:, :1]
    return _fit_shape(exceedances)


def reliable_k(n: int) -> float:
    """Return the largest k at which an estimate from n weights is reliable.

    Examples
    --------
    >>> round(reliable_k(100), 2), round(reliable_k(100_000), 2)
    (0.5, 0.7)
    """
    return min(1 - 1 / math.log10(max(n, 2)), 0.7)


def reliable(log_density: Tensor, ess: Tensor, k: Tensor, n: int) -> Tensor:
    """Return whether estimates from n weights and their standard errors are reliable, `(rows,)`.

    Parameters
    ----------
    log_density, ess, k : Tensor
        Estimates, effective sample sizes and Pareto k, `(rows,)`.
    n : int
        Number of weights per row.

    Returns
    -------
    Tensor
        A mask.
    """
    return (k <= reliable_k(n)) & (ess >= SMALLEST_ESS) & (log_density.abs() <= LARGEST_LOG_DENSITY)


def _fit_shape(tail: Tensor) -> Tensor:
    """Return the estimate of Zhang and Stephens for ascending exceedances, `(rows, n)`."""
    n = tail.shape[1]
    points = 30 + int(math.sqrt(n))
    grid = torch.arange(1, points + 1, dtype=tail.dtype, device=tail.device)
    tiny = torch.finfo(tail.dtype).tiny
    quartile = tail[:, int(n / 4 + 0.5) - 1, None].clamp_min(tiny)
    theta = (1 - torch.sqrt(points / (grid - 0.5))) / (3 * quartile) + 1 / tail[:, -1:].clamp_min(
        tiny
    )
    k = torch.log1p(-theta[:, :, None] * tail[:, None]).mean(-1)
    log_likelihood = n * (torch.log(-theta / k) - k - 1)
    posterior = torch.softmax(torch.nan_to_num(log_likelihood, nan=-math.inf), dim=1)
    theta_mean = (posterior * theta).sum(1, keepdim=True)
    shape = torch.log1p(-theta_mean * tail).mean(1)
    # The prior counts as 10 further exceedances with k = 0.5.
    return (n * shape + 10 * 0.5) / (n + 10)
