"""`Dataset`: the training, validation and test part of a real data set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from roundtrip.datasets.splits import Parts


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A data set, split and scaled as in the paper's Appendix D.

    Attributes
    ----------
    name : str
        The paper's name of the data set.
    train, validation, test : ndarray
        Tables: float64 of shape (rows, features). Images: uint8 of shape (rows, height, width,
        channels).
    train_labels, validation_labels, test_labels : ndarray of shape (rows,), int64, or None
        Class of each row, numbered from 0; None if the data set has no classes.
    columns : tuple of str
        Names of the features; empty for images.
    label_names : tuple of str, or None
        Names of the classes 0, 1, ...
    latent_dim : int
        The paper's dimension of z (tables S1 and S2).
    description : str
        What the rows are and how they were prepared, in a sentence or two.
    train_groups, validation_groups, test_groups : ndarray of shape (rows,), int64, or None
        Recording of each row; None if the data set has no recordings (only AReM has).

    Examples
    --------
    >>> rows = np.zeros((4, 2))
    >>> Dataset("toy", rows, rows[:1], rows[:2], columns=("a", "b"), latent_dim=1, description="")
    Dataset('toy': 4 train, 1 validation, 2 test rows of 2 features)
    """

    name: str
    train: NDArray
    validation: NDArray
    test: NDArray
    train_labels: NDArray[np.int64] | None = None
    validation_labels: NDArray[np.int64] | None = None
    test_labels: NDArray[np.int64] | None = None
    columns: tuple[str, ...] = ()
    label_names: tuple[str, ...] | None = None
    latent_dim: int = 1
    description: str = ""
    train_groups: NDArray[np.int64] | None = None
    validation_groups: NDArray[np.int64] | None = None
    test_groups: NDArray[np.int64] | None = None

    @classmethod
    def from_parts(
        cls,
        name: str,
        X: NDArray,
        parts: Parts,
        *,
        labels: NDArray[np.int64] | None = None,
        groups: NDArray[np.int64] | None = None,
        columns: tuple[str, ...],
        label_names: tuple[str, ...] | None = None,
        latent_dim: int,
        description: str,
    ) -> "Dataset":
        """Divide a table, its labels and its groups into three parts.

        Parameters
        ----------
        name : str
            The paper's name of the data set.
        X : ndarray of shape (rows, features)
            All rows.
        parts : Parts
            Row numbers of each part.
        labels : ndarray of shape (rows,) or None, default=None
            Class of each row.
        groups : ndarray of shape (rows,) or None, default=None
            Recording of each row.
        columns : tuple of str
            Names of the features.
        label_names : tuple of str or None, default=None
            Names of the classes.
        latent_dim : int
            The paper's dimension of z.
        description : str
            What the rows are and how they were prepared.

        Returns
        -------
        Dataset
            The three parts.
        """

        def rows_of(values: NDArray | None) -> list:
            return [None if values is None else values[rows] for rows in parts]

        train, validation, test = rows_of(X)
        train_labels, validation_labels, test_labels = rows_of(labels)
        train_groups, validation_groups, test_groups = rows_of(groups)
        return cls(
            name=name,
            train=train,
            validation=validation,
            test=test,
            train_labels=train_labels,
            validation_labels=validation_labels,
            test_labels=test_labels,
            columns=columns,
            label_names=label_names,
            latent_dim=latent_dim,
            description=description,
            train_groups=train_groups,
            validation_groups=validation_groups,
            test_groups=test_groups,
        )

    def fitting_rows(self) -> tuple[NDArray, NDArray[np.int64] | None]:
        """Join training and validation rows, for estimators that hold out their own.

        Returns
        -------
        rows : ndarray
            Training rows, then validation rows.
        labels : ndarray of shape (rows,) or None
            Their labels; None if the data set has no classes.

        Examples
        --------
        >>> rows = np.zeros((4, 2))
        >>> Dataset("toy", rows, rows[:1], rows).fitting_rows()[0].shape
        (5, 2)
        """
        rows = np.concatenate([self.train, self.validation])
        if self.train_labels is None or self.validation_labels is None:
            return rows, None
        return rows, np.concatenate([self.train_labels, self.validation_labels])

    def __repr__(self) -> str:
        shape = self.train.shape[1:]
        row = f"{shape[0]} features" if len(shape) == 1 else f"shape {shape}"
        return (
            f"Dataset({self.name!r}: {len(self.train)} train, {len(self.validation)} validation, "
            f"{len(self.test)} test rows of {row})"
        )
