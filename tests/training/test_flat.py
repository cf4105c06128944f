import copy

import torch

from roundtrip.model.networks import mlp
from roundtrip.training.flat import flattened


def test_flat_weights_are_the_weights():
    rng = torch.Generator().manual_seed(0)
    network = mlp(2, 3, (4, 4), rng=rng)
    before = copy.deepcopy(network)
    (flat,) = flattened(network.parameters())
    network(torch.ones(1, 2)).sum().backward()
    before(torch.ones(1, 2)).sum().backward()
    expected = torch.cat([parameter.grad.flatten() for parameter in before.parameters()])
    torch.testing.assert_close(flat.grad, expected)
    torch.optim.SGD([flat], lr=0.1).step()
    torch.optim.SGD(before.parameters(), lr=0.1).step()
    torch.testing.assert_close(network.state_dict(), before.state_dict())
