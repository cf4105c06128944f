"""Neural networks the model is built from."""

from roundtrip.networks.conv import ConvDiscriminator, ConvEncoder, ConvGenerator, ImageShape
from roundtrip.networks.hidden import hidden_weights
from roundtrip.networks.mlp import discriminator, mlp
from roundtrip.networks.residual import ResidualMLP

__all__ = [
    "ConvDiscriminator",
    "ConvEncoder",
    "ConvGenerator",
    "ImageShape",
    "ResidualMLP",
    "discriminator",
    "hidden_weights",
    "mlp",
]
