"""EM for mixtures of Gaussians, without scikit-learn's warning that it has not converged."""

from sklearn.mixture import GaussianMixture


class MixtureByEM(GaussianMixture):
    """scikit-learn's mixture of Gaussians, fitted silently.

    Its callers limit the iterations on purpose. Filters of warnings belong to the whole process, so
    that a fit in one thread must not change them for the others; instead scikit-learn, which warns
    if `converged_` is False, always finds True there, and `has_settled` says how it was.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(50, 2))
    >>> MixtureByEM(3, max_iter=1, random_state=0).fit(rows).has_settled
    False
    """

    has_settled: bool

    @property
    def converged_(self) -> bool:
        """True after `fit`, and absent before, as scikit-learn starts anew without it."""
        if not hasattr(self, "has_settled"):
            raise AttributeError("converged_")
        return True

    @converged_.setter
    def converged_(self, value: bool) -> None:
        self.has_settled = value
