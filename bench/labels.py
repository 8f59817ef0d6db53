"""How well, and how quickly, an image-text encoder finds photographs by captions that we wrote.

    python bench/labels.py [--encoder things|file:FOLDER|hub:NAME]

The photographs ship in scikit-image, scikit-learn and matplotlib; each has several captions, from its plain name to a
whole sentence. Reported: how often a caption's own photograph comes first among all, the mean reciprocal rank, and
CPU milliseconds per image (resizing included) and per text. Sixteen photographs prove little; the figure tells
whether a change makes things better or worse, not how an encoder does on your videos.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from momentseek.recognition.encoders.registry import image_text_encoder

CAPTIONS = {
    "astronaut": ["an astronaut", "a woman in a space suit", "a portrait of a woman", "a person smiling"],
    "camera": ["a man with a camera", "a photographer", "a camera on a tripod", "someone filming in a park"],
    "cat": ["a cat", "a cat looking at the camera", "a pet", "an animal", "a kitten with whiskers"],
    "clock": ["a clock", "the time on a wall clock", "a watch"],
    "coffee": ["a cup of coffee", "someone drinks coffee", "an espresso on a table", "a hot drink", "a mug"],
    "coins": ["coins", "money", "old coins on a tray"],
    "motorcycle": ["a motorcycle", "a motorbike in a garage", "a vehicle with two wheels", "repairing a motorcycle"],
    "rocket": ["a rocket", "a rocket launch", "a missile on its launch pad", "space flight"],
    "moon": ["the moon", "a crater", "the surface of a planet"],
    "hubble_deep_field": ["stars", "galaxies in the night sky", "outer space"],
    "brick": ["a brick wall", "a wall"],
    "grass": ["grass", "a meadow", "a lawn"],
    "page": ["a page of text", "a document", "printed text in a book"],
    "china": ["a temple", "a palace", "a chinese building", "an old building", "architecture", "a pagoda"],
    "flower": ["a flower", "a blossom in the garden", "a plant", "close-up of petals", "gardening"],
    "officer": ["an officer in uniform", "a woman in military uniform", "a navy officer with a hat"],
}
FILES = {"cat": "chelsea", "motorcycle": "motorcycle_left", "clock": "clock_motion"}


def photographs() -> dict[str, np.ndarray]:
    import matplotlib
    import skimage
    from PIL import Image
    from sklearn.datasets import load_sample_image

    def read(path: Path) -> np.ndarray:
        return np.asarray(Image.open(path).convert("RGB"))

    folder = Path(skimage.__file__).parent / "data"
    found = {}
    for name in CAPTIONS:
        if name in ("china", "flower"):
            found[name] = load_sample_image(f"{name}.jpg")
        elif name == "officer":
            found[name] = read(Path(matplotlib.get_data_path()) / "sample_data/grace_hopper.jpg")
        else:
            found[name] = read(next(folder.glob(f"{FILES.get(name, name)}.*")))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoder", default="things")
    parser.add_argument("--misses", action="store_true", help="name the captions whose photograph is not first")
    args = parser.parse_args()
    encoder, images = image_text_encoder(args.encoder), photographs()
    encoder.encode_images(list(images.values())[:1]), encoder.encode(["warm up"])
    begun = time.process_time()
    rows = encoder.encode_images(list(images.values()))
    per_image = (time.process_time() - begun) / len(rows) * 1e3
    pairs = [(at, caption) for at, name in enumerate(images) for caption in CAPTIONS[name]]
    begun = time.process_time()
    texts = encoder.encode([caption for _, caption in pairs])
    per_text = (time.process_time() - begun) / len(texts) * 1e3
    scores = texts @ rows.T
    own = scores[np.arange(len(pairs)), [at for at, _ in pairs]]
    ranks = 1 + (scores > own[:, None]).sum(axis=1)
    print(f"{args.encoder}: {len(rows)} photographs, {len(pairs)} captions")
    print(f"own photograph first: {(ranks == 1).mean():.0%}; mean reciprocal rank {(1 / ranks).mean():.3f}")
    print(f"CPU ms per image {per_image:.1f}, per text {per_text:.1f}")
    if args.misses:
        for (_, caption), rank in zip(pairs, ranks, strict=True):
            if rank > 1:
                print(f"  {rank:2d}  {caption}")


if __name__ == "__main__":
    main()
