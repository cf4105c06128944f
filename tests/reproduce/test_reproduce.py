"""The paper's figures and tables by one command each, on the smallest settings."""

import json
import math
import os
import re
import sys
import warnings

import numpy as np
import pytest
import torch
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from roundtrip import Roundtrip, RoundtripDetector
from roundtrip.cli import app
from roundtrip.datasets import Dataset, DatasetNotFoundError, load_arem, load_bank, load_casp
from roundtrip.density import estimate
from roundtrip.density.proposals import student_t_log_prob
from roundtrip.model.core import RoundtripModel
from roundtrip.outliers.scorer import Scorer
from roundtrip.reproduce import EXPERIMENTS, Request, reproduce
from roundtrip.reproduce.fig2 import divergence, fitted_simulation, run_key
from roundtrip.reproduce.fig_s1 import Z_1
from roundtrip.reproduce.methods import PAPER
from roundtrip.reproduce.outlier_methods import OUTLIER_METHODS, make_outlier_method
from roundtrip.reproduce.published_estimator import biased_log_density
from roundtrip.reproduce.recogniser import Recogniser
from roundtrip.reproduce.runs import Runs
from roundtrip.reproduce.table1 import LATENT_DIMS
from roundtrip.reproduce.table2 import LATENT_DIMS as OUTLIER_LATENT_DIMS
from roundtrip.reproduce.table2 import precision_at_k

needs_data = pytest.mark.skipif(not os.getenv("ROUNDTRIP_DATA"), reason="needs ROUNDTRIP_DATA")


def command_line(*arguments):
    with pytest.raises(SystemExit) as exit_info:
        app(["reproduce", *arguments])
    return exit_info.value.code or 0


def test_fig2_writes_numbers_pictures_and_page(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.modules[EXPERIMENTS["fig2"].__module__], "QUICK_CELLS", 12)
    monkeypatch.setattr("roundtrip.reproduce.simulations.QUICK_TEST_ROWS", 50)
    arguments = ("fig2", "--quick", "--methods", "KDE,Roundtrip", "--budget", "1")
    assert command_line(*arguments, "-o", str(tmp_path)) == 0
    folder = tmp_path / "fig2-quick"
    records = json.loads((folder / "runs.json").read_text())
    assert {(r["dataset"], r["method"]) for r in records} == {
        (dataset, method)
        for dataset in ("mixture, sd 0.1", "octagon", "involute")
        for method in ("KDE", "Roundtrip")
    }
    assert {"seed", "budget", "torch", "threads", "fit_seconds", "parameters"} <= records[0].keys()
    assert (folder / "fig2.png").read_bytes().startswith(b"\x89PNG")
    picture = (folder / "fig2.svg").read_bytes()
    assert b"</svg>" in picture
    page = (folder / "fig2.md").read_text()
    assert page.strip() in capsys.readouterr().out
    for record in records:
        assert f"{record['gap_to_truth']:+.3f}" in page
    assert "Quick run" in page
    assert "at most 1 s a fit" in page  # as asked for, not the figure's own
    # A part of the picture that is lost is computed again, nothing else; the rest is the same.
    lost = next((folder / "densities").glob("*KDE*"))
    lost.unlink()
    assert command_line(*arguments, "-o", str(tmp_path)) == 0
    assert capsys.readouterr().err.count("known") == 5
    assert lost.exists()
    assert (folder / "fig2.svg").read_bytes() == picture


def test_divergence_of_two_gaussians():
    """KL(N(0, 1) ‖ N(m, s²)) = log s + (1 + m²) / 2s² - 1/2."""
    x = np.linspace(-12, 12, 4000)
    area = x[1] - x[0]
    for mean, sd in ((0.0, 1.0), (1.0, 1.0), (0.5, 2.0)):
        exact = math.log(sd) + (1 + mean**2) / (2 * sd**2) - 0.5
        found = divergence(norm.pdf(x), norm.pdf(x, mean, sd), area)
        assert found == pytest.approx(exact, abs=1e-5)
    assert divergence(norm.pdf(x), np.zeros_like(x), area) > 10


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


def test_a_kept_model_is_scored_without_another_fit(tmp_path, monkeypatch):
    request = Request("figS2", tmp_path, quick=True, methods=["Roundtrip"], budget=1, quiet=True)
    page = reproduce(request)
    (request.folder / "runs.json").unlink()
    monkeypatch.setattr(Roundtrip, "fit", None)
    assert reproduce(request) == page


def test_fig_s2_has_laplace_as_its_own_line(tmp_path):
    request = Request(
        "figS2", tmp_path, quick=True, methods=["Roundtrip (paper)"], paper_budget=1, quiet=True
    )
    page = reproduce(request)
    for record in Runs(request.folder / "runs.json").records:
        assert f"{record['spearman']:.3f}" in page
        assert f"{record['spearman_laplace']:.3f}" in page
    assert re.search(r"\| Roundtrip \(paper\), Laplace \| -?[\d.]+ \| -?[\d.]+ \|", page)
    assert "epochs in" in page


def test_fig_s1_is_of_the_model_of_fig2(tmp_path, monkeypatch):
    """With the same limit of time nothing is fitted a second time."""
    settings = {"quick": True, "paper_budget": 2, "quiet": True}
    fitted_simulation(
        request := Request("fig2", tmp_path, **settings), run_key(request, "involute", PAPER)
    )
    monkeypatch.setattr(Roundtrip, "fit", lambda *_, **__: pytest.fail("is fitted again"))
    assert "involute" in reproduce(Request("figS1", tmp_path, **settings))


def test_fig_s1_shows_both_proposals(tmp_path):
    request = Request("figS1", tmp_path, quick=True, paper_budget=2, quiet=True)
    page = reproduce(request)
    (record,) = Runs(request.folder / "runs.json").records
    assert {"p(z)", "p(x | z)", "q(z), the paper's", "q(z), adaptive"} <= record["curves"].keys()
    curves = {name: np.array(values) for name, values in record["curves"].items()}
    assert abs(Z_1[curves["p(z)"].argmax()]) == abs(Z_1).min()
    step = Z_1[1] - Z_1[0]
    in_sight = np.clip(record["encoded"][0], Z_1[0], Z_1[-1])
    assert abs(Z_1[curves["q(z), the paper's"].argmax()] - in_sight) <= step
    # Each curve is divided by its maximum.
    product = curves["p(z)"] * curves["p(x | z)"]
    np.testing.assert_allclose(curves["p(z | x)"], product / product.max(), atol=0.01)
    assert f"{record['log_density']:.3f}" in page
    assert f"{record['true_log_density']:.3f}" in page
    assert (request.folder / "figS1.svg").exists()


def test_bias_grows_with_the_latent_dimension(tmp_path):
    request = Request("bias", tmp_path, quick=True, quiet=True)
    page = reproduce(request)
    one, two, five = Runs(request.folder / "runs.json").records
    assert abs(one["published_error"]) < 0.02  # a product of one density is that density
    assert 0.05 < two["published_error"] < five["published_error"]
    for record in (one, two, five):
        assert abs(record["adaptive_error"]) < 0.05
        assert f"{record['published_error']:+.3f}" in page


@needs_data
def test_table1_has_three_roundtrip_rows(tmp_path, monkeypatch, capsys):
    def missing(**_):
        raise DatasetNotFoundError("put it there")

    module = sys.modules[EXPERIMENTS["table1"].__module__]
    for name in ("HEPMASS", "YPMSD"):
        monkeypatch.setitem(module.DATASETS, name, missing)
    monkeypatch.setattr(module, "QUICK_ROWS", {"train": 1000, "validation": 100, "test": 20})
    request = Request(
        "table1",
        tmp_path,
        quick=True,
        methods=["KDE", "Roundtrip (paper)", "Roundtrip"],
        budget=1,
        paper_budget=1,
    )
    page = reproduce(request)
    assert "without HEPMASS: put it there" in capsys.readouterr().err
    rows = ("KDE", "Roundtrip (paper)", "Roundtrip", "Roundtrip (paper), authors' biased weights")
    for row in rows:
        assert re.search(rf"^\| {re.escape(row)} (\| -?[\d.]+ ± [\d.]+ ){{3}}\|", page, re.M), row
    assert "28.38" in page  # the paper's own
    assert "want of their files: HEPMASS, YPMSD." in page


@needs_data
@pytest.mark.parametrize(
    ("name", "load"), [("AReM", load_arem), ("CASP", load_casp), ("BANK", load_bank)]
)
def test_latent_dimensions_are_those_of_the_data_sets(name, load):
    assert LATENT_DIMS[name] == load().latent_dim


def test_an_interrupted_fit_is_no_result(tmp_path, monkeypatch):
    def interrupted(self, X, **_):
        self.stopped_by_ = "interrupt"
        return self

    monkeypatch.setattr(Roundtrip, "fit", interrupted)
    request = Request("figS2", tmp_path, quick=True, methods=["Roundtrip"], quiet=True)
    with pytest.raises(KeyboardInterrupt):
        reproduce(request)
    assert not (request.folder / "runs.json").exists()


def test_results_of_other_settings_are_not_taken(tmp_path, monkeypatch):
    request = Request("figS2", tmp_path, quick=True, methods=["KDE"], budget=1, quiet=True)
    reproduce(request)
    monkeypatch.setattr(
        "roundtrip.reproduce.fits.settings_of",
        lambda est, **_: {"a new default": type(est).__name__},
    )
    reproduce(request)
    assert len(Runs(request.folder / "runs.json").records) == 4


def test_mistakes_are_named_before_any_work(tmp_path, capsys):
    for arguments, word in (
        (["fig9"], "fig2"),
        (["table2", "--methods", "magic"], "magic"),
        (["fig3", "--seeds", "2"], "seeds"),
        (["fig2", "--methods", "KDE,magic"], "magic"),
        (["bias", "--budget", "3"], "budget"),
        (["fig2", "--seeds", "2"], "seeds"),
    ):
        assert command_line(*arguments, "-o", str(tmp_path)) == 2
        assert word in capsys.readouterr().err
    for content in ("{", "{}", "[1]"):
        (tmp_path / "fig2" / "runs.json").write_text(content)
        assert command_line("fig2", "--methods", "KDE", "-o", str(tmp_path)) == 2
        assert "runs.json" in capsys.readouterr().err


@pytest.mark.parametrize("latent_dim", [2, 5])
def test_published_weights_err_by_the_expected_ratio_and_ours_do_not(latent_dim):
    """On a linear G the posterior is a known Gaussian, so the bias E[q/r | x] is known, too."""
    generator = torch.Generator().manual_seed(latent_dim)
    weight = torch.randn(6, latent_dim, generator=generator, dtype=torch.float64)
    precision = torch.eye(latent_dim).double() + weight.T @ weight / 0.25
    G = torch.nn.Linear(latent_dim, 6, bias=False, dtype=torch.float64)
    H = torch.nn.Linear(6, latent_dim, bias=False, dtype=torch.float64)
    with torch.no_grad():
        G.weight.copy_(weight)
        H.weight.copy_(torch.linalg.solve(precision, weight.T) / 0.25)
    model = RoundtripModel(G, H, latent_dim, sigma=0.5)
    covariance = weight @ weight.T + 0.25 * torch.eye(6, dtype=torch.float64)
    exact = torch.distributions.MultivariateNormal(torch.zeros(6).double(), covariance)
    noise = torch.randn(20, 6, generator=generator, dtype=torch.float64)
    x = noise @ torch.linalg.cholesky(covariance).T
    truth = exact.log_prob(x).numpy()
    scale = 0.5
    factor = torch.linalg.cholesky(torch.linalg.inv(precision))
    t = torch.randn(100_000, latent_dim, generator=generator, dtype=torch.float64) @ factor.T
    t = t / scale
    log_ratio = student_t_log_prob(t, 1.0) - student_t_log_prob(t[..., None], 1.0).sum(-1)
    expected = torch.logsumexp(log_ratio, 0).item() - math.log(len(t))
    biased = biased_log_density(model, x, n_samples=40_000, scale=scale)
    assert expected > 0.1
    assert np.mean(biased - truth) == pytest.approx(expected, abs=0.1 * expected)
    ours = estimate(model, x, method="importance", n_samples=40_000, scale=scale)
    assert abs(np.mean(ours.log_density - truth)) < 0.02


def test_precision_at_k_counts_outliers_among_the_oddest():
    oddness, outlier = np.array([5.0, 1.0, 4.0, 3.0, 2.0]), np.array([1, 1, 0, 1, 0])
    assert precision_at_k(oddness, outlier) == pytest.approx(2 / 3)


@needs_data
def test_table2_is_computed_and_not_computed_again(tmp_path):
    request = Request("table2", tmp_path, quick=True, methods=["Isolation Forest"], quiet=True)
    text = reproduce(request)
    runs = Runs(request.folder / "runs.json").records
    assert [record["dataset"] for record in runs] == [
        "Shuttle",
        "Mammography",
        "ForestCover",
        "Shuttle, all rows",
    ]
    assert all(0 <= record["precision_at_k"] <= 1 for record in runs)
    assert runs[0]["auroc"] > 0.9
    assert f"{runs[0]['precision_at_k']:.3f}" in text
    assert "0.973" in text  # the paper's, beside
    assert reproduce(request) == text


def test_half_a_fit_of_a_detector_is_no_result():
    module = sys.modules[EXPERIMENTS["table2"].__module__]
    fitted = RoundtripDetector()
    fitted.scorer_ = Scorer(Roundtrip(), None, None)
    fitted.estimator_.stopped_by_ = "interrupt"
    with pytest.raises(KeyboardInterrupt):
        module.refuse_interrupted(fitted)


@pytest.mark.parametrize("name", OUTLIER_METHODS)
def test_every_outlier_method_ranks_odd_rows_high(name, rng):
    X = rng.normal(size=(600, 3)) * [1.0, 10.0, 100.0]
    odd = rng.normal(size=(20, 3)) * [1.0, 10.0, 100.0] + [8.0, 80.0, -800.0]
    method = make_outlier_method(name, seed=0, latent_dim=max(OUTLIER_LATENT_DIMS.values()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        oddness = method.fit(X, 2.0)(np.concatenate([X[:100], odd]))
    assert roc_auc_score(np.repeat([0, 1], [100, 20]), oddness) > 0.95


def test_fig3_classifies_generates_and_is_not_computed_again(tmp_path, monkeypatch):
    """With the digits of 8 x 8 pixels in place of both data sets."""
    data = load_digits()
    images = (data.images / 16 * 255).astype(np.uint8)[..., None]
    parts = [slice(0, 1400), slice(1400, 1500), slice(1500, 1520)]
    digits = Dataset("digits", *(images[part] for part in parts), *(data.target[p] for p in parts))
    module = sys.modules[EXPERIMENTS["fig3"].__module__]
    monkeypatch.setattr(module, "DATASETS", dict.fromkeys(module.DATASETS, lambda **_: digits))
    monkeypatch.setattr(module, "QUICK_RECOGNISER_EPOCHS", 12)
    monkeypatch.setattr(module, "QUICK_PER_CLASS", 4)
    monkeypatch.setattr(module, "QUICK_TEST_IMAGES", 20)
    monkeypatch.setattr(module, "TOL", 1.0)
    request = Request("fig3", tmp_path, quick=True, budget=3.0, quiet=True)
    text = reproduce(request)
    mnist, cifar = Runs(request.folder / "runs.json").records
    assert mnist["accuracy"] > 0.8
    assert np.trace(mnist["confusion"]) == round(20 * mnist["accuracy"])
    assert (
        np.sum(mnist["confusion"], axis=1).tolist() == np.bincount(data.target[1500:1520]).tolist()
    )
    assert mnist["quality"]["recognised"] > 0.7
    assert 0 <= mnist["quality"]["bottom_quarter"] <= 1
    assert "quality" not in cifar
    for name in ("mnist", "cifar-10"):
        assert (request.folder / f"fig3-{name}.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(module, "_measure", lambda *_: pytest.fail("computes anew"))
    assert reproduce(request) == text


def test_recogniser_learns_digits():
    data = load_digits()
    images = (data.images / 16 * 255).astype(np.uint8)[..., None]
    state = torch.get_rng_state()
    recogniser = Recogniser(epochs=30, seed=0).fit(images[:1400], data.target[:1400], quiet=True)
    assert recogniser.accuracy(images[1400:], data.target[1400:]) > 0.9
    assert torch.equal(torch.get_rng_state(), state)
