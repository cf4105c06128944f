"""Fig. S1: prior, likelihood and proposals along the first latent coordinate."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from roundtrip.density.adaptive import settled_proposal
from roundtrip.density.prepared import PreparedModel
from roundtrip.density.proposals import student_t_log_prob
from roundtrip.density.weights import encoded
from roundtrip.plots import lines
from roundtrip.reproduce.fig2 import PAPER_BUDGET, fitted_simulation, run_key
from roundtrip.reproduce.fits import told
from roundtrip.reproduce.methods import PAPER
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log

DATASET = "involute"
QUICK_BUDGET = 20.0
POINT = (3.0, 3.0)
PAPER_DRAWS = 40_000
Z_1 = np.linspace(-4, 4, 801)


def fig_s1(request: Request) -> str:
    """Fit the paper's preset to the involute; returns the page in Markdown."""
    request.refuse("methods", "seeds", "budget")
    budget = request.seconds(PAPER, own=PAPER_BUDGET, paper=PAPER_BUDGET, quick=QUICK_BUDGET)
    request = replace(request, paper_budget=budget)
    key = run_key(request, DATASET, PAPER)
    record = Log(1, quiet=request.quiet).run(
        request.runs(), key, lambda: _measure(request, key), "log_density"
    )
    curves = {
        name: dict(zip(Z_1.tolist(), values, strict=True))
        for name, values in record["curves"].items()
    }
    request.write_figure(
        lines(
            curves,
            x_label="first latent coordinate; the second at its place in H(x)",
            y_label="relative to its maximum",
            markers=False,
        )
    )
    text = _page(request, record)
    request.write_text("figS1.md", text)
    return text


@torch.no_grad()
def _measure(request: Request, key: Mapping[str, Any]) -> dict[str, Any]:
    with torch.enable_grad():
        # The stored model of Fig. 2 is used, if there is one.
        est, record, data = fitted_simulation(replace(request, name="fig2"), key)
    model = est.model_
    x = torch.tensor([POINT], dtype=torch.float64, device=model.device)
    start = encoded(model, x)
    z = start.repeat(len(Z_1), 1)
    z[:, 0] = torch.from_numpy(Z_1).to(z)
    log_prior = model.prior.log_prob(z)
    log_likelihood = model.log_likelihood(x.expand(len(z), -1), z)
    log_curves = {
        "p(z)": log_prior,
        "p(x | z)": log_likelihood,
        "p(z | x)": log_prior + log_likelihood,
        "q(z), the paper's": student_t_log_prob((z - start) / est.proposal.scale, est.proposal.df),
        "q(z), adaptive": settled_proposal(
            PreparedModel(model), x, tol=est.tol, seed=est.scoring_seed_
        ).log_prob(z[None])[0],
    }
    adaptive = est.density(np.array([POINT]))
    importance = est.density(np.array([POINT]), method="importance", n_samples=PAPER_DRAWS)
    return {
        "point": list(POINT),
        "encoded": start[0].tolist(),
        "sigma": est.sigma_,
        **record,
        "log_density": float(adaptive.log_density[0]),
        "std_error": float(adaptive.std_error[0]),
        "evaluations": int(adaptive.n_evaluations[0]),
        "ess": float(adaptive.ess[0]),
        "importance_log_density": float(importance.log_density[0]),
        "importance_std_error": float(importance.std_error[0]),
        "importance_ess": float(importance.ess[0]),
        "true_log_density": float(data.log_density([POINT])[0]),
        "curves": {
            name: [round(v, 6) for v in torch.exp(value - value.max()).tolist()]
            for name, value in log_curves.items()
        },
    }


def _page(request: Request, record: Mapping[str, Any]) -> str:
    settings = (
        f"Paper's preset on the involute ({record['train_rows']:,} points, seed 0: {told(record)}; "
        f"sigma {record['sigma']:g}), at x = (3, 3)."
    )
    if request.quick:
        settings += " Quick run: the model is hardly trained."
    rows = [
        [
            "paper's proposal",
            f"{record['importance_log_density']:.3f} ± {record['importance_std_error']:.3f}",
            f"{record['importance_ess']:.0f}",
            str(PAPER_DRAWS),
        ],
        [
            "adaptive",
            f"{record['log_density']:.3f} ± {record['std_error']:.3f}",
            f"{record['ess']:.0f}",
            str(record["evaluations"]),
        ],
        ["the true density", f"{record['true_log_density']:.3f}", "", ""],
    ]
    header = ["log p(x)", "value", "effective draws", "evaluations of G"]
    return (
        "\n\n".join(
            [
                "# Fig. S1: what is integrated, and where it is sampled",
                settings,
                markdown_table(header, rows),
                "![prior, likelihood, posterior and proposals](figS1.png)",
            ]
        )
        + "\n"
    )
