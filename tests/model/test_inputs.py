"""Inputs of the encoder for rows with categories and missing cells."""

import torch

from roundtrip.model.build import build_model
from roundtrip.model.columns import Columns, Levels
from roundtrip.model.inputs import LEVEL_HEIGHT, RowInputs
from roundtrip.model.networks import MLP, Residual, Sizes
from roundtrip.model.noise import Mixture
from roundtrip.model.prior import NormalPrior

COLOUR = Levels(3, ordered=False, reserved=0.02, frequencies=(0.5, 0.3, 0.2))
SIZE = Levels(3, ordered=True, reserved=0.0, frequencies=(0.25, 0.5, 0.25))
COLUMNS = Columns((COLOUR, None, SIZE), (True, True, False))


def test_each_kind_has_its_inputs():
    inputs = RowInputs(COLUMNS)
    x = torch.tensor([[1.0, 0.5, 0.0], [torch.nan, torch.nan, 1.0], [3.0, -1.0, torch.nan]])
    found = inputs(x)
    assert (inputs.described, inputs.width) == (5, 8)
    assert found[:, 0].tolist() == [0.5, 0.0, -1.0]
    assert found[:, 1:4].tolist() == [[0, LEVEL_HEIGHT, 0], [0, 0, 0], [0, 0, 0]]
    assert found[0, 4] < found[1, 4] == found[2, 4] == 0
    assert found[:, 5:].tolist() == [[0, 0, 0], [1, 1, 0], [0, 0, 0]]


def test_models_of_any_network_take_rows_with_missing_cells():
    for network in (MLP((8,), (8,)), Residual(width=8, blocks=1)):
        model = build_model(
            Sizes(3, 2, context_dim=1, columns=COLUMNS),
            network=network,
            noise=Mixture(gaussians=2, boxes=2),
            prior=NormalPrior(),
            has_posterior=True,
            rng=torch.Generator().manual_seed(0),
        )
        x = torch.tensor([[1.0, torch.nan, 0.0], [torch.nan, 0.3, 2.0]])
        mean, factor = model.posterior(x, torch.zeros(2, 1))
        assert mean.isfinite().all()
        assert factor.isfinite().all()
        assert model.generate(mean, torch.zeros(2, 1)).shape == (2, 3)
        given = model.given(torch.zeros(1))
        torch.testing.assert_close(given.posterior(x)[0], mean)
        assert given.log_joint(x, mean).isfinite().all()


def test_a_cell_that_is_missing_does_not_enter_the_encoder():
    model = build_model(
        Sizes(3, 2, columns=COLUMNS),
        network=MLP((8,), (8,)),
        noise=Mixture(gaussians=2, boxes=2),
        prior=NormalPrior(),
        has_posterior=True,
        rng=torch.Generator().manual_seed(0),
    )
    x = torch.tensor([[1.0, 0.0, 0.0]])
    missing = torch.tensor([[1.0, torch.nan, 0.0]])
    assert model.encode(missing).isfinite().all()
    assert not torch.equal(model.encode(x), model.encode(missing))  # the mask says so
    first = next(each for each in model.encoder.modules() if isinstance(each, torch.nn.Linear))
    masks = slice(model.inputs.described, None)
    with torch.no_grad():
        first.weight[:, masks] = 0
    assert torch.equal(model.encode(x), model.encode(missing))


def test_rows_get_the_missing_cells_of_training_rows():
    inputs = RowInputs(COLUMNS)
    training = torch.zeros(1_000, 3)
    training[:300, 0] = torch.nan
    training[200:500, 1] = torch.nan
    inputs.learn_patterns(
        training[torch.randperm(1_000, generator=torch.Generator().manual_seed(0))]
    )
    x = inputs.as_observed(torch.zeros(20_000, 3), torch.Generator().manual_seed(1))
    share = x.isnan().double().mean(0)
    torch.testing.assert_close(share, torch.tensor([0.3, 0.3, 0.0]).double(), atol=0.06, rtol=0)
    both = x.isnan()[:, :2].all(1).double().mean().item()
    assert 0.05 < both < 0.16
    assert inputs.known_pattern(x).all()
    assert not inputs.known_pattern(torch.tensor([[0.0, 0.0, torch.nan]])).any()


def test_generated_rows_miss_the_cells_that_their_indicators_say():
    flag = Levels(2, ordered=False, reserved=0.0, frequencies=(0.7, 0.3))
    inputs = RowInputs(Columns((None, flag), (True, False), indicators=((0, 1),)))
    training = torch.zeros(600, 2)
    training[::3, 0] = torch.nan
    inputs.learn_patterns(training)
    x = torch.stack([torch.ones(200), torch.arange(200) % 2], dim=1)
    found = inputs.as_observed(x, torch.Generator().manual_seed(0))
    assert torch.equal(found[:, 0].isnan(), found[:, 1] == 1)
