"""Choice of the device on which networks run."""

import torch


def resolve_device(device: str | torch.device) -> torch.device:
    """Return the torch device that `device` names.

    Parameters
    ----------
    device : str or torch.device
        "auto" is a CUDA GPU if there is one, else the CPU.

    Returns
    -------
    torch.device
        A device that is present and supports float64.

    Examples
    --------
    >>> resolve_device("cpu")
    device(type='cpu')
    """
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        # Sums over draws need float64, which not every device supports.
        torch.zeros(1, dtype=torch.float64, device=resolved).item()
    except (RuntimeError, AssertionError, TypeError) as error:
        raise ValueError(
            f"device {device!r} is not available or does not support float64; use 'auto' instead"
        ) from error
    return resolved
