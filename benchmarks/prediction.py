"""One column given all others: Roundtrip beside models that are trained for this column.

    OMP_NUM_THREADS=1 python benchmarks/prediction.py --data FOLDER --ngboost ENVIRONMENT/bin/python

CASP's RMSD and Adult's income. Roundtrip is fitted to the table with all columns alike;
prediction_methods.py has the methods. Results go to results/prediction; an interrupted run resumes
where it stopped.

NGBoost runs in an environment of its own, and is left out without --ngboost:

    python3.11 -m venv ENVIRONMENT
    ENVIRONMENT/bin/pip install -r benchmarks/prediction-requirements.txt
"""

import time
from pathlib import Path

import numpy as np
from parts_data import TABLES, available, categories_of, rows_of
from prediction_methods import DRAWS, METHODS, NGBOOST, ROUNDTRIP
from sklearn.metrics import roc_auc_score
from small_tables import mean_and_error
from table_runs import main

from roundtrip.reproduce.fits import machine
from roundtrip.reproduce.request import markdown_table

KINDS = {"CASP": "number", "Adult": "category"}
NAMES = tuple(dict.fromkeys(name for methods in METHODS.values() for name in methods))
TEST_SHARE, CALIBRATION_BINS = 0.2, 10
CLOSE = 0.05
"""The bar: nats by which the log score may be behind that of the best model for the column."""


def cases(table, split, folder, rows, methods, budget, ngboost):
    """Methods for the column of a table; without its environment NGBoost is left out."""
    return [
        {
            **{"table": table, "method": method, "split": split, "rows": rows},
            **({"budget": budget} if method == ROUNDTRIP else {}),
        }
        for method in METHODS[KINDS[table]]
        if method in methods and (method != NGBOOST or ngboost is not None)
    ]


def measure(table, method, split, rows, budget, folder, ngboost, **_):
    frame, target = rows_of(table, split, folder), TABLES[table].target
    held_out = round(TEST_SHARE * len(frame))
    train = frame[held_out:].reset_index(drop=True)
    test = frame[: min(rows, held_out)]
    start = time.perf_counter()
    predict = METHODS[KINDS[table]][method]
    prediction, details = predict(train, test, target, split, budget, ngboost)
    seconds = time.perf_counter() - start
    figures = of_levels if target in categories_of(frame) else of_numbers
    return {
        "seconds": seconds,
        "train_rows": len(train),
        "test_rows": len(test),
        "target": target,
        **details,
        **figures(prediction, test[target].to_numpy()),
    }


def of_numbers(prediction, y):
    """Log score, and how well probabilities below the values are calibrated."""
    score, error = mean_and_error(prediction.log_prob(y))
    below = prediction.cdf(y)
    gap = np.arange(len(y)) / len(y) - np.sort(below)
    return {
        "log_score": score,
        "std_error": error,
        "calibration": float(max(gap.max() + 1 / len(y), -gap.min())),
        **{
            f"coverage_{level}": float((np.abs(below - 0.5) <= level / 200).mean())
            for level in (50, 90)
        },
        "quality": float(np.sqrt(np.square(prediction.mean() - y).mean()) / y.std()),
    }


def of_levels(prediction, y):
    """Log score, and how well the probabilities of the last of two levels are calibrated."""
    levels = sorted(prediction)
    p = prediction[levels].to_numpy()
    p = p / p.sum(axis=1, keepdims=True)
    score, error = mean_and_error(np.log(p[np.arange(len(y)), np.searchsorted(levels, y)]))
    said, hit = p[:, -1], y == levels[-1]
    place = np.minimum((said * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    gaps = [
        abs(said[place == each].mean() - hit[place == each].mean()) * (place == each).mean()
        for each in np.unique(place)
    ]
    return {
        "log_score": score,
        "std_error": error,
        "calibration": float(sum(gaps)),
        "quality": float(roc_auc_score(hit, said)),
        "accuracy": float((p.argmax(axis=1) == np.searchsorted(levels, y)).mean()),
    }


def page(records):
    """The page in Markdown, with the newest record of each table, method and split."""
    newest = {(r["table"], r["split"], r["rows"], r["method"]): r for r in records}
    shown = list(newest.values())
    parts = [
        "# One column given all others",
        "Roundtrip is fitted to all columns alike, with default settings; the other methods are "
        "trained for the one column. Log score: mean log density, in the units of the column, or "
        "log probability of the test rows' values, ± its standard error over rows. "
        f"{machine(shown)}.",
        "Quantiles by gradient boosting: scikit-learn's histogram trees for each of 19 quantiles; "
        "the density is constant between them, with exponential tails. Bins: a classifier of 40 "
        "bins of equal frequency, likewise. NGBoost: normal distributions, at most 800 trees "
        "with a learning rate of 0.05. Gradient boosting: scikit-learn's classifier of histogram "
        "trees. A tenth of the rows ends the training of all of these. Roundtrip: "
        f"`conditional` with {DRAWS:,} draws.",
    ]
    for table in KINDS:
        for split, rows in sorted({(r["split"], r["rows"]) for r in shown if r["table"] == table}):
            group = {
                method: newest[table, split, rows, method]
                for method in METHODS[KINDS[table]]
                if (table, split, rows, method) in newest
            }
            parts += _of_column(table, split, group)
    return "\n\n".join(parts) + "\n"


def _of_column(table, split, group):
    first = next(iter(group.values()))
    number = KINDS[table] == "number"
    yield (
        f"## {table}: {first['target']}, split {split}\n\n{first['train_rows']:,} training rows, "
        f"{first['test_rows']:,} test rows. "
        + (
            "Calibration: largest distance of the distribution of the probability below the value "
            "from an even one. RMSE of means in standard deviations."
            if number
            else f"Calibration: mean distance of probability and frequency in {CALIBRATION_BINS} "
            "bins."
        )
    )
    titles = ["50 % interval", "90 % interval", "RMSE"] if number else ["AUROC", "accuracy"]
    entries = ["coverage_50", "coverage_90", "quality"] if number else ["quality", "accuracy"]
    yield markdown_table(
        ["method", "log score", "calibration", *titles, "seconds"],
        [
            [
                method,
                f"{record['log_score']:.3f} ± {record['std_error']:.3f}",
                f"{record['calibration']:.3f}",
                *(f"{record[name]:.3f}" for name in entries),
                f"{record['seconds']:.0f}",
            ]
            for method, record in group.items()
        ],
    )
    others = {m: r["log_score"] for m, r in group.items() if m != ROUNDTRIP}
    if ROUNDTRIP in group and others:
        best = max(others, key=others.get)
        lead = group[ROUNDTRIP]["log_score"] - others[best]
        close = "within" if lead >= -CLOSE else "not within"
        own = group[ROUNDTRIP]
        yield (
            f"Roundtrip is {abs(lead):.3f} nats {'ahead of' if lead >= 0 else 'behind'} the best "
            f"model for the column ({best}), {close} {CLOSE:g}; {own['converged']:.1%} of its rows "
            f"converged, with a typical standard error of {own['typical_error']:.3f}."
        )


if __name__ == "__main__":
    main(
        "prediction",
        __doc__,
        tables=list(KINDS),
        splits=1,
        cases=cases,
        measure=measure,
        shown="log_score",
        page=page,
        available=available,
        of_roundtrip=lambda case: case["method"] == ROUNDTRIP,
        options={
            "methods": {"nargs": "+", "choices": NAMES, "default": NAMES},
            "rows": {"type": int, "default": 2000, "help": "most test rows"},
            "budget": {"type": float, "default": 300.0, "help": "seconds of Roundtrip's fit"},
            "ngboost": {"type": Path, "help": "Python of the environment of NGBoost"},
        },
    )
