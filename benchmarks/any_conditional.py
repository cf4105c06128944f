"""Any columns given any others: Roundtrip beside exact conditionals of Gaussians and mixtures.

    OMP_NUM_THREADS=1 python benchmarks/any_conditional.py --data FOLDER    # or set ROUNDTRIP_DATA

Methods are fitted to complete rows of numbers. Of test rows each cell is observed with probability
0.5; the others are predicted by their conditional means, and their conditional density is scored.
Results go to results/any-conditional; an interrupted run resumes where it stopped.
"""

import time
import warnings

import numpy as np
from parts_data import available, rows_of
from parts_of_rows import half_observed
from scipy.special import logsumexp
from small_tables import mean_and_error
from table_runs import main

from roundtrip import DensityWarning, Roundtrip
from roundtrip.baselines import GaussianMixtureBaseline
from roundtrip.data.resolution import column_resolution
from roundtrip.reproduce.fits import machine, timed_fit
from roundtrip.reproduce.request import markdown_table

NAMES = ("CASP", "BANK", "AReM")
LEFT_OUT = {"CASP": "RMSD"}
"""The target of CASP's regression task, as in other benchmarks of its density."""

TEST_SHARE, TOL = 0.2, 0.05
ROUNDTRIP, GAUSSIAN, MIXTURE = "Roundtrip", "Gaussian", "Gaussian mixture"


class ExactConditional:
    """A Gaussian mixture, and what it says of hidden cells.

    Parameters
    ----------
    components : dict
        Settings of `GaussianMixtureBaseline`.
    """

    def __init__(self, **components):
        self.est = GaussianMixtureBaseline(**components)

    def fit(self, X, max_time=None):
        self.est.fit(X, max_time=max_time)
        self.details = {"components": self.est.n_components_}
        mixture, scaling = self.est.mixture_, self.est.scaling_
        self.weights = np.log(mixture.weights_)
        self.means = mixture.means_ * scaling.scale + scaling.shift
        self.covariances = mixture.covariances_ * np.outer(scaling.scale, scaling.scale)
        return self

    def get_params(self, deep=True):
        return self.est.get_params(deep)

    def log_density(self, cells):
        """Log of share times density of observed cells, `(components,)`, of one row."""
        seen = ~np.isnan(cells)
        factor = np.linalg.cholesky(self.covariances[:, seen][:, :, seen])
        apart = np.linalg.solve(factor, (cells[seen] - self.means[:, seen])[..., None])[..., 0]
        log_det = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(1)
        constant = 0.5 * seen.sum() * np.log(2 * np.pi)
        return self.weights - 0.5 * np.square(apart).sum(1) - log_det - constant

    def mean(self, cells):
        """Conditional means of the hidden cells of one row."""
        seen = ~np.isnan(cells)
        log_shares = self.log_density(cells)
        shares = np.exp(log_shares - logsumexp(log_shares))
        inner = self.covariances[:, seen][:, :, seen]
        apart = (cells[seen] - self.means[:, seen])[..., None]
        slopes = self.covariances[:, ~seen][:, :, seen]
        each = self.means[:, ~seen] + (slopes @ np.linalg.solve(inner, apart))[..., 0]
        return shares @ each

    def conditionals(self, rows, parts):
        """Log densities of the hidden cells given the others, and rows with their means."""
        log_p = [
            logsumexp(self.log_density(row)) - logsumexp(self.log_density(part))
            for row, part in zip(rows, parts, strict=True)
        ]
        filled = parts.copy()
        for row in filled:
            row[np.isnan(row)] = self.mean(row)
        return np.array(log_p), filled


class RoundtripConditional:
    """Roundtrip with default settings, and what it says of hidden cells."""

    def __init__(self, random_state):
        self.est = Roundtrip(random_state=random_state)

    def fit(self, X, max_time=None):
        self.est.fit(X, max_time=max_time)
        self.stopped_by_, self.n_iter_ = self.est.stopped_by_, self.est.n_iter_
        return self

    def get_params(self, deep=True):
        return self.est.get_params(deep)

    def conditionals(self, rows, parts):
        """Log densities of the hidden cells given the others, and rows with their means."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DensityWarning)
            whole, part = (self.est.density(each, tol=TOL) for each in (rows, parts))
            filled = self.est.impute(parts)
        self.details = {
            "converged": float((whole.converged & part.converged).mean()),
            "latent_dim": self.est.latent_dim_,
        }
        return whole.log_density - part.log_density, filled


METHODS = {
    GAUSSIAN: lambda seed: ExactConditional(n_components=1, random_state=seed),
    MIXTURE: lambda seed: ExactConditional(random_state=seed),
    ROUNDTRIP: RoundtripConditional,
}


def prepared(table, split, folder):
    """Training and test rows, spread over rounding steps and standardised by the training rows."""
    frame = rows_of(table, split, folder)
    frame = frame.drop(columns=LEFT_OUT.get(table, []))
    X = frame.to_numpy()
    step = column_resolution(X)
    X = X + step * np.random.default_rng(split).uniform(-0.5, 0.5, X.shape)
    test = round(TEST_SHARE * len(X))
    train, test = X[test:], X[:test]
    mean, spread = train.mean(axis=0), train.std(axis=0)
    names = frame.columns
    frame = frame.iloc[: len(test)]
    return (train - mean) / spread, frame.assign(
        **dict(zip(names, ((test - mean) / spread).T, strict=True))
    )


def measure(table, method, split, rows, budget, folder, **_):
    train, test = prepared(table, split, folder)
    test = test[:rows]
    parts = half_observed(test, split).to_numpy()
    test = test.to_numpy()
    model = METHODS[method](split)
    fit = timed_fit(model, train, max_time=budget)
    start = time.perf_counter()
    log_p, filled = model.conditionals(test, parts)
    hidden = np.isnan(parts)
    error = np.where(hidden, filled - test, np.nan)
    mean, std_error = mean_and_error(log_p)
    return {
        **{name: fit[name] for name in ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")},
        "conditional_seconds": time.perf_counter() - start,
        "train_rows": len(train),
        "test_rows": len(test),
        "features": train.shape[1],
        "log_density": mean,
        "std_error": std_error,
        "rmse": np.sqrt(np.nanmean(np.square(error), axis=0)).tolist(),
        "nrmse": float(np.sqrt(np.nanmean(np.square(error), axis=0)).mean()),
        **model.details,
    }


def page(records):
    """The page in Markdown, with the newest record of each table, method and split."""
    newest = {(r["table"], r["method"], r["split"], r["rows"], r["budget"]): r for r in records}
    shown = list(newest.values())
    groups = {}
    for record in shown:
        run = (record["table"], record["split"], record["rows"], record["budget"])
        groups.setdefault(run, {})[record["method"]] = record
    order = sorted(groups, key=lambda run: (NAMES.index(run[0]), *run[1:]))
    rows = [
        [
            *(record["table"], str(record["split"]), method, f"{record['train_rows']:,}"),
            *(f"{record['test_rows']:,}", str(record["features"]), f"{record['nrmse']:.4f}"),
            f"{record['log_density']:.3f} ± {record['std_error']:.3f}",
            f"{record['converged']:.1%}" if "converged" in record else "",
            f"{record['fit_seconds']:.0f} / {record['conditional_seconds']:.0f}",
        ]
        for run in order
        for method in METHODS
        if (record := groups[run].get(method))
    ]
    parts = [
        "# Any columns given any others",
        "Numbers, spread over their rounding steps and standardised. Each cell of the test rows is "
        "observed with probability 0.5; each row has an observed and a hidden cell. NRMSE: root "
        "mean squared error of the conditional means, in standard deviations, mean over features. "
        "Log density: mean of log p(hidden cells | observed cells) in nats per row, ± its standard "
        "error over the rows. Rows are split at random, also those of AReM, whose recordings "
        "repeat. Gaussian and mixture: their conditionals are exact; validation rows choose the "
        "number of components, 1 to 128. Roundtrip: default settings, log densities of a row to "
        f"{TOL} nats. {machine(shown)}.",
        markdown_table(
            [
                *("table", "split", "method", "training rows", "test rows", "features"),
                *("NRMSE", "log density", "converged", "seconds, fit / conditionals"),
            ],
            rows,
        ),
        *(_verdict(run, groups[run]) for run in order),
        "## NRMSE by feature",
        markdown_table(
            ["table", "split", "method", "features in order"],
            [
                [run[0], str(run[1]), method, ", ".join(f"{v:.3f}" for v in record["rmse"])]
                for run in order
                for method in METHODS
                if (record := groups[run].get(method))
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _verdict(run, group):
    title = f"{run[0]}, split {run[1]}: "
    if set(group) != set(METHODS):
        return title + "not complete."
    best = max(group, key=lambda method: group[method]["log_density"])
    closest = min(group, key=lambda method: group[method]["nrmse"])
    return f"{title}highest log density {best}, lowest NRMSE {closest}."


if __name__ == "__main__":
    main(
        "any-conditional",
        __doc__,
        tables=NAMES,
        splits=1,
        cases=lambda table, split, folder, rows, budget, methods: [
            {"table": table, "method": method, "split": split, "rows": rows, "budget": budget}
            for method in METHODS
            if method in methods
        ],
        measure=measure,
        shown="log_density",
        page=page,
        available=available,
        of_roundtrip=lambda case: case["method"] == ROUNDTRIP,
        options={
            "budget": {"type": float, "default": 300.0, "help": "seconds per fit"},
            "rows": {"type": int, "default": 1000, "help": "test rows"},
            "methods": {"nargs": "+", "choices": list(METHODS), "default": list(METHODS)},
        },
    )
