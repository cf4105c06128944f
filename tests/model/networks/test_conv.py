"""The convolutional networks of the paper's Table S3."""

import numpy as np
import pytest
import torch

from roundtrip.model.networks import ConvDiscriminator, ConvEncoder, ConvGenerator


@pytest.mark.parametrize("shape", [(28, 28, 1), (32, 32, 3), (8, 12, 4)])
def test_networks_of_table_s3_have_its_shapes(shape):
    rng = torch.Generator().manual_seed(0)
    features = int(np.prod(shape))
    G = ConvGenerator(100, shape, context_dim=10, norm=True, rng=rng)
    H = ConvEncoder(shape, 100, rng=rng)
    D = ConvDiscriminator(shape, context_dim=10, rng=rng)
    codes = torch.randn(3, 110, generator=rng)
    images = G(codes)
    assert images.shape == (3, features)
    assert images.min() >= 0
    assert images.max() <= 1
    assert H(images).shape == (3, 100)
    rows = torch.cat([images, codes[:, 100:]], dim=1)
    assert D(rows).shape == (3, 1)
    side_by_side = D(torch.stack([rows, rows], dim=1))
    torch.testing.assert_close(side_by_side[:, 0], D(rows))
    assert G.second.out_features == shape[0] // 4 * (shape[1] // 4) * 128
    # The label is joined at each stage.
    assert [G.first.in_features, G.second.in_features] == [110, 1034]
    assert [G.third.in_channels, G.last.in_channels] == [138, 74]
    assert [H.first.out_channels, H.second.out_channels, H.third.out_features] == [64, 64, 1024]
    assert [D.first.out_channels, D.second.out_channels, D.third.out_features] == [32, 64, 1024]


def test_context_changes_what_is_generated():
    rng = torch.Generator().manual_seed(0)
    G = ConvGenerator(4, (8, 8, 1), context_dim=2, hidden=16, rng=rng)
    z = torch.randn(1, 4, generator=rng)
    first, second = (G(torch.cat([z, torch.eye(2)[[k]]], dim=1)) for k in (0, 1))
    assert (first - second).abs().max() > 1e-3
