"""Columns and conditions on the command line: ``--given job=student --given age=18..25``."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from roundtrip.cli.app import split_names

if TYPE_CHECKING:
    from roundtrip.data.kinds import CategoryColumn, Column
    from roundtrip.estimator import Roundtrip

Given = Annotated[
    list[str] | None,
    typer.Option(
        help="What is known of a column, as in job=student, job=student,clerk, age=30, age=18..25 "
        "or age=..25; repeat it for other columns."
    ),
]

RANGE = ".."


def labels_of(estimator: "Roundtrip", option: str, names: str | None) -> list[Any] | None:
    """Return the labels of the columns that an option names; None without the option."""
    if names is None:
        return None
    known = {str(label): label for label in estimator.columns_}
    named = [names] if names in known else split_names(names) or []
    unknown = [name for name in named if name not in known]
    if unknown:
        raise ValueError(
            f"{option} names {', '.join(map(repr, unknown))}, but the columns of the model are "
            f"{', '.join(known) or 'pixels of images'}"
        )
    return [known[name] for name in named]


def conditions_of_options(estimator: "Roundtrip", option: str, texts: list[str]) -> dict[Any, Any]:
    """Return the conditions of texts like ``age=18..25``, by the labels of their columns."""
    texts_by_label: dict[Any, list[str]] = {}
    for text in texts:
        label, condition = _label_and_condition(estimator, option, text)
        texts_by_label.setdefault(label, []).append(condition)
    conditions = {}
    for label, found in texts_by_label.items():
        column = estimator.columns_[label]
        if len(found) == 1:
            conditions[label] = condition_of(column, found[0])
        elif column.kind == "category":
            each = (condition_of(column, text) for text in found)
            conditions[label] = [
                level for one in each for level in (one if isinstance(one, list) else [one])
            ]
        else:
            raise ValueError(
                f"{option} names {label} {len(found)} times; give one value, or a range like "
                f"{label}=1{RANGE}2"
            )
    return conditions


def condition_of(column: "Column", text: str) -> Any:
    """Return the value, range or list of levels that a text means for a column.

    Examples
    --------
    >>> from roundtrip.data.kinds import CategoryColumn, NumberColumn
    >>> condition_of(NumberColumn("float64"), "18..25"), condition_of(NumberColumn("int64"), "..-5")
    ((18.0, 25.0), (None, -5.0))
    >>> job = CategoryColumn("str", ("clerk", "smith"), False, 0.01, (0.5, 0.5))
    >>> condition_of(job, "smith"), condition_of(job, "smith,clerk")
    ('smith', ['smith', 'clerk'])
    """
    from roundtrip.data.kinds import CategoryColumn, NumberColumn

    if not isinstance(column, CategoryColumn):
        value = _number if isinstance(column, NumberColumn) else str
        return _range(text, value) if RANGE in text else value(text)
    level = _level(column, text)
    if level in column.levels:
        return level
    if RANGE in text:
        return _range(text, lambda end: _level(column, end))
    if "," in text:
        return [_level(column, part.strip()) for part in text.split(",")]
    return level


def _label_and_condition(estimator: "Roundtrip", option: str, text: str) -> tuple[Any, str]:
    known = {str(label): label for label in estimator.columns_}
    # The longest name first: names may have equals signs.
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return known[name], text[len(name) + 1 :].strip()
    if "=" not in text:
        raise ValueError(
            f"{option} {text}: give a column and what is known of it, as in job=student or "
            "age=18..25"
        )
    raise ValueError(
        f"{option} names {text.partition('=')[0]!r}, but the columns of the model are "
        f"{', '.join(known) or 'pixels of images'}"
    )


def _range(text: str, value: Any) -> tuple[Any, ...]:
    return tuple(value(end.strip()) if end.strip() else None for end in text.split(RANGE))


def _number(text: str) -> float | str:
    """Return a number, or the text, which the check of conditions refuses by name."""
    try:
        return float(text)
    except ValueError:
        return text


def _level(column: "CategoryColumn", text: str) -> Any:
    """Return the level with this text, or an unknown one of the type of the levels."""
    from roundtrip.data.cells import text_of

    known = {text_of(level): level for level in reversed(column.levels)}
    if text in known:
        return known[text]
    by_case = {name.lower(): level for name, level in known.items() if isinstance(level, bool)}
    return by_case.get(text.lower(), _number(text) if column.is_of_numbers else text)
