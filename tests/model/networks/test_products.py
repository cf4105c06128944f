"""Products in oneDNN against torch's own."""

import pytest
import torch
from torch import nn

from roundtrip.model.networks import Linear, plain_products, products

SIZES = [(512, 128, 128), (64, 134, 459), (32, 300, 200)]


def both(rows, inputs, outputs, dtype=torch.float32):
    rng = torch.Generator().manual_seed(rows)
    ours, torchs = Linear(inputs, outputs), nn.Linear(inputs, outputs)
    for own, others in zip(ours.parameters(), torchs.parameters(), strict=True):
        own.data.copy_(torch.randn(own.shape, generator=rng))
        others.data.copy_(own.data)
    x = torch.randn(rows, inputs, generator=rng)
    return ours.to(dtype), torchs.to(dtype), x.to(dtype)


def counted(monkeypatch):
    calls = []
    product = products._product

    def noted(*arguments):
        calls.append(arguments)
        return product(*arguments)

    monkeypatch.setattr(products, "_product", noted)
    return calls


@pytest.mark.parametrize("sizes", SIZES)
def test_products_agree_with_torch(sizes, monkeypatch):
    ours, torchs, x = both(*sizes)
    calls = counted(monkeypatch)
    with torch.no_grad():
        torch.testing.assert_close(ours(x), torchs(x), rtol=1e-4, atol=1e-4)
    assert len(calls) == torch.backends.mkldnn.is_available()


@pytest.mark.parametrize("sizes", SIZES)
def test_derivatives_agree_with_torch(sizes, monkeypatch):
    ours, torchs, x = both(*sizes)
    calls = counted(monkeypatch)
    gradients = []
    for layer in (ours, torchs):
        inputs = x.clone().requires_grad_()
        layer(inputs).square().sum().backward()
        gradients.append([inputs.grad, layer.weight.grad, layer.bias.grad])
    for own, others in zip(*gradients, strict=True):
        torch.testing.assert_close(own, others, rtol=1e-3, atol=1e-2)
    assert len(calls) == 3 * torch.backends.mkldnn.is_available()


def test_small_products_and_double_precision_stay_with_torch(monkeypatch):
    calls = counted(monkeypatch)
    for sizes, dtype in (((512, 6, 32), torch.float32), ((512, 128, 128), torch.float64)):
        ours, torchs, x = both(*sizes, dtype)
        with torch.no_grad():
            assert torch.equal(ours(x), torchs(x))
    assert not calls


def test_forward_mode_derivatives_need_plain_products():
    ours, torchs, x = both(64, 128, 128)
    with plain_products():
        value, slope = torch.func.jvp(ours, (x,), (torch.ones_like(x),))
    expected = torch.func.jvp(torchs, (x,), (torch.ones_like(x),))
    torch.testing.assert_close((value, slope), expected, rtol=1e-4, atol=1e-4)


def test_a_row_has_the_same_value_at_every_place():
    ours, _, x = both(512, 134, 459)
    with torch.no_grad():
        values = ours(x)
        assert torch.equal(ours(x.flip(0)).flip(0), values)
        assert torch.equal(ours(x[100:101].expand(512, -1))[7], values[100])
