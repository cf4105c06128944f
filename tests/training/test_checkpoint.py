import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from conftest import TINY

from roundtrip import (
    MLP,
    Adversarial,
    CheckpointError,
    Hybrid,
    Likelihood,
    Residual,
    Roundtrip,
    Validation,
)
from roundtrip.training.checkpoint import Checkpoint, read_checkpoint

STEPS = {"batch_size": 32, "min_steps_per_epoch": 10}
QUICK = {"network": Residual(16, 1), "objective": Likelihood(**STEPS)}
OBJECTIVES = {
    "likelihood": QUICK,
    "adversarial": {
        "network": MLP((16,), (16,)),
        "objective": Adversarial(pool_size=3, **STEPS),
    },
    "hybrid": {"network": Residual(16, 1), "objective": Hybrid(pool_size=3, **STEPS)},
}


@pytest.fixture(name="X")
def table(rng):
    return rng.normal(size=(300, 3)) ** 3


class Killed(BaseException):
    pass


def fit_killed_after(epochs, X, path, monkeypatch, **settings):
    """Fit as a process would that dies right after an epoch's checkpoint."""
    kept = 0
    keep = Checkpoint.keep

    def keep_and_die(self, name, state):
        nonlocal kept
        keep(self, name, state)
        kept += 1
        if kept == epochs:
            raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "keep", keep_and_die)
        patched.setattr("roundtrip.training.checkpoint.LARGEST_SHARE", np.inf)
        with pytest.raises(Killed):
            Roundtrip(**(QUICK | settings)).fit(X, checkpoint=path)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_resumed_fit_is_the_undisturbed_fit(objective, X, tmp_path, monkeypatch):
    settings = {**objective, "max_epochs": 4, "random_state": 0}
    undisturbed = Roundtrip(**settings).fit(X)
    path = tmp_path / "state.ckpt"
    fit_killed_after(2, X, path, monkeypatch, **settings)
    resumed = Roundtrip(**settings).fit(X, checkpoint=path)
    assert resumed.n_iter_ == 4
    for name in ("validation_log_likelihood", "learning_rate"):
        assert resumed.history_[name] == undisturbed.history_[name]
    np.testing.assert_array_equal(resumed.transform(X), undisturbed.transform(X))


def test_resumes_within_the_search_of_the_latent_dimension(rng, tmp_path, monkeypatch):
    monkeypatch.setattr("roundtrip.training.latent_search.TRIAL_SHARE", 0.5)
    X = rng.normal(size=(200, 4))
    settings = {"max_epochs": 4, "random_state": 0}
    undisturbed = Roundtrip(**QUICK, **settings).fit(X)
    assert list(undisturbed.latent_dims_tried_) == [2, 3, 4]
    path = tmp_path / "state.ckpt"
    fit_killed_after(3, X, path, monkeypatch, **settings)  # in the second trial
    resumed = Roundtrip(**QUICK, **settings).fit(X, checkpoint=path)
    assert resumed.latent_dims_tried_ == undisturbed.latent_dims_tried_
    np.testing.assert_array_equal(resumed.transform(X), undisturbed.transform(X))


def test_without_a_seed_the_fit_resumes_with_the_same_split(X, tmp_path, monkeypatch):
    path = tmp_path / "state.ckpt"
    fit_killed_after(2, X, path, monkeypatch, max_epochs=3)
    first = read_checkpoint(path)["states"]["training"]["progress"]["result"]["history"]
    resumed = Roundtrip(**QUICK, max_epochs=3).fit(X, checkpoint=path)
    scores = resumed.history_["validation_log_likelihood"]
    assert scores[:2] == first["validation_log_likelihood"]


def test_a_finished_fit_is_not_repeated(X, tmp_path, monkeypatch):
    path = tmp_path / "state.ckpt"
    est = Roundtrip(**QUICK, max_epochs=2, random_state=0).fit(X, checkpoint=path)
    monkeypatch.setattr(
        "roundtrip.training.likelihood_trainer.LikelihoodTrainer.step",
        lambda *_: pytest.fail("trains"),
    )
    again = Roundtrip(**QUICK, max_epochs=2, random_state=0).fit(X, checkpoint=path)
    np.testing.assert_array_equal(again.transform(X), est.transform(X))


def test_time_spent_before_the_kill_counts(X, tmp_path):
    path = tmp_path / "state.ckpt"
    validation = Validation(patience=10_000)
    settings = {**QUICK, "random_state": 0, "latent_dim": 2, "validation": validation}
    Roundtrip(**settings).fit(X, max_time=0.5, checkpoint=path)
    start = time.perf_counter()
    est = Roundtrip(**settings).fit(X, max_time=0.5, checkpoint=path)
    assert time.perf_counter() - start < 1
    assert est.stopped_by_ == "max_time"


@pytest.mark.parametrize("change", ["data", "settings"])
def test_checkpoint_of_another_fit_is_refused(change, X, tmp_path):
    path = tmp_path / "state.ckpt"
    Roundtrip(**QUICK, max_epochs=1, random_state=0).fit(X, checkpoint=path)
    before = path.read_bytes()
    if change == "data":
        X = X + 1
    est = Roundtrip(**QUICK, max_epochs=1 if change == "data" else 2, random_state=0)
    with pytest.raises(CheckpointError, match="other data or settings"):
        est.fit(X, checkpoint=path)
    assert path.read_bytes() == before
    assert not hasattr(est, "model_")


def test_damaged_checkpoints_are_refused(X, tmp_path, rng):
    path = tmp_path / "state.ckpt"
    Roundtrip(**QUICK, max_epochs=1, random_state=0).fit(X, checkpoint=path)
    whole = path.read_bytes()
    for place in rng.integers(len(whole), size=30):
        path.write_bytes(whole[:place])
        with pytest.raises(CheckpointError):
            read_checkpoint(path)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError):
            read_checkpoint(path)


TRAIN = """
import sys, numpy as np
from roundtrip import Likelihood, Residual, Roundtrip
X = np.load(sys.argv[1])
est = Roundtrip(latent_dim=2, max_epochs=30, random_state=0, network=Residual(16, 1),
                objective=Likelihood(min_steps_per_epoch=30)).fit(X, checkpoint=sys.argv[2])
print(max(est.history_["validation_log_likelihood"]))
"""


@pytest.mark.slow
def test_killed_at_ten_random_moments(X, tmp_path, rng):
    np.save(tmp_path / "X.npy", X)
    path = tmp_path / "state.ckpt"
    command = [sys.executable, "-c", TRAIN, str(tmp_path / "X.npy")]
    start = time.perf_counter()
    undisturbed = subprocess.run(
        [*command, str(tmp_path / "other.ckpt")], check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    kills = 0
    while kills < 10:
        process = subprocess.Popen([*command, str(path)], stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.3, 1.2) * seconds)
        os.kill(process.pid, signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        read_checkpoint(path)  # there is none yet, or it is whole
        if process.returncode == 0:
            path.unlink()  # it had ended before the kill: once more from the start
    resumed = subprocess.run([*command, str(path)], check=True, capture_output=True, text=True)
    assert resumed.stdout == undisturbed.stdout


def test_a_checkpoint_depends_on_what_changes_the_fit_and_on_nothing_else(tmp_path, rng):
    """Whether rounding is spread changes the fit; whether progress is shown does not."""
    X = rng.integers(5, size=(200, 2)).astype(float)
    path = tmp_path / "fit.ckpt"
    Roundtrip(**TINY, dequantize=True).fit(X, checkpoint=path)
    Roundtrip(**TINY, dequantize=True, verbose=1).fit(X, checkpoint=path)
    with pytest.raises(CheckpointError, match="other data or settings"):
        Roundtrip(**TINY, dequantize=False).fit(X, checkpoint=path)
