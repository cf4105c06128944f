"""Networks G, H, D_x and D_z: fully connected, residual and convolutional."""

from roundtrip.model.networks.base import ImageShape, Network, Sizes
from roundtrip.model.networks.conv import Conv, ConvDiscriminator, ConvEncoder, ConvGenerator
from roundtrip.model.networks.discriminator import discriminator
from roundtrip.model.networks.hidden import hidden_weights
from roundtrip.model.networks.mlp import MLP, mlp
from roundtrip.model.networks.products import Linear, plain_products
from roundtrip.model.networks.residual import Residual, ResidualMLP

__all__ = [
    "MLP",
    "Conv",
    "ConvDiscriminator",
    "ConvEncoder",
    "ConvGenerator",
    "ImageShape",
    "Linear",
    "Network",
    "Residual",
    "ResidualMLP",
    "Sizes",
    "discriminator",
    "hidden_weights",
    "mlp",
    "plain_products",
]
