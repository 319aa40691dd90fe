"""SAM 3 of published size with drawn weights, on one image of 1008 x 1008 and one phrase: `vit bench --phrase` and transformers by turns.

    python apps/bench/compare/prompts.py --vit build/release/vit --rounds 2

Needs torch and transformers (Sam3Model). Prints the seconds of a look at the image and of a phrase for both, in float32, medians of the rounds.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

# tokenizers.py next to this file has the name of a package that transformers needs.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]


def of_vit(options):
    run = subprocess.run([options.vit, "bench", "--architecture", "sam3", "--phrase", "yellow bus", "--dtype", "float32", "--threads", str(options.threads),
                          "--seconds", str(options.seconds)], capture_output=True, text=True, check=True)
    found = re.search(r"image (\d+) ms  further phrase (\d+) ms", run.stdout)
    return [int(found[1]) / 1e3, int(found[2]) / 1e3, int(re.search(r"peak (\d+) MiB", run.stdout)[1])]


def of_torch(model, torch):
    config = model.config
    image = torch.randn(1, 3, 1008, 1008)
    ids = torch.randint(1, 1000, (1, config.text_config.max_position_embeddings))
    start = time.perf_counter()
    vision = model.get_vision_features(image)
    seen = time.perf_counter()
    model(vision_embeds=vision, input_ids=ids, attention_mask=torch.ones_like(ids))
    return [seen - start, time.perf_counter() - seen]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="of a round of vit bench")
    options = parser.parse_args()
    import torch
    import transformers
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    model = transformers.Sam3Model(transformers.Sam3Config()).eval()
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(of_vit(options))
        theirs.append(of_torch(model, torch))
    ours, theirs = ([statistics.median(values) for values in zip(*runs)] for runs in (ours, theirs))
    peak = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    print("| | image, s | phrase, s | both, torch / vit | peak, MiB |\n|---|---|---|---|---|")
    print(f"| vit | {ours[0]:.1f} | {ours[1]:.2f} | | {ours[2]} |")
    print(f"| torch {torch.__version__} | {theirs[0]:.1f} | {theirs[1]:.2f} | {sum(theirs) / (ours[0] + ours[1]):.2f} | {peak} |")


if __name__ == "__main__":
    main()
