"""Neural networks the model is built from."""

from roundtrip.networks.mlp import discriminator, mlp

__all__ = ["discriminator", "mlp"]
