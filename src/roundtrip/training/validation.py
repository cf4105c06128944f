"""`Validation`: settings of early stopping on held-out rows."""

from dataclasses import dataclass
from typing import Literal

from roundtrip.parameters import Component, check_integer, check_number, is_auto


@dataclass(frozen=True, repr=False)
class Validation(Component):  # numpydoc ignore=PR02
    """Settings of validation: held-out rows choose the epoch whose weights are kept.

    Tables of fewer than 20,000 rows choose the length of training by trials with a patience of
    their own. Below 2,000 rows a fifth of the rows is held out, in each fold other ones.

    Parameters
    ----------
    fraction : float, default=0.1
        Fraction of the rows that are held out.
    rows : int or "auto", default="auto"
        Largest number of held-out rows scored per epoch. "auto" is 1,000, and 500 for images and
        for the adversarial objective.
    draws : int or "auto", default="auto"
        Draws of z per row. "auto" is 10, 5 for images and 200 for the adversarial objective.
    patience : int, default=20
        Epochs without a better validation log-likelihood after which training, or each stage of
        it, stops. The paper uses 10.

    Examples
    --------
    >>> Validation(draws=50).patience
    20
    """

    fraction: float = 0.1
    rows: int | Literal["auto"] = "auto"
    draws: int | Literal["auto"] = "auto"
    patience: int = 20

    def check(self) -> None:
        """Check every setting."""
        check_number("fraction", self.fraction, above=0, below=1)
        for name in ("rows", "draws", "patience"):
            if not is_auto(getattr(self, name)):
                check_integer(name, getattr(self, name), minimum=1)
