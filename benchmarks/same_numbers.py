"""Whether a change of the code leaves every number as it was.

    python benchmarks/same_numbers.py write BEFORE.npz       # with the code as it was
    python benchmarks/same_numbers.py compare BEFORE.npz     # with the code as it is now

Runs some thirty small fits of every kind and collects what they give: densities, samples,
encodings, p-values, class probabilities and training histories. `compare` says per case whether
every number is bit-identical, and exits with 1 if one is not. Names of cases after the file
restrict both. Other machines and other versions of the libraries round differently: write the file
anew for each change.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from roundtrip import (
    MLP,
    Conv,
    DensityWarning,
    Isotropic,
    Residual,
    Roundtrip,
    RoundtripClassifier,
    RoundtripDetector,
    load,
)

Numbers = dict[str, Any]
"""What a case gives, by name."""

ROWS, IMAGES, SCORED = 400, 200, 12
RNG = np.random.default_rng(0)
PLANE = RNG.normal(size=(ROWS, 2)) @ np.array([[1, 0.5], [0, 0.3]])
PLANE += np.where(RNG.random((ROWS, 1)) < 0.5, 2, -2)
TABLE = np.c_[
    PLANE,
    np.round(RNG.normal(size=ROWS), 1),
    RNG.integers(6, size=ROWS),
    np.sin(PLANE[:, 0]) + 0.1 * RNG.normal(size=ROWS),
]
"""Five columns: one is rounded, one holds whole numbers, one depends on another."""
FRAME = pd.DataFrame(TABLE, columns=list("abcde"))
LABELS = np.where(PLANE[:, 0] > 0, "b", "a")
COVARIATES = np.c_[PLANE[:, :1] + RNG.normal(size=(ROWS, 1)), RNG.normal(size=(ROWS, 1))]
STRIPES = np.clip(
    RNG.normal(size=(IMAGES, 8, 8, 1)) * 0.1 + (np.arange(8) % 4 / 4)[None, :, None, None], 0, 1
)
STRIPE_LABELS = RNG.integers(2, size=IMAGES)

TWO_LAYERS = MLP((16, 16), (16, 16))
SMALL = {
    "latent_dim": 2,
    "network": Residual(16, 2),
    "max_epochs": 3,
    "random_state": 3,
    "objective__batch_size": 64,
    "objective__min_steps_per_epoch": 10,
}
SMALL_ADVERSARIES: dict[str, Any] = {
    "objective__discriminator_x": (16, 16),
    "objective__discriminator_z": (16,),
    "validation__draws": 50,
}
ADVERSARIAL: dict[str, Any] = {
    "objective": "adversarial",
    "network": TWO_LAYERS,
    **SMALL_ADVERSARIES,
}
PAPER: dict[str, Any] = {**SMALL_ADVERSARIES, "validation__rows": 20, "random_state": 1}
PAPER_METHODS = ("laplace", "importance")
HYBRID: dict[str, Any] = {"objective": "hybrid", "max_epochs": 6}


def small(**parameters: Any) -> Roundtrip:
    return Roundtrip().set_params(**(SMALL | parameters))


def table(X: Any = PLANE, context: Any = None, methods: Any = (), **parameters: Any) -> Numbers:
    """Everything that a small density of `X` gives, scored by `methods` besides "adaptive"."""
    return outputs(small(**parameters).fit(X, context=context), X, context, methods)


def outputs(est: Roundtrip, X: Any, context: Any = None, methods: Any = ()) -> Numbers:
    rows, given = X[:SCORED], {} if context is None else {"context": context[:SCORED]}
    result = est.density(rows, **given)
    kept = ("log_density", "std_error", "ess", "n_evaluations", "converged")
    numbers: Numbers = {name: getattr(result, name) for name in kept}
    numbers["k"] = result.pareto_k
    numbers["sample"] = est.sample(SCORED, 5, **given)
    numbers["transform"] = est.transform(rows, **given)
    numbers["inverse"] = est.inverse_transform(numbers["transform"], **given)
    if np.ndim(X) == 2:
        far = est.density(rows.astype(float) * 4, **given)
        numbers["far"], numbers["far_se"] = far.log_density, far.std_error
        numbers["far_n"], numbers["far_c"] = far.n_evaluations, far.converged
    for method in methods:
        numbers[method] = est.density(rows, method=method, **given).log_density
    for name, values in est.history_.items():
        if name != "seconds":
            numbers[f"history_{name}"] = values
    numbers["best"] = [est.best_epoch_, est.n_iter_, est.latent_dim_, est.prior_gain_]
    given = {} if context is None else {"context": context[:5]}
    numbers["loaded"] = saved_and_loaded(est).score_samples(X[:5], **given)
    return numbers


def saved_and_loaded(est: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.rt")
        est.save(path)
        return load(path)


def paper() -> Numbers:
    est = Roundtrip.paper(2, network=MLP((16,) * 3, (16,) * 3), max_epochs=3, **PAPER)
    return outputs(est.fit(PLANE), PLANE, methods=PAPER_METHODS)


def paper_images() -> Numbers:
    est = Roundtrip.paper_images(3, network=Conv(16, batch_norm=True), max_epochs=2, **PAPER)
    est.set_params(objective__discriminator_x=(16,))
    return outputs(est.fit(STRIPES, context=STRIPE_LABELS), STRIPES, STRIPE_LABELS)


def classifier(**parameters: Any) -> Numbers:
    est = small(**({"random_state": None} | parameters))
    fitted = RoundtripClassifier(est, random_state=2).fit(PLANE, LABELS)
    result = fitted.posterior(PLANE[:20] * 1.5)
    return {
        "p": result.probability,
        "e": result.std_error,
        "d": result.log_density,
        "c": result.converged,
        "predict": fitted.predict(PLANE[:20]) == "a",
    }


def detector(X: Any = TABLE, **parameters: Any) -> Numbers:
    fitted = RoundtripDetector(random_state=4, **parameters).fit(X)
    new = X[:10] * 1.7
    reasons = fitted.explain(new)
    return {
        "score": fitted.score_samples(new),
        "p": fitted.p_value(new),
        "pm": fitted.p_value(new, reference="model"),
        "offset": [fitted.offset_, fitted.n_trimmed_],
        "held": fitted.held_out_scores_,
        "surprise": reasons.surprise,
        "residual": reasons.residual,
        "latent": reasons.latent,
        "given": reasons.given_others,
        "loaded": saved_and_loaded(fitted).score_samples(new),
    }


def from_density() -> Numbers:
    fitted = RoundtripDetector.from_density(small().fit(PLANE))
    scores, p_values = fitted.score_samples(PLANE[:10]), fitted.p_value(PLANE[:10])
    return {"score": scores, "p": p_values, "given": fitted.explain(PLANE[:4]).given_others}


CASES: dict[str, Callable[[], Numbers]] = {
    "likelihood": lambda: table(),
    "likelihood_trials": lambda: table(
        TABLE, latent_dim="auto", max_epochs=60, objective__min_steps_per_epoch=3
    ),
    "likelihood_rounded": lambda: table(TABLE, latent_dim=3),
    "likelihood_mlp": lambda: table(network=TWO_LAYERS),
    "dataframe": lambda: table(FRAME, latent_dim=3),
    "adversarial": lambda: table(methods=PAPER_METHODS, **ADVERSARIAL),
    "adversarial_rounded": lambda: table(TABLE, dequantize=True, **ADVERSARIAL),
    "hybrid": lambda: table(**HYBRID, **{f"objective__discriminator_{of}": (16,) for of in "xz"}),
    "paper": paper,
    "conditional": lambda: table(context=LABELS),
    "conditional_adversarial": lambda: table(context=LABELS, **ADVERSARIAL),
    "conditional_hybrid": lambda: table(context=LABELS, **HYBRID),
    "covariates": lambda: table(context=COVARIATES),
    "covariates_rounded": lambda: table(TABLE, COVARIATES, latent_dim=3),
    "isotropic": lambda: table(noise="isotropic", methods=("importance",)),
    "isotropic_sigma": lambda: table(noise=Isotropic(0.3), prior="normal", methods=PAPER_METHODS),
    "diagonal": lambda: table(noise="diagonal"),
    "heteroscedastic": lambda: table(noise="heteroscedastic"),
    "prior_normal": lambda: table(prior="normal", scale="minmax"),
    "images": lambda: table(STRIPES, STRIPE_LABELS, latent_dim=3),
    "images_conv": lambda: table(STRIPES, latent_dim=3, network=Conv(16)),
    "paper_images": paper_images,
    "warm_start": lambda: outputs(small(warm_start=True).fit(PLANE).fit(PLANE), PLANE),
    "classifier": classifier,
    "classifier_adversarial": lambda: classifier(random_state=3, **ADVERSARIAL),
    "detector": detector,
    "detector_dataframe": lambda: detector(FRAME, sigma=4.0),
    "detector_own": lambda: detector(PLANE, estimator=small(), sigma=None, trim=False),
    "detector_standard": lambda: detector(PLANE, gaussian_columns=False),
    "from_density": from_density,
}


def differences(before: Numbers, now: Numbers) -> list[str]:
    """Names of arrays that are not bit-identical, or that only one side has."""
    names = sorted(before.keys() | now.keys())
    return [name for name in names if content(before.get(name)) != content(now.get(name))]


def content(array: np.ndarray | None) -> Any:
    return None if array is None else (array.dtype, array.shape, array.tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("mode", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}")
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - CASES.keys():
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DensityWarning)
    before: Numbers = dict(np.load(arguments.file)) if arguments.mode == "compare" else {}
    now, exit_code = Numbers(), 0
    for case in arguments.cases or CASES:
        start = time.perf_counter()
        numbers = {f"{case}/{name}": np.asarray(value) for name, value in CASES[case]().items()}
        result = f"{len(numbers)} arrays, {time.perf_counter() - start:.1f} s"
        now |= numbers
        if arguments.mode == "compare":
            known = {name: array for name, array in before.items() if name.startswith(f"{case}/")}
            differ = differences(known, numbers)
            exit_code |= bool(differ)
            result = f"{'DIFFERENT: ' + ' '.join(differ) if differ else 'same'} ({result})"
        print(f"{case}: {result}", flush=True)
    if arguments.mode == "write":
        np.savez(arguments.file, **now)
    sys.exit(exit_code)


if __name__ == "__main__":
    main()
