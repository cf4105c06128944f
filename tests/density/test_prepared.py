"""What is made once for a model, and what is made once per call."""

import pickle

import numpy as np
import pytest
import torch
from conftest import TINY

from roundtrip import Roundtrip, RoundtripModel
from roundtrip.density import estimate
from roundtrip.density.prepared import MOST_KEPT, PreparedModel
from roundtrip.density.starts import bank as bank_module
from roundtrip.density.starts import make_bank


@pytest.fixture(name="prepared")
def prepared_model():
    G, H = torch.nn.Linear(2 + 1, 3), torch.nn.Linear(3, 2)
    model = RoundtripModel(G, H, 2, 0.5, context_dim=1, encodes_context=False)
    return PreparedModel(model.eval())


@pytest.fixture(name="banks_made")
def counted_banks(monkeypatch):
    """Seeds of the banks that are made."""
    seeds = []

    def counted(model, seed):
        seeds.append(seed)
        return make_bank(model, seed)

    monkeypatch.setattr("roundtrip.density.prepared.make_bank", counted)
    return seeds


def test_one_bank_per_seed(prepared, banks_made):
    given = prepared.given(torch.ones(1))
    first, other = given.bank(0), given.bank(1)
    assert given.bank(0) is first
    assert given.bank(1) is other
    assert banks_made == [0, 1]
    assert not torch.equal(first.z, other.z)
    again = make_bank(given.model, 0)
    torch.testing.assert_close(first.z, again.z, rtol=0, atol=0)
    torch.testing.assert_close(first.outputs, again.outputs, rtol=0, atol=0)


def test_one_model_per_context(prepared):
    first, other = (prepared.given(torch.full((1,), value)) for value in (1.0, 2.0))
    assert prepared.given(torch.ones(1)) is first
    assert other is not first
    z = torch.zeros(1, 2)
    for given, value in ((first, 1.0), (other, 2.0)):
        expected = prepared.model.generate(z, torch.full((1, 1), value))
        torch.testing.assert_close(given.model.generate(z), expected)


def test_the_oldest_go_when_there_are_too_many(prepared, banks_made, monkeypatch):
    monkeypatch.setattr("roundtrip.density.starts.bank.BANK_SIZE", 4)
    given = prepared.given(torch.ones(1))
    for seed in range(MOST_KEPT + 1):
        given.bank(seed)
    given.bank(MOST_KEPT)
    given.bank(0)
    assert banks_made == [*range(MOST_KEPT + 1), 0]


def test_what_is_kept_is_not_pickled(prepared, banks_made):
    given = prepared.given(torch.ones(1))
    bank = given.bank(0)
    again = pickle.loads(pickle.dumps(given))
    torch.testing.assert_close(again.bank(0).z, bank.z, rtol=0, atol=0)
    assert banks_made == [0, 0]
    assert given.bank(0) is bank  # the original keeps what it has
    assert len(pickle.dumps(given)) < bank.outputs.nbytes


@pytest.mark.parametrize("context", [False, True], ids=["no context", "two contexts"])
def test_a_second_call_of_density_makes_no_bank(context, mixture, banks_made):
    X, c = mixture.X[:200], np.arange(200) % 2 if context else None
    est = Roundtrip(latent_dim=2, **TINY).fit(X, context=c)
    rows, labels = X[:10], c[:10] if context else None
    first = est.density(rows, context=labels)
    made = list(banks_made)
    assert len(made) >= (2 if context else 1)
    again = est.density(rows, context=labels)
    assert banks_made == made
    np.testing.assert_array_equal(again.log_density, first.log_density)


def test_densities_after_pickling_are_the_same(fitted, mixture):
    before = fitted.score_samples(mixture.X[:5])
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.score_samples(mixture.X[:5]), before)


def test_estimate_has_no_memory_of_a_model_that_may_change(fitted, mixture, banks_made):
    x = fitted.schema_.scaling.apply(mixture.X[:3])
    for _ in range(2):
        estimate(fitted.model_, x)
    assert len(banks_made) == 2 * len(set(banks_made))


@pytest.mark.filterwarnings("ignore::roundtrip.DensityWarning")
def test_unusual_rows_are_looked_for_once_per_call(fitted, mixture, monkeypatch):
    """One encoding and one evaluation of G per row, for the proposal and the certificate alike."""
    x = np.concatenate([mixture.X[:9], [[50.0, -50.0]]])  # one that the encoder does not know
    fitted.density(x)  # makes the banks
    looked_at = []
    log_joint_at_code = bank_module._log_joint_at_code

    def counted(model, x):
        looked_at.append(len(x))
        return log_joint_at_code(model, x)

    monkeypatch.setattr(bank_module, "_log_joint_at_code", counted)
    fitted.density(x)
    assert looked_at in ([10], [10, 1])  # again only where a second estimate is wanted
