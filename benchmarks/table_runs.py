"""Runs of a benchmark of tables: their order, their records and the page made from them."""

import argparse
from functools import partial
from pathlib import Path

from small_tables import present

from roundtrip import Roundtrip
from roundtrip.reproduce.fits import settings_name
from roundtrip.reproduce.request import Request
from roundtrip.reproduce.runs import Log, Runs


def main(
    name,
    description,
    *,
    tables,
    splits,
    cases,
    measure,
    shown,
    page,
    available=present,
    options=None,
    of_roundtrip=lambda case: True,
):
    """Compute all cases that are not known yet, then write the page of all that are.

    Parameters
    ----------
    name : str
        Folder of the results, and name of the page.
    description : str
        Text of --help.
    tables : sequence of str
        Tables that can be chosen.
    splits : int
        Number of splits unless told otherwise.
    cases : callable
        Runs of a table and a split, each as a dict; given table, split and folder of data sets.
    measure : callable
        Result of a run, given its entries and the folder of data sets.
    shown : str
        Entry of the result that the log shows.
    page : callable
        Page in Markdown, given all records.
    available : callable, default=small_tables.present
        Tables whose data are there, given tables and the folder of data sets.
    options : mapping, default=None
        Further options of the command line: settings of `add_argument` by their names. Their
        values are passed to `cases` and `measure` by name.
    of_roundtrip : callable, default=always
        Whether a run, given its entries, fits Roundtrip, whose default settings then are a part of
        its key.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    parser.add_argument("--tables", nargs="+", choices=tables, default=tables)
    parser.add_argument("--splits", "--seeds", type=int, default=splits, help="number of them")
    parser.add_argument("--again", action="store_true", help="compute anew what is known")
    for option, settings in (options or {}).items():
        parser.add_argument(f"--{option}", **settings)
    arguments = parser.parse_args()
    chosen_options = {option: getattr(arguments, option) for option in options or {}}
    request = Request(name)
    runs = request.runs()
    chosen = available(arguments.tables, arguments.data)
    todo = [
        case
        for split in range(arguments.splits)
        for table in chosen
        for case in cases(table, split, arguments.data, **chosen_options)
    ]
    log = Log(len(todo))
    for case in todo:
        key = dict(case)
        if of_roundtrip(case):
            key["settings"] = settings_name(Roundtrip(random_state=case["split"]))
        if arguments.again:
            runs.forget(key)
        given = {**chosen_options, **case, "folder": arguments.data}
        log.run(runs, key, partial(measure, **given), shown)
    text = page(Runs(runs.path).records)
    request.write_text(f"{name}.md", text)
    print(text)
