"""Principal axes of tables with more columns than rows."""

import torch

from roundtrip.training import principal
from roundtrip.training.principal import principal_axes


def test_axes_of_wide_tables_are_those_of_the_covariance(monkeypatch):
    rng = torch.Generator().manual_seed(0)
    X = torch.randn(20, 60, generator=rng, dtype=torch.float64)
    X -= X.mean(dim=0)
    expected, true_axes = principal_axes(X, 5)
    monkeypatch.setattr(principal, "WIDE", 1)
    variances, axes = principal_axes(X, 5)
    torch.testing.assert_close(variances, expected, atol=1e-12, rtol=1e-9)
    torch.testing.assert_close(
        (axes[:, :5] * true_axes[:, :5]).sum(0).abs(), torch.ones(5).double()
    )
    assert torch.equal(axes[:, 19:], torch.zeros(60, 1).double())  # rows span one less
    assert principal_axes(X, 50)[1].shape == (60, 50)


def test_a_table_of_a_hundred_thousand_columns_needs_no_covariance():
    X = torch.randn(3, 100_000, dtype=torch.float64)
    variances, axes = principal_axes(X - X.mean(dim=0), 2)
    assert variances.shape == (100_000,)
    torch.testing.assert_close(axes[:, :2].mT @ axes[:, :2], torch.eye(2).double())
