"""Neural networks the model is built from."""

from roundtrip.model.networks.conv import ConvDiscriminator, ConvEncoder, ConvGenerator, ImageShape
from roundtrip.model.networks.hidden import hidden_weights
from roundtrip.model.networks.mlp import discriminator, mlp
from roundtrip.model.networks.residual import ResidualMLP

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
