"""What one server holds on this machine: images an hour and memory by model size and precision, from `vit bench --serve` on models
of random weights, whose speed is that of trained ones.

    python capacity.py --vit build/release/vit --folder FOLDER          print the table (a quarter of an hour; needs torch and timm)
    python capacity.py --vit build/release/vit --folder FOLDER --write  and put it into measurements.md

The machine should be idle. The clients run on it as well and take a part of its time: what they send is the cost of base64 and
sockets, not of decoding.
"""

import argparse
import datetime
import json
import subprocess
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "measurements.md"
BEGIN, END = "<!-- capacity.py: begin -->\n", "<!-- capacity.py: end -->\n"
MODELS = ("vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224", "vit_large_patch16_224")


def make_model(name, folder):
    """A folder as timm uploads one, with random weights."""
    if (folder / "model.safetensors").exists():
        return
    import timm
    from safetensors.torch import save_file
    folder.mkdir(parents=True, exist_ok=True)
    model = timm.create_model(name, pretrained=False)
    save_file(model.state_dict(), folder / "model.safetensors")
    wanted = ("input_size", "interpolation", "crop_pct", "mean", "std", "fixed_input_size", "first_conv", "classifier")
    config = {k: v for k, v in model.pretrained_cfg.items() if k in wanted}
    (folder / "config.json").write_text(
        json.dumps({"architecture": name, "num_classes": model.num_classes, "num_features": model.num_features, "pretrained_cfg": config}))


def measure(options, name, dtype):
    folder = options.folder / name
    make_model(name, folder)
    return json.loads(
        subprocess.run([options.vit, "bench", "--serve", "--model", folder, "--dtype", dtype, "--clients", str(options.clients),
                        "--seconds", str(options.seconds), "--threads", str(options.threads), "--json"],
                       check=True, stdout=subprocess.PIPE, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", default="build/release/vit", type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--dtypes", default="float32,bfloat16,int8")
    parser.add_argument("--clients", default=8, type=int)
    parser.add_argument("--seconds", default=20, type=float)
    parser.add_argument("--threads", default=0, type=int)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    machine = json.loads(subprocess.run([options.vit, "info", "--json"], check=True, stdout=subprocess.PIPE, text=True).stdout)
    lines = ["| model | precision | images/s | images an hour | p50, p99 ms | MiB idle | MiB at work |", "|---|---|---|---|---|---|---|"]
    for name in options.models.split(","):
        for dtype in options.dtypes.split(","):
            found = measure(options, name, dtype)
            lines.append(f"| {name} | {dtype} | {found['images_per_second']:.1f} | {round(found['images_per_hour']):,} | "
                         f"{found['p50_ms']:.0f}, {found['p99_ms']:.0f} | {found['idle_mib']:.0f} | {found['most_mib']:.0f} |")
            print(lines[-1], flush=True)
    cpu = machine["cpu"]["name"] if isinstance(machine.get("cpu"), dict) else machine.get("cpu", "")
    text = (f"{datetime.date.today()}, {cpu}, {found['threads']} threads, {options.clients} clients of one image a request.\n\n" +
            "\n".join(lines) + "\n")
    print(text)
    if options.write:
        page = PAGE.read_text()
        begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:begin] + text + page[end:])


if __name__ == "__main__":
    main()
