r"""What rules of rope scaling do to models of several seeds, and to models trained at several scales: trains small models, and has
data/figures/make_rope_scaling.py measure them with `vit evaluate`, draw the figures and fill the tables of vit/position/scaling.md.

    python study_scaling.py --train train.zip --validation validation.zip --state /tmp/study --program build/release/vit

Can be stopped and started again with the same --state folder. The architecture is that of study_positions.py; models are trained
on labels alone, the axial ones in bfloat16.
"""

import argparse
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import cifar10
from study_positions import RECIPE, train_all

FIGURES = Path(__file__).resolve().parents[2] / "data/figures/make_rope_scaling.py"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--validation", type=Path, required=True, help="zip of class folders, to measure on")
    parser.add_argument("--teachers", type=Path, nargs="+", help="logits written by teach_*.py")
    parser.add_argument("--state", type=Path, required=True, help="folder for models, images and restarts")
    parser.add_argument("--program", type=Path, required=True, help="the program vit")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the models of one scale")
    parser.add_argument("--zoom-seeds", type=int, nargs="*", default=[1, 2, 3], help="of those of several scales")
    parser.add_argument("--mixed-seeds", type=int, nargs="*", default=[1], help="of those with learned frequencies")
    parser.add_argument("--per-class", type=int, default=100, help="images of a class to measure on")
    parser.add_argument("--parts", nargs="+", default=["study"], help="as make_rope_scaling.py has them")
    parser.add_argument("--jobs", type=int, default=2, help="models trained side by side")
    args = parser.parse_args()

    args.state.mkdir(parents=True, exist_ok=True)
    cifar10.read_archive(args.train, args.state)  # decoded once, for all of them
    # Small models are trained faster without compiling what they compute.
    os.environ.setdefault("TORCH_COMPILE_DISABLE", "1")
    axial = [("axial", seed) for seed in args.seeds] + [("axial+zoom", seed) for seed in args.zoom_seeds]
    train_all(args, axial, RECIPE | {"bfloat16": None})
    train_all(args, [("mixed", seed) for seed in args.mixed_seeds])
    images = args.state / "validation"
    if not images.exists():
        with zipfile.ZipFile(args.validation) as archive:
            archive.extractall(images.with_suffix(".new"))
        images.with_suffix(".new").rename(images)
    subprocess.run([sys.executable, FIGURES, "--program", args.program, "--models", args.state, "--images", images,
                    "--per-class", str(args.per_class), "--parts", *args.parts], check=True)


if __name__ == "__main__":
    main()
