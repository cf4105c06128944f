"""Tags by which scikit-learn knows what tables an estimator takes."""

from sklearn.utils import Tags


class TakesAnyCells:
    """Mixin of estimators of tables with text, categories and missing cells.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from sklearn.utils import get_tags
    >>> class Estimator(TakesAnyCells, BaseEstimator):
    ...     pass
    >>> get_tags(Estimator()).input_tags.allow_nan
    True
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags
