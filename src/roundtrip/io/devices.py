"""Where networks run."""

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """The torch device that `device` names; "auto" is a CUDA GPU if there is one, else the CPU.

    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        # Sums over draws are in float64, which not every device has.
        torch.zeros(1, dtype=torch.float64, device=resolved).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(
            f"device {device!r} is not present or has no float64; 'auto' takes what there is"
        ) from error
    return resolved
