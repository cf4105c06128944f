"""The page of scoring.py in Markdown."""

from roundtrip.reproduce.fits import machine
from roundtrip.reproduce.request import markdown_table


def page(records):
    """Tables of all parts that have records."""
    newest = {_name(record): record for record in records}
    records = list(newest.values())
    of_part = {
        name: [record for record in records if record["part"] == name]
        for name in ("rows", "far", "calibration", "mean")
    }
    text = [
        "# What certified log densities cost",
        f"Default fits of at most {_distinct(records, 'budget')} s, NSF the same; "
        f"{machine(records)}.",
    ]
    writers = (rows_table, far_table, calibration_table, mean_table)
    for (name, part), write in zip(of_part.items(), writers, strict=True):
        if part:
            text += [f"## {TITLES[name]}", write(part)]
    return "\n\n".join(text) + "\n"


TITLES = {
    "rows": "Rows at a tolerance",
    "far": "Rows far from the data",
    "calibration": "Errors against a reference",
    "mean": "Means over rows",
}


def _name(record):
    return tuple(
        record.get(part) for part in ("part", "table", "distance", "tol", "threads", "budget")
    )


def _distinct(records, name):
    return " or ".join(sorted({f"{record[name]:g}" for record in records}))


def rows_table(records):
    header = ["table", "threads", "latent dimensions", "tolerance", "µs a row", "NSF, µs a row"]
    header += ["times NSF", "evaluations, median", "mean", "converged"]
    rows = [
        [
            r["table"],
            str(r["threads"]),
            str(r["latent_dim"]),
            f"{r['tol']:g}",
            f"{1e6 * r['seconds']:,.0f}",
            f"{1e6 * r['nsf_seconds']:.0f}",
            f"{r['ratio']:.0f} ({min(r['ratios']):.0f} to {max(r['ratios']):.0f})",
            f"{r['median_evaluations']:.0f}",
            f"{r['mean_evaluations']:.0f}",
            f"{r['converged']:.1%}",
        ]
        for r in records
    ]
    note = "Medians of three turns; in brackets the smallest and largest ratio."
    return f"{markdown_table(header, rows)}\n\n{note}"


def far_table(records):
    header = ["table", "threads", "standard deviations", "times a test row", "evaluations, mean"]
    header += ["converged", "of these more than 4 standard errors off", "farthest, standard errors"]
    rows = [
        [
            r["table"],
            str(r["threads"]),
            str(r["distance"]),
            f"{r['ratio']:.1f}",
            f"{r['mean_evaluations']:,.0f}",
            f"{r['converged']:.0%}",
            str(r["false"]),
            f"{r['largest']:.1f}",
        ]
        for r in records
    ]
    return markdown_table(header, rows)


def calibration_table(records):
    header = ["table", "tolerance", "rows", "sd of errors, standard errors", "beyond 4"]
    header += ["mean error, nats"]
    rows = [
        [
            r["table"],
            f"{r['tol']:g}",
            f"{r['compared']:,} of {r['rows']:,}",
            f"{r['sd']:.2f}",
            f"{r['beyond']:.2%}",
            f"{r['mean_error']:+.4f} ± {r['mean_error_std_error']:.4f}",
        ]
        for r in records
    ]
    return markdown_table(header, rows)


def mean_table(records):
    header = ["table", "threads", "rows", "µs a row", "times NSF", "evaluations a row"]
    header += ["sd over repeats, nats", "standard error, nats"]
    rows = [
        [
            r["table"],
            str(r["threads"]),
            f"{r['rows']:,}",
            f"{1e6 * r['seconds']:.0f}",
            f"{r['ratio']:.0f}",
            f"{r['evaluations_per_row']:.0f}",
            f"{r['sd']:.4f}",
            f"{r['mean_std_error']:.4f}",
        ]
        for r in records
    ]
    return markdown_table(header, rows)
