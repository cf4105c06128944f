import numpy as np
import pytest

from roundtrip import MLP, Adversarial, Likelihood, Residual, Roundtrip
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.result import TrainingResult
from roundtrip.training.run import fit_model

QUICK = {
    "network": Residual(16, 1),
    "objective": Likelihood(batch_size=32, min_steps_per_epoch=2),
    "random_state": 0,
}


@pytest.fixture(name="X")
def table(rng):
    return rng.normal(size=(300, 4))


@pytest.fixture
def long_trials(monkeypatch):
    """Trials of half the epochs of the training after them, so that four epochs are enough."""
    monkeypatch.setattr("roundtrip.training.latent_search.TRIAL_SHARE", 0.5)


@pytest.mark.usefixtures("long_trials")
def test_tries_and_keeps_what_it_tried(X):
    est = Roundtrip(**QUICK, max_epochs=4).fit(X)
    assert list(est.latent_dims_tried_) == [2, 3, 4]
    assert est.model_.latent_dim == est.latent_dim_


@pytest.mark.usefixtures("long_trials")
@pytest.mark.parametrize(("ahead", "chosen"), [(0.19, 3), (0.21, 2)])
def test_another_than_the_default_must_be_clearly_ahead(ahead, chosen, X, monkeypatch):
    """By 0.05 nats per feature, of which there are four."""
    scores = {2: 1.0 + ahead, 3: 1.0, 4: 0.5}

    def trial(options, data, *, latent_dim, **arguments):
        model, result = fit_model(options, data, latent_dim=latent_dim, **arguments)
        result.history["validation_log_likelihood"] = [scores[latent_dim]]
        return model, result

    monkeypatch.setattr("roundtrip.training.latent_search.fit_model", trial)
    est = Roundtrip(**QUICK, max_epochs=4).fit(X)
    assert est.latent_dims_tried_ == scores
    assert est.latent_dim_ == chosen


def test_no_trials_in_a_short_training(X):
    assert Roundtrip(**QUICK, max_epochs=3).fit(X).latent_dims_tried_ == {}


@pytest.mark.usefixtures("long_trials")
@pytest.mark.parametrize(
    "settings",
    [
        {"latent_dim": 2},
        {
            "objective": Adversarial(batch_size=32, min_steps_per_epoch=2),
            "network": MLP((8,), (16,)),
        },
    ],
    ids=["latent_dim", "adversarial"],
)
def test_no_trials_where_they_would_say_nothing(settings, X):
    est = Roundtrip(**(QUICK | settings), max_epochs=4).fit(X)
    assert est.latent_dims_tried_ == {}


def test_finds_the_number_of_dimensions_that_the_data_has(rng, monkeypatch):
    """Eight columns that follow from four numbers need no eight."""
    z = rng.normal(size=(3000, 4))
    X = np.c_[z, np.sin(2 * z)] + 0.05 * rng.normal(size=(3000, 8))
    monkeypatch.setattr(  # the trials choose, of 60 epochs; the training after them is left out
        "roundtrip.training.plan.fit_model",
        lambda *_, start, **__: (start, TrainingResult()),
    )
    settings = {"network": Residual(32, 1)}
    settings |= {"max_epochs": 60, "objective": Likelihood(batch_size=128, min_steps_per_epoch=100)}
    est = Roundtrip(**settings, prior="normal", random_state=0).fit(X)
    tried = est.latent_dims_tried_
    assert list(tried) == [4, 5, 8]
    assert est.latent_dim_ in (4, 5)
    assert tried[8] < min(tried[4], tried[5])  # whichever of them is the default


def test_time_for_trials_is_part_of_max_time(X, monkeypatch):
    monkeypatch.setattr("roundtrip.training.latent_search.SHORTEST_TRIAL_SECONDS", 0.1)
    monkeypatch.setattr("roundtrip.options.SMALL_TABLE", 0)  # these are tried out in another way
    est = Roundtrip(**QUICK).set_params(objective__min_steps_per_epoch=100).fit(X, max_time=4.0)
    assert len(est.latent_dims_tried_) == 3
    assert 2.8 < est.history_["seconds"][-1] < 3.6  # what trials of 0.2 s each leave over


def test_interrupt_of_a_trial_ends_the_fit(X, monkeypatch):
    step, taken = LikelihoodTrainer.step, 0

    def step_until_interrupt(self, rows):
        nonlocal taken
        taken += 1
        if taken > 25:
            raise KeyboardInterrupt
        return step(self, rows)

    monkeypatch.setattr(LikelihoodTrainer, "step", step_until_interrupt)
    est = Roundtrip(**QUICK, max_epochs=60).set_params(objective__min_steps_per_epoch=20)
    with pytest.warns(UserWarning, match="interrupted"):
        est.fit(X)
    assert est.stopped_by_ == "interrupt"
    assert taken == 26
    assert list(est.latent_dims_tried_) == [2]
    assert np.isfinite(est.score_samples(X[:5])).all()
