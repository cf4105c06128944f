"""Convolutional networks for images: G, H and D_x of the paper's Table S3, and lighter ones.

Images are flat rows, `(rows, height * width * channels)`, channels last, so that all other parts
treat an image as a row of features. Height and width must be multiples of 4, because G doubles and
H halves them twice.

Differences from Table S3:

- Its G has one transposed convolution, but 7 x 7 to 28 x 28 needs two. Here the first has 64
  channels, the second those of the image, and the label is appended before both.
- Its H has two fully connected layers without a nonlinearity in between, which are equivalent to
  one. Here a leaky ReLU is between them.
- Its G has batch norm, which is optional here. Without it (`norm=False`) the output of a row does
  not depend on the batch, and training by likelihood is as good.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from roundtrip.model.networks.base import ImageShape, Network, Sizes
from roundtrip.model.networks.layers import LEAKY_SLOPE, linear
from roundtrip.parameters import check_choice, check_integer

KERNEL, STRIDE, PADDING = 4, 2, 1


@dataclass(frozen=True, repr=False)
class Conv(Network):  # numpydoc ignore=PR02
    """Convolutional networks for images.

    Parameters
    ----------
    hidden : int, default=1024
        Width of the fully connected hidden layer of G and of H. The width in D_x is the first of
        the objective's ``discriminator_x``.
    batch_norm : bool, default=False
        Whether G has batch norm, as in the paper.

    Examples
    --------
    >>> Conv(hidden=256).batch_norm
    False
    """

    hidden: int = 1024
    batch_norm: bool = False

    local = True

    def check(self) -> None:
        """Check both settings."""
        check_integer("hidden", self.hidden, minimum=1)
        check_choice("batch_norm", self.batch_norm, (True, False))

    def generator(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ConvGenerator":
        """Return G."""
        shape = _shape_of_images(sizes)
        if outputs != sizes.features:
            raise ValueError(
                "network='conv' gives one number per pixel, so noise must be 'isotropic' or "
                "'diagonal'"
            )
        return ConvGenerator(
            sizes.latent_dim,
            shape,
            context_dim=sizes.context_dim,
            hidden=self.hidden,
            norm=self.batch_norm,
            rng=rng,
        )

    def encoder(self, sizes: Sizes, outputs: int, *, rng: torch.Generator) -> "ConvEncoder":
        """Return H."""
        return ConvEncoder(
            _shape_of_images(sizes),
            outputs,
            context_dim=sizes.context_dim,
            hidden=self.hidden,
            rng=rng,
        )

    def discriminator(
        self, sizes: Sizes, hidden: Sequence[int], *, rng: torch.Generator
    ) -> "ConvDiscriminator":
        """Return D_x."""
        return ConvDiscriminator(
            _shape_of_images(sizes), context_dim=sizes.context_dim, hidden=hidden[0], rng=rng
        )


def _shape_of_images(sizes: Sizes) -> ImageShape:
    if sizes.image_shape is None:
        raise ValueError("network='conv' is for images, (rows, height, width, channels)")
    return sizes.image_shape


class ConvGenerator(nn.Module):
    """G for images: `(rows, latent_dim + context_dim)` → flat images in [0, 1].

    The context enters every layer.

    Parameters
    ----------
    latent_dim : int
        Dimension of z.
    shape : tuple of int
        Height, width and channels of the images.
    context_dim : int, default=0
        Length of the context.
    hidden : int, default=1024
        Width of the first layer.
    channels : tuple of int, default=(128, 64)
        Channels of the inputs of the two transposed convolutions.
    norm : bool, default=False
        Whether to use batch norm.
    rng : torch.Generator
        Source of the initial weights.

    Examples
    --------
    >>> import torch
    >>> rng = torch.Generator().manual_seed(0)
    >>> G = ConvGenerator(5, (8, 8, 1), context_dim=3, hidden=16, rng=rng)
    >>> G(torch.zeros(2, 8)).shape
    torch.Size([2, 64])
    """

    def __init__(
        self,
        latent_dim: int,
        shape: ImageShape,
        *,
        context_dim: int = 0,
        hidden: int = 1024,
        channels: tuple[int, int] = (128, 64),
        norm: bool = False,
        rng: torch.Generator,
    ) -> None:
        super().__init__()
        height, width, colours = shape
        self.latent_dim = latent_dim
        self.small = (channels[0], height // 4, width // 4)
        flat = channels[0] * (height // 4) * (width // 4)
        self.first = linear(latent_dim + context_dim, hidden, rng)
        self.second = linear(hidden + context_dim, flat, rng)
        self.third = _up(channels[0] + context_dim, channels[1], rng)
        self.last = _up(channels[1] + context_dim, colours, rng)
        self.norms = nn.ModuleList(
            [nn.BatchNorm1d(hidden), nn.BatchNorm1d(flat), nn.BatchNorm2d(channels[1])]
            if norm
            else [nn.Identity() for _ in range(3)]
        )

    def forward(self, codes: Tensor) -> Tensor:
        """Generate a flat image for each code."""
        context = codes[:, self.latent_dim :]
        hidden = _leaky(self.norms[0](self.first(codes)))
        hidden = _leaky(self.norms[1](self.second(torch.cat([hidden, context], dim=1))))
        image = _with_channels(hidden.view(-1, *self.small), context)
        image = _with_channels(_leaky(self.norms[2](self.third(image))), context)
        return torch.sigmoid(self.last(image)).permute(0, 2, 3, 1).flatten(1)


class _Downward(nn.Module):
    """Two convolutions and two fully connected layers; subclasses append the context."""

    def __init__(
        self,
        shape: ImageShape,
        channels: tuple[int, int],
        inputs: tuple[int, int],
        widths: tuple[int, int],
        *,
        context_dim: int,
        rng: torch.Generator,
    ) -> None:
        # `inputs` are the inputs of the second convolution and of the last layer; `widths` are
        # the hidden width and the number of outputs.
        super().__init__()
        self.shape = shape
        self.first = _down(shape[2], channels[0], rng)
        self.second = _down(inputs[0], channels[1], rng)
        flat = channels[1] * (shape[0] // 4) * (shape[1] // 4)
        self.third = linear(flat + context_dim, widths[0], rng)
        self.last = linear(inputs[1], widths[1], rng)


class ConvEncoder(_Downward):
    """H for images: flat images with their context → `(rows, outputs)`.

    Parameters
    ----------
    shape : tuple of int
        Height, width and channels of the images.
    outputs : int
        Number of outputs.
    context_dim : int, default=0
        Length of the context.
    hidden : int, default=1024
        Width of the fully connected hidden layer.
    channels : tuple of int, default=(64, 64)
        Channels of the two convolutions.
    rng : torch.Generator
        Source of the initial weights.

    Examples
    --------
    >>> import torch
    >>> H = ConvEncoder((8, 8, 1), 5, hidden=16, rng=torch.Generator().manual_seed(0))
    >>> H(torch.zeros(2, 64)).shape
    torch.Size([2, 5])
    """

    def __init__(
        self,
        shape: ImageShape,
        outputs: int,
        *,
        context_dim: int = 0,
        hidden: int = 1024,
        channels: tuple[int, int] = (64, 64),
        rng: torch.Generator,
    ) -> None:
        inputs = (channels[0], hidden)
        super().__init__(
            shape, channels, inputs, (hidden, outputs), context_dim=context_dim, rng=rng
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Encode each flat image."""
        image, context = _image(rows, self.shape)
        image = _leaky(self.second(_leaky(self.first(image))))
        return self.last(_leaky(self.third(torch.cat([image.flatten(1), context], dim=1))))


class ConvDiscriminator(_Downward):
    """D_x for images: flat images with their context → one score per row, `(rows, 1)`.

    The input may also hold several batches, as for `discriminator`.

    Its arguments are those of `ConvEncoder`, but for `outputs`.

    Examples
    --------
    >>> import torch
    >>> D = ConvDiscriminator((8, 8, 1), rng=torch.Generator().manual_seed(0))
    >>> D(torch.zeros(3, 2, 64)).shape
    torch.Size([3, 2, 1])
    """

    def __init__(
        self,
        shape: ImageShape,
        *,
        context_dim: int = 0,
        hidden: int = 1024,
        channels: tuple[int, int] = (32, 64),
        rng: torch.Generator,
    ) -> None:
        inputs = (channels[0] + context_dim, hidden + context_dim)
        super().__init__(shape, channels, inputs, (hidden, 1), context_dim=context_dim, rng=rng)
        self.norms = nn.ModuleList(
            [nn.BatchNorm2d(channels[0]), nn.BatchNorm2d(channels[1]), nn.BatchNorm1d(hidden)]
        )

    def forward(self, rows: Tensor) -> Tensor:
        """Score each row; batch norm uses the statistics of each batch alone."""
        if rows.ndim == 3:
            return torch.stack([self(batch) for batch in rows.unbind(dim=1)], dim=1)
        image, context = _image(rows, self.shape)
        image = _leaky(self.norms[0](self.first(image)))
        image = _leaky(self.norms[1](self.second(_with_channels(image, context))))
        hidden = self.third(torch.cat([image.flatten(1), context], dim=1))
        hidden = _leaky(self.norms[2](hidden))
        return self.last(torch.cat([hidden, context], dim=1))


def _image(rows: Tensor, shape: ImageShape) -> tuple[Tensor, Tensor]:
    """Split flat rows into images, `(rows, channels, height, width)`, and their context."""
    height, width, colours = shape
    flat, context = rows.tensor_split([height * width * colours], dim=1)
    # A view in channels-last memory order, in which convolutions are fastest on a CPU.
    return flat.reshape(-1, height, width, colours).permute(0, 3, 1, 2), context


def _with_channels(image: Tensor, context: Tensor) -> Tensor:
    """Append one constant channel for each number of the context."""
    planes = context[:, :, None, None].expand(-1, -1, *image.shape[-2:])
    return torch.cat([image, planes], dim=1)


def _leaky(values: Tensor) -> Tensor:
    return nn.functional.leaky_relu(values, LEAKY_SLOPE)


def _down(inputs: int, outputs: int, rng: torch.Generator) -> nn.Conv2d:
    layer = nn.utils.skip_init(nn.Conv2d, inputs, outputs, KERNEL, STRIDE, PADDING)
    return _initialised(layer, rng)


def _up(inputs: int, outputs: int, rng: torch.Generator) -> nn.ConvTranspose2d:
    layer = nn.utils.skip_init(nn.ConvTranspose2d, inputs, outputs, KERNEL, STRIDE, PADDING)
    return _initialised(layer, rng)


def _initialised(layer: Any, rng: torch.Generator) -> Any:
    nn.init.xavier_uniform_(layer.weight, generator=rng)
    nn.init.zeros_(layer.bias)
    return layer
