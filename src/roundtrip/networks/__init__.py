"""Neural networks the model is built from."""

from roundtrip.networks.mlp import discriminator, mlp
from roundtrip.networks.residual import ResidualMLP, hidden_weights

__all__ = ["ResidualMLP", "discriminator", "hidden_weights", "mlp"]
