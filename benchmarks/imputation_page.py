"""The page of imputation.py, made from its records."""

import numpy as np
from imputation_methods import DRAWS, METHODS, MICEFOREST, ROUNDTRIP
from imputation_scores import DOWNSTREAM_TEST, MARGINAL_WEIGHT
from parts_data import KNOWN_COLUMNS, SHARES, STRENGTH, TABLES

from roundtrip.reproduce.fits import machine
from roundtrip.reproduce.request import markdown_table

NAMES = ("concrete", "red wine", "breast cancer", "Beijing", "Adult", "CASP")

RANKED = {"crps": 1, "energy": 1, "rmse": 1, "log_score": -1, "accuracy": -1, "downstream": -1}
"""Figures by which methods are ranked; -1 where more is better."""

TITLES = {
    "rmse": "RMSE",
    "crps": "CRPS",
    "accuracy": "accuracy",
    "log_score": "log score",
    "energy": "energy distance",
    "coverage": "coverage",
    "downstream": "downstream",
}
LEVEL_WITH = 0.01
"""RMSE that is so much above the best, relatively, counts as level."""

LOWEST, HIGHEST = 0.87, 0.93
"""The bar of the coverage of 90 % intervals."""

FEWEST_LEVEL = 4
"""The bar: tables on which RMSE is level with the best."""

MIWAE_TABLE, MIWAE_PATTERN, MIWAE_BAR = "breast cancer", "50 % MCAR", 0.28
"""The bar of the mean squared error, which MIWAE's authors published."""


def page(records):
    """The page in Markdown, with the newest record of each run."""
    newest = {_run(record): record for record in records}
    shown = list(newest.values())
    budgets = sorted({record["budget"] for record in shown if "budget" in record})
    rows = sorted({record["rows"] for record in shown})
    parts = [
        "# Imputation of missing cells",
        "Cells of complete tables are hidden and imputed; each method is fitted on the incomplete "
        f"table alone. Of large tables {_listed(rows)} random rows are taken, the same for all "
        "methods. MCAR: each cell is hidden with the same probability. MAR: "
        f"{KNOWN_COLUMNS:.0%} of the columns stay complete, and the log odds that a cell of "
        "another is hidden are a random combination of these, with a standard deviation of "
        f"{STRENGTH:g}. Each row keeps a known cell. {machine(shown)}.",
        f"Means over seeds ({_listed(sorted({record['split'] for record in shown}))}); numbers in "
        "standard deviations of their column in the true table.",
        "- RMSE and accuracy: of means and likeliest levels, over all hidden cells.\n"
        "- CRPS: mean over the hidden numbers; lower is better. Methods that give a point only "
        "count as a point mass, whose CRPS is the absolute error. Others are judged by "
        f"{DRAWS} draws, without the bias of their number.\n"
        "- Log score: mean log probability of the true levels. Probabilities of all methods are "
        f"mixed with the frequencies of known cells, whose weight is {MARGINAL_WEIGHT:g}.\n"
        f"- Energy distance of the completed table to the true one, times 1000; of the first draw "
        "if there are draws.\n"
        f"- Coverage: share of hidden numbers strictly between the smallest and the largest of "
        f"{DRAWS} draws, ties by chance. It is 0.9 if truth and draws have the same distribution. "
        "Points have none.\n"
        "- Downstream: R2 (Adult: AUROC) of gradient-boosted trees that predict "
        f"{_listed(f'{TABLES[name].target} ({name})' for name in NAMES)}, trained on completed "
        "rows whose target was known, points if there are any, and tested on the true cells of "
        f"{DOWNSTREAM_TEST:.0%} of the rows.",
        "What each method got: imputed numbers of all are rounded as known cells are and limited "
        "to their range. Mean: means, most frequent levels, and their frequencies. KNN: "
        "scikit-learn's KNNImputer, 5 neighbours, standardised columns, text as zeros and ones. "
        "IterativeImputer: scikit-learn's; points of its default settings, and draws of a second "
        "fit with sample_posterior=True. Random forests: 100 trees a column, as in missForest, at "
        f"most 5 rounds. {MICEFOREST}: 5 iterations with default settings, then a draw of each "
        'further one; levels by its strategy "fast", because the default one fails if a '
        "probability is 1; means and most frequent levels of its draws are its points. "
        "Roundtrip: default settings, at most "
        f"{_listed(f'{budget:g}' for budget in budgets) or 'no'} s a fit; "
        "`impute`, its draws, and probabilities of `conditional`. Seconds are those of the clock, "
        "from the incomplete table to points and draws; CPU seconds beside them.",
        *_ranks(shown),
        *_verdicts(shown),
        "## By table and pattern",
        *(_of_table(shown, table, pattern) for table, pattern in _groups(shown)),
        *_warnings(shown),
    ]
    return "\n\n".join(parts) + "\n"


def _run(record):
    return tuple(record[name] for name in ("table", "pattern", "method", "split", "rows"))


def _groups(shown):
    there = {(record["table"], record["pattern"]) for record in shown}
    return [(table, pattern) for table in NAMES for pattern in SHARES if (table, pattern) in there]


def _of(shown, **entries):
    return [r for r in shown if all(r[name] == value for name, value in entries.items())]


def mean_of(records, name):
    """Mean of a figure over records, None if it has none."""
    values = [record[name] for record in records if record[name] is not None]
    return float(np.mean(values)) if values else None


def ranks_of(shown, name):
    """Mean rank of each method by a figure, over the runs that all methods have done."""
    ranks = {}
    methods = {record["method"] for record in shown}
    for run in sorted({(r["table"], r["pattern"], r["split"], r["rows"]) for r in shown}):
        entries = dict(zip(("table", "pattern", "split", "rows"), run, strict=True))
        values = {r["method"]: r[name] for r in _of(shown, **entries) if r[name] is not None}
        if set(values) != methods:
            continue
        for method, value in values.items():
            others = RANKED[name] * np.array(list(values.values()))
            own = RANKED[name] * value
            rank = 1 + (others < own).sum() + ((others == own).sum() - 1) / 2
            ranks.setdefault(method, []).append(rank)
    return {method: (float(np.mean(each)), len(each)) for method, each in ranks.items()}


def _ranks(shown):
    ranks = {name: ranks_of(shown, name) for name in RANKED}
    if not ranks["energy"]:
        return []
    methods = sorted(ranks["energy"], key=lambda method: ranks["crps"].get(method, (0,))[0])
    runs = ", ".join(f"{TITLES[n]} {next(iter(r.values()))[1]}" for n, r in ranks.items() if r)
    return [
        "## Mean ranks",
        f"1 is best. Over the runs that all methods have done: {runs}.",
        markdown_table(
            ["method", *(TITLES[name] for name in RANKED)],
            [
                [
                    method,
                    *(f"{ranks[n][method][0]:.2f}" if method in ranks[n] else "" for n in RANKED),
                ]
                for method in methods
            ],
        ),
    ]


def _verdicts(shown):
    if not _of(shown, method=ROUNDTRIP):
        return []
    lines = []
    for name in ("crps", "energy"):
        ranks = ranks_of(shown, name)
        if len(ranks) > 1:
            best = min(ranks, key=ranks.get)
            lines.append(f"Best mean rank by {TITLES[name]}: {best}.")
    level, judged, coverages = [], [], {}
    for table in NAMES:
        own = _of(shown, table=table, method=ROUNDTRIP)
        others = [_of(shown, table=table, method=m) for m in METHODS if m != ROUNDTRIP]
        others = [mean_of(each, "rmse") for each in others if each and len(each) == len(own)]
        if own and others:
            judged.append(table)
            if mean_of(own, "rmse") <= (1 + LEVEL_WITH) * min(others):
                level.append(table)
        if own:
            coverages[table] = mean_of(own, "coverage")
    lines.append(
        f"Roundtrip's RMSE, mean over patterns and seeds, is at most {LEVEL_WITH:.0%} above the "
        f"best other one on {len(level)} of {len(judged)} tables"
        f"{': ' + ', '.join(level) if level else ''}; the bar is {FEWEST_LEVEL} of {len(NAMES)}."
    )
    listed = ", ".join(f"{table} {value:.3f}" for table, value in coverages.items())
    good = sum(LOWEST <= value <= HIGHEST for value in coverages.values())
    lines.append(
        f"Coverage of Roundtrip's intervals, mean over patterns and seeds: {listed}; between "
        f"{LOWEST} and {HIGHEST} on {good} of {len(coverages)}."
    )
    miwae = _of(shown, table=MIWAE_TABLE, pattern=MIWAE_PATTERN, method=ROUNDTRIP)
    if miwae:
        lines.append(
            f"{MIWAE_TABLE.capitalize()}, {MIWAE_PATTERN}: Roundtrip's mean squared error is "
            f"{mean_of(miwae, 'mse'):.3f}, in standardised columns; that of MIWAE, as published by "
            f"its authors, {MIWAE_BAR:.3f}."
        )
    return ["## Bars", "\n".join(f"- {line}" for line in lines)]


def _of_table(shown, table, pattern):
    group = _of(shown, table=table, pattern=pattern)
    names = [name for name in TITLES if mean_of(group, name) is not None]
    rows = []
    for method in METHODS:
        records = _of(group, method=method)
        if records:
            cells = [_shown(mean_of(records, name), name) for name in names]
            seconds = f"{mean_of(records, 'seconds'):.0f} / {mean_of(records, 'cpu_seconds'):.0f}"
            rows.append([method, str(len(records)), *cells, seconds])
    first = group[0]
    title = (
        f"### {table}, {pattern}\n\n{first['table_rows']:,} rows, {first['columns']} columns, "
        f"{mean_of(group, 'hidden'):.1%} of the cells hidden.\n\n"
    )
    titles = [TITLES[name] for name in names]
    return title + markdown_table(["method", "seeds", *titles, "seconds / CPU seconds"], rows)


def _shown(value, name):
    if value is None:
        return ""
    return f"{1000 * value:.2f}" if name == "energy" else f"{value:.3f}"


def _warnings(shown):
    for record in _of(shown, method=ROUNDTRIP):
        for warning in record.get("warnings", []):
            run = f"{record['table']}, {record['pattern']}, seed {record['split']}"
            yield f"Warning of Roundtrip, {run}: {warning}"


def _listed(values):
    values = [f"{value:,}" if isinstance(value, int) else str(value) for value in values]
    return " and ".join(", ".join(part) for part in (values[:-1], values[-1:]) if part)
