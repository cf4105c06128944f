"""Neural networks the model is built from."""

from roundtrip.networks.conv import ConvDiscriminator, ConvEncoder, ConvGenerator, ImageShape
from roundtrip.networks.mlp import discriminator, mlp
from roundtrip.networks.residual import ResidualMLP, hidden_weights

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
