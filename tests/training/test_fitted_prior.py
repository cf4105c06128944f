"""The prior that is fitted to where the encoder puts the data."""

import math

import numpy as np
import pytest
import torch

from roundtrip import Likelihood, MixturePrior, Residual, Roundtrip, load
from roundtrip.data import Rows
from roundtrip.model.core import RoundtripModel
from roundtrip.model.networks import ResidualMLP
from roundtrip.model.prior import GaussianMixture
from roundtrip.training.fitted_prior import fit_prior


def encoder_to_two_places(dim=1):
    """An encoder whose codes are the first feature, nearly without doubt."""
    rng = torch.Generator().manual_seed(0)
    H = ResidualMLP(2, 2, width=4, blocks=1, linear_outputs=2, rng=rng)
    with torch.no_grad():
        H.direct.zero_()
        H.direct[0, 0] = 1.0
        H.last.bias[1] = -5.0
    return RoundtripModel(torch.nn.Linear(dim, 2), H, dim, sigma=0.5, has_posterior=True)


def test_prior_goes_where_the_codes_are(rng):
    rows = np.column_stack([rng.choice([-1.5, 1.5], size=2000), rng.normal(size=2000)])
    rows[:, 0] += 0.2 * rng.normal(size=2000)
    rows = Rows.without_context(torch.from_numpy(rows).float())
    prior, gain = fit_prior(
        encoder_to_two_places(), rows[:1500], rows[1500:], most_components=16, seed=0
    )
    assert gain > 0.5
    density = prior.log_prob(torch.tensor([[-1.5], [0.0], [1.5]])).exp()
    assert density[0] > 10 * density[1]
    assert density[2] > 10 * density[1]
    assert prior.log_prob(torch.tensor([[30.0]])) > -0.5 * 900 - 6  # N(0, I) far from all codes


def test_normal_codes_keep_the_normal_prior_and_few_rows_do_too(rng):
    x = torch.from_numpy(rng.normal(size=(300, 2))).float()
    rows, model = Rows.without_context(x), encoder_to_two_places()
    how = {"most_components": 16, "seed": 0}
    assert fit_prior(model, rows[:10], rows[100:], **how) == (None, 0.0)
    prior, gain = fit_prior(model, rows[:200], rows[200:], **how)
    assert prior is None or gain < 0.05
    unusable = Rows.without_context(x[:200] * math.nan)
    assert fit_prior(model, unusable, rows, **how) == (None, 0.0)


def test_components_are_limited(rng):
    x = torch.from_numpy(rng.uniform(-2, 2, size=(1000, 2))).float()
    rows, model = Rows.without_context(x), encoder_to_two_places()
    prior, _ = fit_prior(model, rows[:800], rows[800:], most_components=3, seed=0)
    assert len(prior.weights) == 3 + 1  # and N(0, I)


def test_a_fitted_prior_is_kept_left_out_and_refused(rng, tmp_path):
    X = np.concatenate([rng.normal(size=(200, 2)) * 0.1 + c for c in (-3, 0, 3)])
    objective = Likelihood(min_steps_per_epoch=20)
    settings = {
        "objective": objective,
        "network": Residual(16, 1),
        "max_epochs": 2,
        "random_state": 0,
    }
    est = Roundtrip(**settings).fit(X)
    assert isinstance(est.model_.prior, GaussianMixture)
    assert est.prior_gain_ > 0
    est.save(tmp_path / "m.rt")
    again = load(tmp_path / "m.rt")
    np.testing.assert_array_equal(again.score_samples(X[:5]), est.score_samples(X[:5]))
    np.testing.assert_array_equal(again.sample(5, 0), est.sample(5, 0))
    assert again.prior_gain_ == est.prior_gain_
    est.set_params(warm_start=True).fit(X)
    assert np.isfinite(est.score(X[:20]))
    normal = Roundtrip(prior="normal", **settings).fit(X)
    assert normal.model_.prior.is_standard_normal
    assert normal.prior_gain_ == 0
    with pytest.raises(ValueError, match="prior must be 'normal'"):
        Roundtrip(objective="adversarial", prior=MixturePrior()).fit(X)
    with pytest.raises(ValueError, match="prior"):
        Roundtrip(prior="flat").fit(X)
