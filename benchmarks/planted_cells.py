"""Impossible combinations in tables with text, categories and missing cells: who finds them?

    OMP_NUM_THREADS=1 python benchmarks/planted_cells.py --data FOLDER   # or set ROUNDTRIP_DATA

In 1 % of the rows of Adult and Shoppers, for fitting and for testing alike, the cell of one column
is swapped with that of another row, so that it forms a pair with some other column that the table
does not have, though five would be expected by chance. Detectors with default settings are fitted
to four fifths of the rows; Isolation Forest and ECOD see one-hot columns with medians for missing
numbers. Average precision on the other fifth, and how often the explanation of Roundtrip names the
swapped column first. Results go to results/planted-cells; an interrupted run resumes.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from mixed_tables_data import split_of
from pyod.models.ecod import ECOD
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score, roc_auc_score

from roundtrip import RoundtripDetector
from roundtrip.outliers.default_density import density_of_any_kind
from roundtrip.reproduce.fits import machine
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import Log, Runs

TABLES = ("Adult", "Shoppers")
METHODS = ("Roundtrip", "Isolation Forest", "ECOD")
SHARE, BINS, EXPECTED, TRIES = 0.01, 6, 5.0, 200


def binned(frame):
    """Every column as a few codes: deciles of numbers, levels of anything else, -1 if missing."""
    codes = {}
    for name, column in frame.items():
        if pd.api.types.is_numeric_dtype(column) and column.nunique() > BINS:
            column = pd.qcut(column, BINS, duplicates="drop")
        codes[name] = pd.Categorical(column).codes
    return pd.DataFrame(codes)


def planted(frame, seed):
    """The table with swapped cells, and the swapped column of each row, -1 for the others."""
    rng = np.random.default_rng(seed)
    frame, codes = frame.copy(), binned(frame)
    values = codes.to_numpy()
    shares = [np.bincount(column[column >= 0]) / len(column) for column in values.T]
    pairs = {}
    swapped = np.full(len(frame), -1)
    for row in rng.choice(len(frame), size=round(SHARE * len(frame)), replace=False):
        for _ in range(TRIES):
            column, other = rng.choice(values.shape[1], size=2, replace=False)
            source = rng.integers(len(frame))
            new, beside = values[source, column], values[row, other]
            if new < 0 or beside < 0:
                continue
            if (column, other) not in pairs:
                pairs[column, other] = set(zip(values[:, column], values[:, other], strict=True))
            expected = len(frame) * shares[column][new] * shares[other][beside]
            if (new, beside) not in pairs[column, other] and expected >= EXPECTED:
                frame.iloc[row, column] = frame.iloc[source, column]
                swapped[row] = column
                break
    return frame, swapped


def encoded(train, test, categories):
    """Both tables as numbers: one-hot categories, medians for missing numbers."""
    both = pd.concat([train, test], ignore_index=True)
    both[categories] = both[categories].astype(object)
    both = pd.get_dummies(both, columns=categories, dtype=float)
    both = both.fillna(both.iloc[: len(train)].median())
    return both.iloc[: len(train)].to_numpy(float), both.iloc[len(train) :].to_numpy(float)


def measure(table, method, seed, folder):
    split = split_of(table, seed, folder)
    whole, swapped = planted(pd.concat([split.train, split.test], ignore_index=True), seed)
    train = whole.iloc[: len(split.train)]
    test, swapped = whole.iloc[len(train) :], swapped[len(train) :]
    odd = swapped >= 0
    start = time.perf_counter()
    named = None
    if method == "Roundtrip":
        columns = dict.fromkeys(split.codes, "category")
        density = density_of_any_kind().set_params(columns=columns)
        detector = RoundtripDetector(estimator=density, random_state=seed).fit(train)
        scores = -detector.score_samples(test)
        seconds = time.perf_counter() - start
        first = detector.explain(test[odd]).named(1)
        right = [test.columns[place] for place in swapped[odd]]
        named = float(np.mean([a[0] == b for a, b in zip(first, right, strict=True)]))
    else:
        a, b = encoded(train, test, split.categories)
        if method == "ECOD":
            scores = ECOD().fit(a).decision_function(b)
        else:
            scores = -IsolationForest(random_state=seed).fit(a).score_samples(b)
        seconds = time.perf_counter() - start
    return {
        "average_precision": float(average_precision_score(odd, scores)),
        "auroc": float(roc_auc_score(odd, scores)),
        "named_first": named,
        "planted": int(odd.sum()),
        "test_rows": len(test),
        "train_rows": len(train),
        "seconds": seconds,
    }


def page(records):
    """The page in Markdown."""
    rows = []
    for table in TABLES:
        for method in METHODS:
            found = [r for r in records if (r["table"], r["method"]) == (table, method)]
            if not found:
                continue
            precision = [r["average_precision"] for r in found]
            named = [r["named_first"] for r in found if r["named_first"] is not None]
            spread = f" ± {np.std(precision, ddof=1):.3f}" if len(found) > 1 else ""
            rows.append([
                *(table, method, str(len(found)), str(found[0]["planted"])),
                f"{np.mean(precision):.3f}{spread}",
                f"{np.mean([r['auroc'] for r in found]):.3f}",
                f"{np.mean(named):.0%}" if named else "",
                f"{np.mean([r['seconds'] for r in found]):.0f}",
            ])  # fmt: skip
    heads = ["table", "method", "seeds", "planted", "average precision", "AUROC", "named first"]
    parts = [
        "# Impossible combinations in mixed tables",
        "1 % of the rows, for fitting and testing alike, have a cell of another row that forms a "
        f"pair with another column which the table does not have. {machine(records)}.",
        markdown_table([*heads, "seconds"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--again", action="store_true", help="compute anew what is known")
    arguments = parser.parse_args()
    request = Request("planted-cells", data_home=arguments.data)
    runs = request.runs()
    cases = [
        {"table": table, "method": method, "seed": seed}
        for seed in range(arguments.seeds)
        for table in arguments.tables
        for method in METHODS
    ]
    log = Log(len(cases))
    for case in cases:
        if arguments.again:
            runs.forget(case)
        compute = partial(measure, **case, folder=arguments.data)
        log.run(runs, case, compute, "average_precision")
    text = page(Runs(runs.path).records)
    request.write_text("planted-cells.md", text)
    print(text)


if __name__ == "__main__":
    main()
