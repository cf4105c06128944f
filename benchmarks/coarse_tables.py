"""Coarsely rounded tables: does a fit concentrate on the rounded values?

    python benchmarks/coarse_tables.py --data FOLDER      # or set ROUNDTRIP_DATA

Iris and cars as they are, and tables of small_tables_data.py whose columns are rounded on purpose,
each to a step between a tenth and a third of its standard deviation. Roundtrip is fitted with
default settings to the rounded values themselves. A density that is spread evenly over the steps is
as high beside the rounded values as at them. Results go to results/coarse-tables; an interrupted
run resumes where it stopped.

Penguins and cars need: pip install -r benchmarks/small-tables-requirements.txt
"""

import time

import numpy as np
from scipy.stats import chi2, chisquare
from sklearn.model_selection import train_test_split
from small_tables import EVALUATIONS, TOL, mean_and_error
from small_tables_data import SUBSET_TEST_ROWS, TABLES, TEST_SHARE, rows_and_steps
from table_runs import main

from roundtrip import Roundtrip
from roundtrip.reproduce.fits import estimate_density, machine, timed_fit
from roundtrip.reproduce.request import markdown_table

KNOWN_STEPS = {"iris": [0.1] * 4, "cars": [0.1, 1, 0.5, 1, 1, 0.1, 1]}
"""Of tables that are used as they are."""

NAMES = [
    *KNOWN_STEPS,
    *("wine", "breast cancer", "diabetes", "penguins", "concrete", "red wine", "glass", "stamps"),
    *("vowels", "CASP, 1000 rows"),
]
SHARES = (1 / 10, 1 / 3)
"""Smallest and largest step on purpose, in standard deviations of the column."""

MOST_SCORED, DRAWS, FARTHEST = 200, 4, 0.45
"""Rows that are scored, how often each is moved, and how far at most, in steps."""

SAMPLES, FEWEST_EXPECTED, LEVEL = 20_000, 5, 0.01
"""Of the chi-square tests."""

KINDS = {"samples": "samples", "training": "training rows"}
"""What the test rows are compared with: entry of a record, and its name."""

LARGEST_LOSS = 0.3
"""The bar, in nats per feature."""


def rounded_on_purpose(X, own_step, rng):
    """Rounded rows and their steps; columns whose own step is larger stay as they are."""
    step = rng.uniform(*SHARES, X.shape[1]) * X.std(axis=0)
    rounded = np.rint(X / step) * step
    coarse = own_step > step
    return np.where(coarse, X, rounded), np.where(coarse, own_step, step)


def rows_of(name, split, folder):
    """Training rows, test rows and the step of each column."""
    table = TABLES[name]
    X, step = rows_and_steps(table.load, folder)
    if name in KNOWN_STEPS:
        step = np.array(KNOWN_STEPS[name])
    else:
        X, step = rounded_on_purpose(X, step, np.random.default_rng(list(name.encode())))
    sizes = {"test_size": TEST_SHARE}
    if table.training_rows is not None:
        sizes = {"test_size": SUBSET_TEST_ROWS, "train_size": table.training_rows}
    return *train_test_split(X, **sizes, random_state=split), step


def chi_square(values, reference, step):
    """Chi-square statistic and its degrees of freedom: have values the reference's frequencies?

    The frequencies of the reference count as exact. Neighbouring grid values are merged until each
    bin has enough expected values; there may be one bin, without a degree of freedom.
    """
    place = np.rint(np.concatenate([values, reference]) / step).astype(np.int64)
    _, place = np.unique(place, return_inverse=True)
    observed = np.bincount(place[: len(values)], minlength=place.max() + 1)
    expected = np.bincount(place[len(values) :], minlength=place.max() + 1)
    expected = expected * (len(values) / len(reference))
    bins = merged(expected)
    statistic = chisquare(np.bincount(bins, observed), np.bincount(bins, expected)).statistic
    return float(statistic), int(bins[-1])


def merged(expected):
    """Bin of each value, so that each bin has enough expected counts if all together have."""
    bins, enough, total = [], 0, 0.0
    for count in expected:
        bins.append(enough)
        total += count
        if total >= FEWEST_EXPECTED:
            enough, total = enough + 1, 0.0
    # What remains at the end is too little for a bin of its own.
    return np.minimum(bins, max(enough - 1, 0))


def of_columns(test, reference, step):
    """Statistic and degrees of freedom of each column."""
    return [chi_square(*each) for each in zip(test.T, reference.T, step, strict=True)]


def measure(table, split, folder):
    train, test, step = rows_of(table, split, folder)
    est = Roundtrip(random_state=split)
    record = timed_fit(est, train)
    start = time.perf_counter()
    rng = np.random.default_rng(split)
    scored = test[:MOST_SCORED]
    moves = step * rng.uniform(-FARTHEST, FARTHEST, (DRAWS, *scored.shape))
    rows = np.concatenate([scored, *(scored + moves)])
    estimate = estimate_density(est, rows, tol=TOL, evaluations=EVALUATIONS)
    at, *moved = estimate.log_density.reshape(1 + DRAWS, -1)
    loss, error = mean_and_error((at - np.mean(moved, axis=0)) / len(step))
    seconds = time.perf_counter() - start
    found = est.resolution_
    return {
        **{name: record[name] for name in ("fit_seconds", "cpu_seconds", "stopped_by", "epochs")},
        "score_seconds": seconds,
        "train_rows": len(train),
        "test_rows": len(test),
        "scored_rows": len(scored),
        "features": len(step),
        "latent_dim": est.latent_dim_,
        "converged": float(estimate.converged.mean()),
        "log_density": float(at.mean()),
        "moved_log_density": float(np.mean(moved)),
        "loss": loss,
        "loss_std_error": error,
        "steps": step.tolist(),
        "found_steps": found.tolist(),
        "recognised": int(np.isclose(found, step, rtol=1e-3).sum()),
        "samples": of_columns(test, est.sample(SAMPLES, random_state=split), step),
        "training": of_columns(test, train, step),
    }


def page(records):
    """The page in Markdown, with the newest record of each table and split."""
    newest = {(record["table"], record["split"]): record for record in records}
    rows = [newest[name, split] for name in NAMES for table, split in newest if table == name]
    below = sum(record["loss"] < LARGEST_LOSS for record in rows)
    parts = [
        "# Coarsely rounded tables",
        "Iris and cars as they are, the other tables rounded on purpose: each column to a step "
        "between a tenth and a third of its standard deviation. Default settings, fitted to the "
        "rounded values. Loss: nats per feature by which the log density of test rows falls if all "
        f"cells move at random by at most {FARTHEST} steps, ± its standard error over the rows. "
        f"{machine(rows)}.",
        markdown_table(
            ["table", "split", "rows", "features", "steps found", "loss per feature", "converged"],
            [
                [
                    *(record["table"], str(record["split"]), f"{record['train_rows']:,}"),
                    *(str(record["features"]), f"{record['recognised']} of {record['features']}"),
                    f"{record['loss']:.3f} ± {record['loss_std_error']:.3f}",
                    f"{record['converged']:.1%}",
                ]
                for record in rows
            ],
        ),
        f"The loss is below {LARGEST_LOSS} on {below} of {len(rows)}.",
        "## Frequencies of the rounded values",
        f"The values of each column among the test rows against those of {SAMPLES:,} samples, by a "
        f"chi-square test with at least {FEWEST_EXPECTED} expected values per bin: share of "
        f"columns that differ at the {LEVEL:.0%} level, and sum of the statistics per degree of "
        "freedom (1 if the frequencies are right). As a yardstick the same for the frequencies "
        "among the training rows. The test takes both for exact, so that the fewer training rows "
        "there are for a test row, the more columns differ. Seconds to fit / to score.",
        markdown_table(
            [
                *("table", "split", "test rows", "samples differ", "training rows differ"),
                *("samples, statistic", "training rows, statistic", "seconds"),
            ],
            [
                [
                    *(record["table"], str(record["split"]), f"{record['test_rows']:,}"),
                    *(_differing(record[kind]) for kind in KINDS),
                    *(f"{per_degree(record[kind]):.2f}" for kind in KINDS),
                    f"{record['fit_seconds']:.0f} / {record['score_seconds']:.0f}",
                ]
                for record in rows
            ],
        ),
        f"Over all columns: {' and '.join(_overall(rows, kind) for kind in KINDS)}.",
    ]
    return "\n\n".join(parts) + "\n"


def differing(tests):
    """Numbers of columns that differ and of those that can be tested."""
    p = [chi2.sf(statistic, degrees) for statistic, degrees in tests if degrees]
    return sum(each < LEVEL for each in p), len(p)


def per_degree(tests):
    statistic, degrees = np.sum(tests, axis=0)
    return statistic / degrees if degrees else np.nan


def _differing(tests):
    number, of = differing(tests)
    return f"{number / of:.0%}" if of else ""


def _overall(rows, kind):
    number, of = differing([test for record in rows for test in record[kind]])
    return f"{number} of {of} differ from {KINDS[kind]}"


if __name__ == "__main__":
    main(
        "coarse-tables",
        __doc__,
        tables=NAMES,
        splits=1,
        cases=lambda table, split, folder: [{"table": table, "split": split}],
        measure=measure,
        shown="loss",
        page=page,
    )
