"""The paper's figures and tables by one command each, on the smallest settings."""

import json
import os
import re

import numpy as np
import pytest
import torch

from roundtrip.cli import app
from roundtrip.density import estimate
from roundtrip.model import RoundtripModel
from roundtrip.reproduce import Request, reproduce
from roundtrip.reproduce.published_estimator import biased_log_density
from roundtrip.reproduce.runs import Runs

needs_data = pytest.mark.skipif("ROUNDTRIP_DATA" not in os.environ, reason="needs ROUNDTRIP_DATA")


def command_line(*arguments):
    with pytest.raises(SystemExit) as exit_info:
        app(["reproduce", *arguments])
    return exit_info.value.code


def test_fig2_writes_numbers_pictures_and_page(tmp_path, capsys):
    arguments = ("fig2", "--quick", "--methods", "KDE,Roundtrip", "--budget", "1")
    assert command_line(*arguments, "-o", str(tmp_path)) == 0
    folder = tmp_path / "fig2-quick"
    records = json.loads((folder / "runs.json").read_text())
    assert {(r["dataset"], r["method"]) for r in records} == {
        (dataset, method)
        for dataset in ("mixture, sd 0.1", "octagon", "involute")
        for method in ("KDE", "Roundtrip")
    }
    assert {"seed", "budget", "torch", "threads", "fit_seconds"} <= records[0].keys()
    assert (folder / "fig2.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (folder / "fig2.svg").read_text()
    page = (folder / "fig2.md").read_text()
    assert page.strip() in capsys.readouterr().out
    for record in records:
        assert f"{record['gap_to_truth']:+.3f}" in page
    assert "Quick run" in page


def test_what_is_known_is_not_computed_again(tmp_path, capsys):
    request = Request("figS2", tmp_path, quick=True, methods=["KDE"], budget=1)
    first = reproduce(request)
    assert "known" not in capsys.readouterr().err
    before = (request.folder / "runs.json").read_bytes()
    assert reproduce(request) == first
    assert capsys.readouterr().err.count("known") == 2
    assert (request.folder / "runs.json").read_bytes() == before
    reproduce(Request("figS2", tmp_path, quick=True, methods=["KDE"], budget=2, quiet=True))
    assert len(Runs(request.folder / "runs.json").records) == 4  # another budget, another run


def test_fig_s2_has_laplace_as_its_own_line(tmp_path):
    request = Request(
        "figS2", tmp_path, quick=True, methods=["Roundtrip (paper)"], paper_budget=2, quiet=True
    )
    page = reproduce(request)
    assert re.search(r"\| Roundtrip \(paper\), Laplace \| -?[\d.]+ \| -?[\d.]+ \|", page)
    assert "0.829" in page


def test_fig_s1_keeps_its_model_and_shows_both_proposals(tmp_path):
    request = Request("figS1", tmp_path, quick=True, paper_budget=2, quiet=True)
    page = reproduce(request)
    assert (request.folder / "models" / "involute.rt").exists()
    (record,) = Runs(request.folder / "runs.json").records
    assert {"p(z)", "p(x | z)", "q(z), the paper's", "q(z), adaptive"} <= record["curves"].keys()
    for curve in record["curves"].values():
        assert max(curve) == pytest.approx(1.0)
    assert "truth" in page or "true" in page


@needs_data
def test_table1_has_three_roundtrip_rows(tmp_path):
    request = Request(
        "table1",
        tmp_path,
        quick=True,
        methods=["KDE", "Roundtrip (paper)", "Roundtrip"],
        seeds=1,
        budget=1,
        paper_budget=1,
        quiet=True,
    )
    page = reproduce(request)
    for row in ("KDE", "Roundtrip (paper)", "Roundtrip (paper), authors' biased weights"):
        assert re.search(rf"\| {re.escape(row)} \| -?[\d.]+ ± [\d.]+ \|", page), row
    assert "28.38" in page  # the paper's own
    assert "HEPMASS, YPMSD" in page


def test_mistakes_are_named_before_any_work(tmp_path, capsys):
    assert command_line("fig9", "-o", str(tmp_path)) == 2
    assert "fig2" in capsys.readouterr().err
    assert command_line("fig2", "--methods", "KDE,magic", "-o", str(tmp_path)) == 2
    assert "magic" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "fig2").mkdir()
    (tmp_path / "fig2" / "runs.json").write_text("{")
    assert command_line("fig2", "--methods", "KDE", "-o", str(tmp_path)) == 2
    assert "runs.json" in capsys.readouterr().err


@pytest.mark.parametrize(("latent_dim", "bias"), [(2, 0.18), (5, 0.90)])
def test_published_weights_are_biased_upwards_and_ours_are_not(latent_dim, bias):
    """On a linear G, whose density is known."""
    generator = torch.Generator().manual_seed(latent_dim)
    weight = torch.randn(6, latent_dim, generator=generator, dtype=torch.float64)
    G = torch.nn.Linear(latent_dim, 6, bias=False, dtype=torch.float64)
    H = torch.nn.Linear(6, latent_dim, bias=False, dtype=torch.float64)
    with torch.no_grad():
        G.weight.copy_(weight)
        H.weight.copy_(torch.linalg.pinv(weight))
    model = RoundtripModel(G, H, latent_dim, sigma=0.5)
    covariance = weight @ weight.T + 0.25 * torch.eye(6, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(torch.zeros(6, dtype=torch.float64), covariance)
    torch.manual_seed(0)
    x = exact.sample((20,))
    truth = exact.log_prob(x).numpy()
    biased = biased_log_density(model, x, n_samples=40_000, scale=0.5)
    assert np.mean(biased - truth) > bias / 2
    ours = estimate(model, x, method="importance", n_samples=40_000, scale=0.5)
    assert abs(np.mean(ours.log_density - truth)) < 0.03
