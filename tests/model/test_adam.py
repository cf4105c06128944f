"""Adam without torch.optim."""

import subprocess
import sys

import torch

from roundtrip.model.adam import Adam


def gradients(steps):
    rng = torch.Generator().manual_seed(0)
    return [torch.randn(5, generator=rng) for _ in range(steps)]


def stepped(optimizer, weights, steps):
    for gradient in steps:
        weights.grad = gradient.clone()
        optimizer.step()
    return weights


def test_steps_are_those_of_torch():
    ours, theirs = torch.ones(5), torch.ones(5, requires_grad=True)
    betas = (0.8, 0.95)
    stepped(Adam([ours], lr=0.1, betas=betas), ours, gradients(20))
    stepped(torch.optim.Adam([theirs], lr=0.1, betas=betas), theirs, gradients(20))
    torch.testing.assert_close(ours, theirs.detach())


def test_resumes_from_its_state():
    whole = stepped(Adam([weights := torch.ones(5)], lr=0.1), weights, gradients(6))
    first = Adam([half := torch.ones(5)], lr=0.1)
    stepped(first, half, gradients(6)[:3])
    second = Adam([half], lr=0.1)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(stepped(second, half, gradients(6)[3:]), whole)


def test_a_fit_and_scores_far_out_do_not_import_the_compiler_of_torch():
    code = """
import sys
import numpy as np
from roundtrip import Likelihood, Roundtrip
X = np.random.default_rng(0).normal(size=(100, 2))
est = Roundtrip(1, max_epochs=1, objective=Likelihood(min_steps_per_epoch=1), tol=1.0)
est.fit(X).score_samples([[30.0, 0.0]])
assert "torch._dynamo" not in sys.modules
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
