"""Teaches an exported model the project's own drawings: scenes of data/images in other poses, colors, light and places, none of
which is shown there. On CIFAR-10 it keeps its own answers.

    python teach_drawings.py --train train.zip --state /tmp/state --start data/model --out data/model

Every batch has images of CIFAR-10, varied as in train_cifar10.py, and drawings. The targets of the former are mostly the answers
of the weights at the start, to the same varied image; those of the latter are their classes. The result lies between the weights at
the start and the averaged ones at the end (Wortsman et al. 2022), which forgets less. Drawings of another seed are held out.
"""

import argparse
import inspect
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

import cifar10
from train_cifar10 import EMA_KEEP, LABEL_SMOOTHING, TEMPERATURE, accuracy, build_model, export, loss_with_teacher, rate, start_weights

sys.path.append(str(Path(__file__).resolve().parents[2] / "data" / "images"))
import make_images as scenes

DRAWN_EDGE = 64
ANIMAL_PLACES = (scenes.meadow, scenes.dry_field, scenes.forest, scenes.snow, scenes.leaves, scenes.room, scenes.blanket, scenes.sofa,
                 scenes.pond, scenes.earth)
STREETS = (scenes.road, scenes.car_park, scenes.snow, scenes.meadow)
SKIES = (scenes.open_sky, scenes.pale_sky)
PLACES = {"airplane": SKIES, "bird": (*SKIES, scenes.leaves, scenes.meadow), "automobile": STREETS, "truck": STREETS, "ship": (scenes.sea,)}


def other_color(color, rng):
    """Lighter or darker by up to a half, each channel by up to an eighth."""
    return tuple(np.clip(np.array(color) * rng.uniform(0.6, 1.5) * rng.uniform(0.88, 1.12, 3), 0.02, 0.97))


def is_color(value):
    return isinstance(value, tuple) and len(value) == 3 and all(isinstance(v, float) for v in value)


def drawing(label, seed):
    """One drawing of a class, (3, DRAWN_EDGE, DRAWN_EDGE) bytes."""
    rng = np.random.default_rng([seed, label])
    name = cifar10.CLASSES[label]
    shown = [image for file, image in {**scenes.IMAGES, **scenes.SMALL}.items() if file.startswith(name)]
    _, _, subject, options, place, view = shown[rng.integers(len(shown))]
    values = {key: p.default for key, p in inspect.signature(subject).parameters.items() if p.default is not p.empty} | options
    values |= {key: other_color(value, rng) for key, value in values.items() if is_color(value)}
    values |= {key: int(rng.integers(1000)) for key in values if key == "seed"}
    view = dict(target=tuple(np.array(view["target"]) + rng.uniform(-0.06, 0.06, 3) * view["span"]),
                span=view["span"] * rng.uniform(0.85, 1.3), yaw=view["yaw"] + rng.uniform(-28, 28), pitch=view["pitch"] + rng.uniform(-5, 9))
    if rng.random() < 0.7:
        places = PLACES.get(name, ANIMAL_PLACES)
        place = places[rng.integers(len(places))]
    image = scenes.draw(f"{name} {seed}", DRAWN_EDGE, DRAWN_EDGE, subject, values, place, view)
    pixels = np.asarray(image.convert("RGB"), np.float32) * rng.uniform(0.75, 1.2)  # light
    return np.clip(pixels[:, ::-1] if rng.random() < 0.5 else pixels, 0, 255).astype(np.uint8).transpose(2, 0, 1)


def drawings(per_class, first_seed, threads, cache):
    """(N, 3, DRAWN_EDGE, DRAWN_EDGE) bytes and their labels, made once."""
    file = cache / f"drawings-{first_seed}-{per_class}.npz"
    if not file.exists():
        labels = np.repeat(np.arange(len(cifar10.CLASSES)), per_class)
        seeds = np.tile(np.arange(first_seed, first_seed + per_class), len(cifar10.CLASSES))
        with ProcessPoolExecutor(threads) as pool:
            pixels = np.stack(list(pool.map(drawing, labels.tolist(), seeds.tolist(), chunksize=16)))
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, pixels=pixels, labels=labels)
    stored = np.load(file)
    return torch.from_numpy(stored["pixels"]), torch.from_numpy(stored["labels"])


def teach(args):
    torch.manual_seed(args.seed)
    torch.set_num_threads(args.threads)
    generator = torch.Generator().manual_seed(args.seed)
    pixels, labels = cifar10.read_archive(args.train, args.state)
    index, held_out = cifar10.split_held_out(labels)
    pixels = cifar10.resized(pixels, args.image_size)
    drawn, names = drawings(args.drawings, 1, args.threads, args.state)
    others, other_names = drawings(20, 10**6, args.threads, args.state)
    drawn, others = (cifar10.resized(images, args.image_size) for images in (drawn, others))
    model, description = build_model(args)
    model.load_state_dict(start_weights(args.start / "model.safetensors"))
    start = build_model(args)[0].eval()
    start.load_state_dict(model.state_dict())
    average = {name: value.clone() for name, value in model.state_dict().items()}
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.0)
    steps = round(args.epochs * len(index) / args.batch)
    more = cifar10.shuffled_batches(torch.arange(len(drawn)), args.batch // 6, generator)

    pool = ThreadPoolExecutor(1)  # its products have the threads

    def mixed():
        return {name: value.lerp(average[name], args.mix) for name, value in start.state_dict().items()}

    def report(step):
        watched = build_model(args)[0]
        watched.load_state_dict(mixed())
        print(f"step {step} of {steps}: held-out {100 * accuracy(watched, pixels[held_out], labels[held_out], pool):.2f} %, other drawings "
              f"{100 * accuracy(watched, others, other_names, pool):.2f} %", flush=True)

    report(0)
    for step, batch in zip(range(steps), cifar10.shuffled_batches(index, args.batch, generator)):
        crops = cifar10.random_crops(pixels[batch], args.image_size, args.image_size // 8, generator)
        if step < 0.85 * steps:
            crops, _ = cifar10.changed(crops, cifar10.one_hot(labels[batch]), args.vary, 0.0, generator)
        own = next(more)
        scenes_ = cifar10.random_crops(drawn[own], args.image_size, args.image_size // 8, generator)
        both = cifar10.normalise(torch.cat([crops, scenes_]))
        with torch.autocast("cpu", torch.bfloat16, enabled=args.bfloat16):
            logits = model(both).float()
            with torch.no_grad():
                answers = start(both[:len(batch)]).float()
        targets = torch.cat([(answers / TEMPERATURE).softmax(-1), cifar10.one_hot(labels[batch])], dim=1)
        loss = loss_with_teacher(logits[:len(batch)], targets) + args.share * torch.nn.functional.cross_entropy(
            logits[len(batch):], names[own], label_smoothing=LABEL_SMOOTHING)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimiser.param_groups[0]["lr"] = args.lr * rate(step / steps)
        optimiser.step()
        for name, value in model.state_dict().items():
            average[name].lerp_(value, 1 - EMA_KEEP)
        if (step + 1) % args.report_steps == 0 or step + 1 == steps:
            report(step + 1)
    export(mixed(), description, args.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--state", type=Path, required=True, help="folder for decoded images and drawings")
    parser.add_argument("--start", type=Path, required=True, help="folder of the model at the start")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model at the end")
    parser.add_argument("--epochs", type=float, default=0.6, help="of the images of CIFAR-10")
    parser.add_argument("--drawings", type=int, default=150, help="of each class")
    parser.add_argument("--share", type=float, default=0.4, help="of the drawings in the loss")
    parser.add_argument("--mix", type=float, default=0.5, help="of the way from the weights at the start to those at the end")
    parser.add_argument("--vary", type=float, default=0.5, help="share of the images that is warped and tinted, as in train_cifar10.py")
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--bfloat16", action="store_true", help="compute in bfloat16; the weights stay float32")
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--image-size", type=int, default=40)
    parser.add_argument("--report-steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.set_defaults(position="axial", drop_patches=0.0, dim=160, depth=9, heads=5, mlp_ratio=3.0)
    teach(parser.parse_args())


if __name__ == "__main__":
    main()
