"""What `fit` and `info` show of a fitted estimator or detector."""

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from roundtrip.estimator import Roundtrip
    from roundtrip.outliers.detector import RoundtripDetector


def print_facts(facts: dict[str, Any]) -> None:
    """Print one fact per line."""
    for name, value in facts.items():
        text = readable(value).replace("\n", "\n" + " " * 27)
        typer.echo(f"{name.replace('_', ' '):27}{text}")


def density_facts(estimator: "Roundtrip") -> dict[str, Any]:
    """What was learned, in the order in which it is shown."""
    best = estimator.best_epoch_  # 0: the history is not that of the model
    validation = estimator.history_["validation_log_likelihood"][best - 1] if best else None
    return {
        "columns": estimator.n_features_in_,
        "column_names": list(getattr(estimator, "feature_names_in_", [])) or None,
        **_kind_facts(estimator),
        **_context_facts(estimator),
        "latent_dim": estimator.latent_dim_,
        **({"sigma": estimator.sigma_} if _has_one_sigma(estimator) else {}),
        "epochs": estimator.n_iter_,
        "best_epoch": best,
        "stopped_by": estimator.stopped_by_,
        "validation_log_likelihood": validation,
        **_rounding_facts(estimator),
        "parameters": sum(weights.numel() for weights in estimator.model_.parameters()),
    }


def detector_facts(detector: "RoundtripDetector") -> dict[str, Any]:
    """What a detector learned, in the order in which it is shown."""
    blurred, held_out = detector.blurred_, detector.held_out_scores_
    density = detector.estimator_
    facts = {
        "holds": "outlier detector",
        "columns": detector.n_features_in_,
        "column_names": list(getattr(detector, "feature_names_in_", [])) or None,
        "scored_by": "every kind of oddity" if density is None else "one density",
        "scored_with_sigma": None if blurred is None or density is None else blurred.sigma,
        "threshold_of_predict": detector.offset_,
        "held_out_rows": None if held_out is None else len(held_out),
        "trimmed_rows": detector.n_trimmed_,
    }
    if density is not None:
        facts |= {"latent_dim": density.latent_dim_, "stopped_by": density.stopped_by_}
    return facts


def _kind_facts(estimator: "Roundtrip") -> dict[str, Any]:
    schema = estimator.schema_
    names = schema.columns or [f"x{j}" for j in range(estimator.n_features_in_)]
    gaps = [", with missing cells" if gap else "" for gap in schema.incomplete]
    columns = zip(names, estimator.columns_.values(), gaps, strict=False)  # images have no kinds
    kinds = {str(name): f"{column}{gap}" for name, column, gap in columns}
    return {"kinds": kinds} if kinds else {}


def _context_facts(estimator: "Roundtrip") -> dict[str, Any]:
    context, layout = estimator.schema_.context, estimator.schema_.images
    facts: dict[str, Any] = {}
    if layout is not None:
        facts["images"] = " x ".join(map(str, layout.shape))
    if context is not None:
        facts["context"] = "unnamed" if context.names is None else list(context.names)
        if context.labels is not None:
            facts["classes"] = list(context.labels)
    return facts


def _rounding_facts(estimator: "Roundtrip") -> dict[str, Any]:
    names = estimator.schema_.columns or [f"x{j}" for j in range(estimator.n_features_in_)]
    columns = zip(names, estimator.rounding_, strict=False)  # images have no rounding
    rounded = {str(name): str(each) for name, each in columns if each.step > 0}
    return {"rounded_columns": rounded} if rounded else {}


def _has_one_sigma(estimator: "Roundtrip") -> bool:
    return isinstance(getattr(estimator, "sigma_", None), float)


def readable(value: Any) -> str:
    """Return a value as text: numbers with five digits, lists with commas."""
    if isinstance(value, dict):
        return "\n".join(f"{name}: {readable(each)}" for name, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(readable(item) for item in value)
    return f"{value:.5g}" if isinstance(value, float) else "-" if value is None else str(value)
