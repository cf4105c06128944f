"""Densities of parts of rows: their time beside that of full rows, and an identity.

    OMP_NUM_THREADS=1 python benchmarks/parts_of_rows.py --data FOLDER    # or set ROUNDTRIP_DATA

Roundtrip is fitted to complete rows. Of test rows each cell is hidden with probability 0.5, and
they are scored whole and in part at the same tolerance. Results go to results/parts-of-rows; an
interrupted run resumes where it stopped.
"""

import time
import warnings

import numpy as np
from parts_data import available, rows_of
from table_runs import main

from roundtrip import DensityWarning, Roundtrip
from roundtrip.reproduce.fits import machine, timed_fit
from roundtrip.reproduce.request import markdown_table

NAMES = ("CASP", "Adult")
TEST_SHARE, HIDDEN = 0.2, 0.5
TOL = 0.05
"""Standard error of a row's log density, in nats."""

CHAINED, DRAWS = 200, 2048
"""Rows of the identity, and draws of each of its distributions."""

WARM_UP = 64
"""Rows that are scored first, whose time does not count: it includes what all rows share."""

LARGEST_RATIO, LEAST_CONVERGED, FAR = 4.0, 0.98, 4.0
"""The bars: time of half-observed rows over that of full rows, and share that converges. Standard
errors beyond which a gap counts as far."""


def half_observed(rows, seed):
    """The rows with half of their cells hidden; each keeps a known cell, and misses one."""
    rng = np.random.default_rng([seed, 1])
    hidden = rng.random(rows.shape) < HIDDEN
    for whole, value in ((hidden.all(axis=1), False), (~hidden.any(axis=1), True)):
        places = rng.integers(rows.shape[1], size=whole.sum())
        hidden[whole.nonzero()[0], places] = value
    return rows.mask(hidden)


def scored(est, rows):
    """Estimate of the rows, and its seconds and CPU seconds per row."""
    start, cpu_start = time.perf_counter(), time.process_time()
    estimate = est.density(rows, tol=TOL)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    return estimate, seconds / len(rows), cpu / len(rows)


def by_the_chain(est, rows, parts):
    """log p(hidden cells | known cells), one column after the other, and its standard error.

    Each column is given the known cells and the hidden ones before it. Its density comes from draws
    of z of its own, so that errors are independent.
    """
    total, variance = np.zeros(len(rows)), np.zeros(len(rows))
    converged = np.ones(len(rows), dtype=bool)
    known = parts.copy()
    for name in rows:
        asked = parts[name].isna().to_numpy()
        if not asked.any():
            continue
        p = est.conditional(known[asked], name, draws=DRAWS)
        log_p, error = p.log_prob(rows.loc[asked, name], with_error=True)
        total[asked] += log_p.to_numpy()
        variance[asked] += np.square(error.to_numpy())
        converged[asked] &= p.converged
        known[name] = rows[name]
    return total, np.sqrt(variance), converged


def measure(table, split, budget, rows, folder):
    shuffled = rows_of(table, split, folder)
    test = round(TEST_SHARE * len(shuffled))
    train, test = shuffled[test:], shuffled[: WARM_UP + rows].reset_index(drop=True)
    est = Roundtrip(random_state=split)
    fit = timed_fit(est, train, max_time=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensityWarning)
        first, test = test[:WARM_UP], test[WARM_UP:].reset_index(drop=True)
        parts = half_observed(test, split)
        start = time.perf_counter()
        for each in (first, half_observed(first, split)):
            est.density(each, tol=TOL)
        warm_up = time.perf_counter() - start
        full, full_seconds, full_cpu = scored(est, test)
        half, half_seconds, half_cpu = scored(est, parts)
        chain = slice(0, CHAINED)
        start = time.perf_counter()
        given, given_error, fine = by_the_chain(est, test[chain], parts[chain])
        chain_seconds = time.perf_counter() - start
    fine &= full.converged[chain] & half.converged[chain]
    gap = full.log_density[chain] - half.log_density[chain] - given
    error = np.sqrt(full.std_error[chain] ** 2 + half.std_error[chain] ** 2 + given_error**2)
    z = (gap / error)[fine]
    return {
        **{name: fit[name] for name in ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")},
        "latent_dim": est.latent_dim_,
        "train_rows": len(train),
        "features": train.shape[1],
        "scored_rows": len(test),
        "warm_up_seconds": warm_up,
        "full_ms": 1000 * full_seconds,
        "half_ms": 1000 * half_seconds,
        "full_cpu_ms": 1000 * full_cpu,
        "half_cpu_ms": 1000 * half_cpu,
        "ratio": half_cpu / full_cpu,
        "full_converged": float(full.converged.mean()),
        "half_converged": float(half.converged.mean()),
        "full_evaluations": float(full.n_evaluations.mean()),
        "half_evaluations": float(half.n_evaluations.mean()),
        "chained_rows": len(gap),
        "chained_converged": float(fine.mean()),
        "chain_seconds": chain_seconds,
        "gap": float(gap[fine].mean()),
        "gap_error": float(gap[fine].std(ddof=1) / np.sqrt(fine.sum())),
        "typical_error": float(np.median(error[fine])),
        "z_mean": float(z.mean()),
        "z_std": float(z.std()),
        "far": int((np.abs(z) > FAR).sum()),
        "farthest": float(np.abs(z).max()),
    }


def page(records):
    """The page in Markdown, with the newest record of each table and split."""
    newest = {(r["table"], r["split"], r["budget"], r["rows"]): r for r in records}
    shown = [newest[run] for name in NAMES for run in newest if run[0] == name]
    quick = [r for r in shown if r["ratio"] <= LARGEST_RATIO]
    sure = [r for r in shown if r["half_converged"] >= LEAST_CONVERGED]
    parts = [
        "# Densities of parts of rows",
        f"Roundtrip with default settings, fitted to complete rows. Test rows are scored whole, "
        f"and with half of their cells hidden at random, to a standard error of {TOL} nats. What "
        "all rows share, such as the encoder of parts of rows if the fit has not trained it, is "
        f"computed before. {machine(shown)}.",
        markdown_table(
            [
                *("table", "split", "features", "fit, s", "rows scored"),
                *("CPU ms per row, full / half", "ratio", "evaluations, full / half"),
                *("converged, full / half", "ms per row, full / half"),
            ],
            [
                [
                    *(r["table"], str(r["split"]), str(r["features"]), f"{r['fit_seconds']:.0f}"),
                    f"{r['scored_rows']:,}",
                    f"{r['full_cpu_ms']:.2f} / {r['half_cpu_ms']:.2f}",
                    f"{r['ratio']:.2f}",
                    f"{r['full_evaluations']:,.0f} / {r['half_evaluations']:,.0f}",
                    f"{r['full_converged']:.1%} / {r['half_converged']:.1%}",
                    f"{r['full_ms']:.2f} / {r['half_ms']:.2f}",
                ]
                for r in shown
            ],
        ),
        f"Half-observed rows take at most {LARGEST_RATIO:g} times the CPU time of full rows on "
        f"{len(quick)} of {len(shown)}; at least {LEAST_CONVERGED:.0%} of them converge on "
        f"{len(sure)} of {len(shown)}.",
        "## log p(x) = log p(known cells) + log p(hidden cells | known cells)",
        "The last term one column after the other, each by `conditional` given the known cells "
        "and the hidden ones before it, with draws of its own. Gap: left side less right side, "
        "mean over rows ± its standard error. z: gap of a row over its standard error, which is 1 "
        "on average if standard errors are right. Rows where all estimates converged.",
        markdown_table(
            [
                *("table", "split", "rows", "converged", "gap, nats", "typical standard error"),
                *("mean of z", "sd of z", f"beyond {FAR:g}", "largest"),
            ],
            [
                [
                    *(r["table"], str(r["split"]), str(r["chained_rows"])),
                    f"{r['chained_converged']:.1%}",
                    f"{r['gap']:.4f} ± {r['gap_error']:.4f}",
                    f"{r['typical_error']:.3f}",
                    *(f"{r['z_mean']:.2f}", f"{r['z_std']:.2f}"),
                    *(str(r["far"]), f"{r['farthest']:.1f}"),
                ]
                for r in shown
            ],
        ),
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main(
        "parts-of-rows",
        __doc__,
        tables=NAMES,
        splits=1,
        cases=lambda table, split, folder, budget, rows: [
            {"table": table, "split": split, "budget": budget, "rows": rows}
        ],
        measure=measure,
        shown="ratio",
        page=page,
        available=available,
        options={
            "budget": {"type": float, "default": 300.0, "help": "seconds per fit"},
            "rows": {"type": int, "default": 1000, "help": "test rows that are scored"},
        },
    )
