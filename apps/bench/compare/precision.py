"""What bfloat16 and int8 change: cosines with float32 and classes kept, for every kernel table of this machine.

    python apps/bench/compare/precision.py --vit build/release/vit --model dinov2s/ [--old another/vit] PHOTOS

Prints the worst and the median cosine of patch tokens, how many are below 0.998, and the worst cosine of class tokens; of
a classifier also the photographs whose best class stays and the worst and median cosine of logits. PHOTOS is a folder.
"""

import argparse
import os
import subprocess
import tempfile

import numpy as np

TABLES = ["avx512_bf16", "avx512_vnni", "avx512", "avx2_vnni", "avx2", "sse4", "neon"]


def cosines(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def embed(vit, arguments, options, features):
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "features.npz")
        command = [vit, "embed", "--quiet", "--model", arguments.model, "--features", features, "-o", file, *options]
        subprocess.run([*command, arguments.photos], check=True)
        with np.load(file) as arrays:
            return {name: arrays[name] for name in features.split(",")}


def describe(found, exact):
    patches, classes = cosines(found["patches"], exact["patches"]), cosines(found["cls"], exact["cls"])
    text = f"patches worst {patches.min():.5f}, median {np.median(patches):.5f}, {(patches < 0.998).sum()} of "
    text += f"{patches.size} below 0.998; class token worst {classes.min():.5f}"
    if "logits" in exact:
        logits, best = cosines(found["logits"], exact["logits"]), exact["logits"].argmax(-1)
        text += f"; logits worst {logits.min():.5f}, median {np.median(logits):.5f}, classes kept "
        text += f"{(found['logits'].argmax(-1) == best).sum()} of {best.size}"
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", metavar="PHOTOS")
    parser.add_argument("--vit", required=True)
    parser.add_argument("--old", help="another build, measured as well")
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="int8")
    parser.add_argument("--logits", action="store_true", help="the model is a classifier")
    arguments = parser.parse_args()
    features = "cls,patches" + (",logits" if arguments.logits else "")
    exact = embed(arguments.vit, arguments, [], features)
    listed = subprocess.run([arguments.vit, "info", "--kernels"], check=True, capture_output=True, text=True).stdout
    for table in (name for name in TABLES if name in listed.replace("*", " ").split()):
        for name, vit in (("vit", arguments.vit), ("old", arguments.old)):
            if vit:
                found = embed(vit, arguments, ["--dtype", arguments.dtype, "--kernels", table], features)
                print(f"{name} {arguments.dtype} {table}: {describe(found, exact)}", flush=True)


if __name__ == "__main__":
    main()
