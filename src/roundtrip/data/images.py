"""Conversion of arrays of images to tables with one flat row per image, and back."""

from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

COLOURS = (1, 3, 4)
LARGEST_BYTE = 255.0
DARK = 32
"""Integer images whose values all lie below are not taken as bytes: they have another range, such
as 0 to 1 or 0 to 16."""

FAR_TOO_BRIGHT = 2.0
"""Values above are bytes: what a model generates for images from 0 to 1 does not reach as far."""


def are_images(X: Any) -> bool:
    """Whether X is an array of images rather than a table."""
    return getattr(X, "ndim", None) == 4


def check_channels(X: Any) -> None:
    """Raise `ValueError` for images without a channel, an array of three dimensions.

    Examples
    --------
    >>> check_channels(np.zeros((5, 8, 8, 1)))  # images with a channel
    """
    if getattr(X, "ndim", None) == 3:
        raise ValueError(
            f"Found array with dim 3, {tuple(X.shape)}: for images of one colour, add a channel, "
            "X[..., None]; values are numbers from 0 to 1 or whole numbers of type uint8"
        )


@dataclass(frozen=True)
class ImageLayout:
    """The shape and value range of the images of fit.

    Images are flattened with channels last. The only scaling is from [0, top] to [0, 1].

    Attributes
    ----------
    height : int
        Pixels per column.
    width : int
        Pixels per row.
    channels : int
        Numbers per pixel: 1, 3 or 4.
    channels_first : bool
        Whether the images have shape `(rows, channels, height, width)`.
    top : float
        The value that becomes 1: 255 for bytes, 1 for other numbers.

    Examples
    --------
    >>> import numpy as np
    >>> layout = ImageLayout.of(np.zeros((2, 3, 8, 12), dtype=np.uint8))
    >>> layout.shape, layout.channels_first, layout.top
    ((8, 12, 3), True, 255.0)
    """

    height: int
    width: int
    channels: int
    channels_first: bool
    top: float

    @classmethod
    def of(cls, X: Any) -> Self:
        """Return the layout of an array of images; raise `ValueError` if networks can't take it.

        Parameters
        ----------
        X : array-like of shape (rows, height, width, channels) or (rows, channels, height, width)
            Bytes, or numbers from 0 to 1.

        Returns
        -------
        ImageLayout
            The layout.
        """
        X = np.asarray(X)
        if X.shape[3] in COLOURS:
            height, width, channels = X.shape[1:]
            first = False
        elif X.shape[1] in COLOURS:
            channels, height, width = X.shape[1:]
            first = True
        else:
            raise ValueError(
                f"images must have shape (rows, height, width, channels) or (rows, channels, "
                f"height, width) with 1, 3 or 4 channels, got {X.shape}"
            )
        if height % 4 or width % 4:
            raise ValueError(
                f"the sides of images must be divisible by 4, got {height} x {width}; pad or crop "
                "them"
            )
        top = LARGEST_BYTE if X.dtype.kind in "ui" else 1.0
        if X.dtype.kind not in "buif":
            raise ValueError(f"images must be numbers, got {X.dtype}")
        if not (X.min(initial=0) >= 0 and X.max(initial=0) <= top):
            raise ValueError(
                f"images of {'whole' if top > 1 else 'floating-point'} numbers must lie between 0 "
                f"and {top:g}; divide them by their largest possible value, or pass bytes"
            )
        largest = X.max(initial=0)
        if top > 1 and 0 < largest < DARK:
            raise ValueError(
                f"images of whole numbers are taken as 0 to {top:g}, but none of these exceeds "
                f"{largest:g}: divide them by their largest possible value"
            )
        return cls(height, width, channels, first, top)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Height, width, channels."""
        return self.height, self.width, self.channels

    @property
    def features(self) -> int:
        """Numbers per image."""
        return self.height * self.width * self.channels

    def flatten(self, X: Any) -> np.ndarray:
        """Return images of this layout as rows in the user's units.

        Parameters
        ----------
        X : array-like
            Images; flat rows are returned unchanged.

        Returns
        -------
        numpy.ndarray
            `(rows, features)`.
        """
        X = np.asarray(X)
        if X.ndim == 2:
            return X
        if X.ndim != 4:
            raise ValueError(f"expected images of shape {self._array_shape}, got {X.shape}")
        if X.shape[1:] != self._array_shape[1:]:
            raise ValueError(
                f"the estimator was fitted on images of shape {self._array_shape}, got {X.shape}"
            )
        self._check_unit(X)
        if self.channels_first:
            X = np.moveaxis(X, 1, 3)
        return X.reshape(len(X), self.features)

    def _check_unit(self, X: np.ndarray) -> None:
        """Raise `ValueError` for images with another range than those of fit.

        Generated images may lie slightly outside the range, so the limits have some margin.
        """
        largest = X.max(initial=0)
        if self.top == 1 and largest > FAR_TOO_BRIGHT:
            raise ValueError(
                "the estimator was fitted on images between 0 and 1, but these reach "
                f"{largest:g}; divide them by their largest possible value"
            )
        if self.top > 1 and X.dtype.kind in "bf" and 0 < largest <= FAR_TOO_BRIGHT:
            raise ValueError(
                "the estimator was fitted on bytes, 0 to 255, but these images lie between 0 and "
                "1; multiply them by 255"
            )

    def unflatten(self, rows: np.ndarray) -> np.ndarray:
        """Return rows as images of this layout; bytes are rounded and clipped to 0 to 255."""
        images = rows.reshape(-1, *self.shape)
        if self.top == LARGEST_BYTE:
            images = np.clip(np.rint(images), 0, LARGEST_BYTE).astype(np.uint8)
        return np.moveaxis(images, 3, 1) if self.channels_first else images

    @property
    def _array_shape(self) -> tuple[str | int, ...]:
        if self.channels_first:
            return ("rows", self.channels, self.height, self.width)
        return ("rows", self.height, self.width, self.channels)

    def plain(self) -> dict[str, Any]:
        """Return the layout as JSON content for a model file."""
        return asdict(self)
