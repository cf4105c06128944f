"""Images per second on this machine: networks of images in training, and G in scoring.

    python benchmarks/image_speed.py --data FOLDER      # or set ROUNDTRIP_DATA

Fits p(x | y) to MNIST images with each kind of network, and with convolutions also on images whose
memory is in the order of channels first, to see what the other order gains. The kinds take turns,
so that a machine that slows down slows all. Results go to results/image-speed.
"""

import argparse
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

from roundtrip import Roundtrip
from roundtrip.datasets import load_mnist
from roundtrip.density.blocks import EVALUATIONS_PER_CALL, map_blocks
from roundtrip.model.networks import conv
from roundtrip.reproduce.request import Request, markdown_table
from roundtrip.reproduce.runs import environment

IMAGES, CODES, TURNS = 1024, 2048, 2
KINDS = {
    "residual, by likelihood (the default)": (Roundtrip, {}),
    "convolutions, by likelihood": (Roundtrip, {"network": "conv"}),
    "convolutions, the paper's training": (Roundtrip.paper_images, {}),
}
AS_IS, CHANNELS_FIRST = "channels last", "channels first"


def channels_first(rows, shape):
    image, context = as_it_is(rows, shape)
    return image.contiguous(), context


as_it_is = conv._image


def speeds(kind, layout, images, labels):
    """Images per second: the median of all training epochs but the first, and codes through G."""
    make, settings = KINDS[kind]
    est = make(random_state=0, max_epochs=4, **settings).set_params(
        objective__min_steps_per_epoch=1, validation__rows=2, validation__draws=1
    )
    with patch.object(conv, "_image", channels_first if layout == CHANNELS_FIRST else as_it_is):
        est.fit(images, context=labels)
        training = len(images) * 0.9 / np.median(np.diff(est.history_["seconds"]))
        model = est.model_.eval()
        codes = torch.randn(CODES, model.latent_dim + model.context_dim)
        with torch.no_grad():
            times = []
            for _ in range(6):
                start = time.perf_counter()
                map_blocks(model.generator, codes, EVALUATIONS_PER_CALL)
                times.append(time.perf_counter() - start)
    return float(training), CODES / float(np.median(times[1:]))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder with the data sets")
    arguments = parser.parse_args()
    request = Request("image-speed", data_home=arguments.data)
    images, labels = load_mnist(data_home=arguments.data).fitting_rows()
    cases = [
        (kind, layout)
        for kind in KINDS
        for layout in (AS_IS, CHANNELS_FIRST)
        if "convolutions" in kind or layout == AS_IS
    ]
    measured = {case: [] for case in cases}
    for _ in range(TURNS):
        for case in cases:
            measured[case].append(speeds(*case, images[:IMAGES], labels[:IMAGES]))
            print(*case, measured[case][-1], flush=True)
    rows = []
    for (kind, layout), values in measured.items():
        training, codes = np.median(values, axis=0)
        order = layout if "convolutions" in kind else ""
        # G begins with codes, so that the order of images in memory is nothing to it.
        scoring = "" if layout == CHANNELS_FIRST else f"{codes:,.0f}"
        rows.append([kind, order, f"{training:,.0f}", scoring])
    known = environment()
    text = "\n\n".join(
        [
            "# Images a second",
            f"MNIST, classes given; medians of {TURNS} turns; {known['threads']} thread(s) on "
            f"{known['cores']} cores, torch {known['torch']}.",
            markdown_table(["networks", "memory", "training", "G, in scoring"], rows),
        ]
    )
    request.write_text("image-speed.md", text + "\n")
    print(text)


if __name__ == "__main__":
    main()
