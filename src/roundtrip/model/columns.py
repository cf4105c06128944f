"""`Columns`: what a model needs to know of features that are not all complete numbers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Levels:
    """The levels of a category.

    Attributes
    ----------
    count : int
        Number of levels. In rows a level is its place, 0 to `count` - 1; `count` stands for any
        level that was not known when the model was built.
    ordered : bool
        Whether the levels have an order.
    reserved : float
        Probability of all unknown levels together.
    frequencies : tuple of float
        Share of each level among the training rows.

    Examples
    --------
    >>> Levels(2, ordered=False, reserved=0.01, frequencies=(0.7, 0.3)).count
    2
    """

    count: int
    ordered: bool
    reserved: float
    frequencies: tuple[float, ...]


@dataclass(frozen=True)
class Columns:
    """Kinds of the features of mixed or incomplete rows.

    Attributes
    ----------
    levels : tuple of Levels or None
        The levels of each feature; None for a number.
    incomplete : tuple of bool
        Whether cells of each feature were missing among the training rows. A missing cell is NaN.
    indicators : tuple of (int, int), default=()
        Features, each with the feature that is 1 where its cell is missing and 0 where it is not.

    Examples
    --------
    >>> colour = Levels(3, ordered=False, reserved=0.0, frequencies=(0.5, 0.3, 0.2))
    >>> columns = Columns((None, colour), (True, False))
    >>> columns.numbers, columns.categories, columns.ordered
    ([0], [1], [])
    """

    levels: tuple[Levels | None, ...]
    incomplete: tuple[bool, ...]
    indicators: tuple[tuple[int, int], ...] = ()

    @property
    def numbers(self) -> list[int]:
        """Places of the numbers."""
        return [place for place, each in enumerate(self.levels) if each is None]

    @property
    def categories(self) -> list[int]:
        """Places of the categories without an order."""
        return [place for place, each in enumerate(self.levels) if each and not each.ordered]

    @property
    def ordered(self) -> list[int]:
        """Places of the categories whose levels have an order."""
        return [place for place, each in enumerate(self.levels) if each and each.ordered]

    def levels_of(self, places: list[int]) -> list[Levels]:
        """Return the levels of categories at these places."""
        found = [self.levels[place] for place in places]
        assert None not in found
        return [each for each in found if each is not None]
