from dataclasses import dataclass

import numpy as np
import pytest
import torch
from rich.progress import Progress
from scipy.stats import multivariate_normal

from roundtrip import Isotropic, Likelihood, Mixture, Residual, Roundtrip
from roundtrip.data import Rows
from roundtrip.model.noise import MixtureNoise
from roundtrip.training.data import FittingData
from roundtrip.training.likelihood_trainer import LikelihoodTrainer
from roundtrip.training.run import fit_model

SMALL = {"network": Residual(8, 1), "noise": "diagonal"}


def table(rows):
    """A bent cloud of five columns."""
    rng = np.random.default_rng(rows)
    z = rng.normal(size=(rows, 2))
    X = np.column_stack([z, z[:, 0] ** 2, z[:, 1] * z[:, 0], z.sum(axis=1)])
    return X + 0.3 * rng.normal(size=X.shape)


def fitting_data(rows, own_validation=False):
    x = torch.arange(float(rows), dtype=torch.float64)[:, None]
    held_out = rows // 10
    return FittingData(
        Rows.without_context(x[held_out:]),
        Rows.without_context(x[:held_out]),
        resolution=torch.zeros(1),
        jitter=False,
        log_det=0.0,
        own_validation=own_validation,
    )


@pytest.mark.parametrize("count", [1, 3, 5])
def test_folds_hold_out_every_row_at_most_once(count):
    folds = fitting_data(100).folds(count)
    assert len(folds) == count
    held_out = torch.cat([fold.validation.x for fold in folds]).flatten()
    assert len(held_out) == len(held_out.unique()) == 20 * count
    for fold in folds:
        both = torch.cat([fold.training.x, fold.validation.x]).flatten()
        assert both.sort().values.tolist() == list(range(100))


def test_validation_rows_of_the_user_are_never_trained_on():
    (fold,) = fitting_data(100, own_validation=True).folds(1)
    assert fold.validation.x.flatten().tolist() == list(range(10))
    est = Roundtrip(**SMALL, random_state=0).fit(table(60), validation_data=table(40))
    assert est.stopped_by_ != "validation"


def test_small_tables_beat_a_gaussian_and_stop_by_themselves():
    X, test = table(300), table(400)
    est = Roundtrip(random_state=0, tol=0.2).fit(X)
    gaussian = multivariate_normal(X.mean(axis=0), np.cov(X.T)).logpdf(test).mean()
    assert est.score(test[:100]) > gaussian + 0.3
    assert est.stopped_by_ == "validation"
    assert est.n_iter_ == est.best_epoch_ == len(est.history_["validation_log_likelihood"])
    assert est.options_.network == Residual(width=32)
    assert est.options_.max_epochs == est.n_iter_


def test_gaussian_rows_are_not_learnt_by_heart():
    """Rows of independent normals have nothing to learn: held-out rows lose next to nothing."""
    rng = np.random.default_rng(0)
    est = Roundtrip(random_state=0, tol=0.3).fit(rng.normal(size=(100, 3)))
    truth = -0.5 * 3 * (1 + np.log(2 * np.pi))
    assert truth - 0.4 < est.score(rng.normal(size=(200, 3))) < truth + 0.3


def test_a_time_limit_is_kept_and_is_no_target():
    est = Roundtrip(**SMALL, random_state=0).fit(table(320), max_time=60)
    assert est.stopped_by_ == "validation"
    short = Roundtrip(**SMALL, random_state=0).fit(table(3000), max_time=1.0)
    assert short.stopped_by_ == "max_time"
    assert short.history_["seconds"][-1] < 1.5


@pytest.mark.filterwarnings("ignore:held-out rows were likeliest")
def test_the_same_seed_gives_the_same_fit():
    X = np.random.default_rng(0).normal(size=(320, 2))  # nothing to learn: training soon ends
    first, second = (Roundtrip(**SMALL, random_state=3).fit(X) for _ in range(2))
    assert first.transform(X[:6]).tolist() == second.transform(X[:6]).tolist()


def test_explicit_epochs_need_no_trials():
    est = Roundtrip(max_epochs=3, random_state=0, objective=Likelihood(min_steps_per_epoch=2))
    assert est.fit(table(50)).n_iter_ == 3


@pytest.mark.parametrize("shape", [(5, 3), (12, 30)])
def test_a_fit_of_few_rows_says_what_it_is_worth(shape):
    X = np.random.default_rng(0).normal(size=shape)
    with pytest.warns(UserWarning, match="too few|more columns"):
        est = Roundtrip(random_state=0).fit(X)
    assert np.isfinite(est.transform(X)).all()


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_an_interrupt_of_any_stage_ends_the_fit(stage, monkeypatch):
    step, trainers, steps_after = LikelihoodTrainer.step, [], 0

    def interrupted(self, rows):
        nonlocal steps_after
        if self not in trainers:
            trainers.append(self)
        if len(trainers) >= stage:
            steps_after += 1
            raise KeyboardInterrupt
        return step(self, rows)

    monkeypatch.setattr(LikelihoodTrainer, "step", interrupted)
    with pytest.warns(UserWarning, match=f"stage {stage}/3.*interrupted"):
        est = Roundtrip(**SMALL, random_state=0).fit(table(320))
    assert est.stopped_by_ == "interrupt"
    assert steps_after == 1
    assert np.isfinite(est.transform(table(5))).all()


@dataclass(frozen=True, repr=False)
class TwoWidths(Isotropic):
    """Noise that is far too wide or about right."""

    @property
    def variants(self):
        return (Isotropic(sigma=30.0), Isotropic(sigma=0.4))


def test_held_out_rows_choose_the_noise():
    est = Roundtrip(network=Residual(8, 1), noise=TwoWidths(), random_state=0).fit(table(320))
    assert est.options_.noise == Isotropic(sigma=0.4)
    assert est.sigma_ == pytest.approx(0.4)


def test_an_interrupt_while_noises_are_tried_keeps_the_first(monkeypatch):
    trainers, step = [], LikelihoodTrainer.step

    def interrupted(self, rows):
        if self not in trainers:
            trainers.append(self)
        if len(trainers) == 2:
            raise KeyboardInterrupt
        return step(self, rows)

    monkeypatch.setattr(LikelihoodTrainer, "step", interrupted)
    est = Roundtrip(network=Residual(8, 1), noise=TwoWidths(), random_state=0)
    with pytest.warns(UserWarning, match=r"noise 2/2.*interrupted"):
        est.fit(table(320))
    assert est.stopped_by_ == "interrupt"
    assert len(trainers) == 2
    assert est.options_.noise == Isotropic(sigma=30.0)


def test_boxes_of_small_tables_start_with_the_weight_that_held_out_rows_prefer():
    assert [noise.box_share for noise in Mixture().variants] == [0.1, 1e-5]
    assert Mixture(box_share=0.2).variants == (Mixture(box_share=0.2),)
    assert Mixture(boxes=0).variants == (Mixture(boxes=0),)
    shares = MixtureNoise(2, moving=3, fixed=5, box_share=1e-5).first_logits.exp()
    assert shares[3:8].sum().item() == pytest.approx(1e-5)


def test_the_progress_bar_shows_the_whole_fit(monkeypatch):
    shares = []
    update = Progress.update

    def recorded(self, task, **values):
        shares.append(values.get("completed", shares[-1] if shares else 0.0))
        return update(self, task, **values)

    monkeypatch.setattr(Progress, "update", recorded)
    est = Roundtrip(network=Residual(8, 1), noise=TwoWidths(), random_state=0, verbose=1)
    est.fit(np.random.default_rng(0).normal(size=(320, 2)))
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] > 0.75  # the fourth of four trainings


def test_a_training_on_all_rows_that_went_wrong_is_not_kept(monkeypatch, rng):
    """It is tried once more; then the model of the first fold, which was validated, is kept."""
    X = rng.normal(size=(320, 2)) * [1.0, 5.0]
    trained, limits = [], []

    def spoiling(options, data, *, key, **how):
        model, result = fit_model(options, data, key=key, **how)
        trained.append(key)
        limits.append((how["max_time"], result.seconds))
        if key.startswith("all-rows"):
            with torch.no_grad():
                for weights in model.encoder.parameters():
                    weights.add_(3.0)
        return model, result

    monkeypatch.setattr("roundtrip.training.length_search.fit_model", spoiling)
    est = Roundtrip(random_state=0).fit(X, max_time=30)
    assert trained[-2:] == ["all-rows", "all-rows-again"]
    (before, seconds), (left, _) = limits[-2:]
    assert left == pytest.approx(before - seconds)  # both within `max_time`
    assert est.stopped_by_ != "validation"
    assert est.score(X[:100]) > -5.5
