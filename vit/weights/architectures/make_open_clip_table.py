"""Writes open_clip_table.inc: the models of OpenCLIP and torchvision by the names that these libraries have for them.

    python make_open_clip_table.py FOLDER    # open_clip/model_configs of an installed or unpacked open_clip_torch

Towers of OpenCLIP's own become rows; those of timm, names that stand for timm's. Models whose image tower is no plain
Vision Transformer are left out, as are those that timm's own table does not have.
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
OTHER_TOWERS = re.compile(r"convnext|fastvit|vitamin|swin|relpos|enormous")
# OpenAI's own names, which have another activation than OpenCLIP's default.
OPENAI = {
    "ViT-B/16": "vit_base_patch16_clip_quickgelu_224",
    "ViT-B/32": "vit_base_patch32_clip_quickgelu_224",
    "ViT-L/14": "vit_large_patch14_clip_quickgelu_224",
    "ViT-L/14@336px": "vit_large_patch14_clip_quickgelu_336",
}
# torchvision/models/vision_transformer.py: patch, width, depth, heads, hidden width / width, image
TORCHVISION = {
    "vit_b_16": (16, 768, 12, 12, 4.0, 224),
    "vit_b_32": (32, 768, 12, 12, 4.0, 224),
    "vit_h_14": (14, 1280, 32, 16, 4.0, 518),
    "vit_l_16": (16, 1024, 24, 16, 4.0, 224),
    "vit_l_32": (32, 1024, 24, 16, 4.0, 224),
}


def number(value):
    return repr(float(value)) if isinstance(value, float) else str(value)


def row(name, family, library, args, rest):
    members = ", ".join(f".{key} = {value}" for key, value in args.items())
    return f'    {{.name = "{name}", .family = "{family}", .library = "{library}",\n     .args = {{{members}}},\n     {rest}}},\n'


def own_tower(name, config):
    vision = config["vision_cfg"]
    width = vision["width"]
    args = {"image_height": vision["image_size"], "image_width": vision["image_size"], "patch_size": vision["patch_size"],
            "embed_dim": width, "depth": vision["layers"], "num_heads": width // vision.get("head_width", 64)}  # fmt: skip
    if "mlp_ratio" in vision:
        args["mlp_ratio"] = number(vision["mlp_ratio"])
    args["num_classes"] = config["embed_dim"]
    if vision.get("pool_type") == "avg":
        args["global_pool"] = "TimmPool::avg"
    if "ls_init_value" in vision:
        args["layer_scale"] = "true"
    if not vision.get("no_ln_pre"):
        args["pre_norm"] = "true"
    args["fc_norm"] = "true" if vision.get("final_ln_after_pool") else "false"
    if config.get("quick_gelu"):
        args["activation"] = "Activation::quick_gelu"
    args["norm_eps"] = "1e-5"
    return row(name, "clip", "OpenCLIP", args, ".mean = kClipMean, .std = kClipStd, .crop_pct = 1.0")


def torchvision_row(name):
    patch, width, depth, heads, ratio, image = TORCHVISION[name]
    args = {"image_height": image, "image_width": image, "patch_size": patch, "embed_dim": width, "depth": depth,
            "num_heads": heads, "mlp_ratio": number(ratio)}  # fmt: skip
    rest = ".crop_pct = 0.875, .filter = ResizeFilter::bilinear" if image == 224 else ".crop_pct = 1.0"
    return row(name, "vit", "torchvision", args, rest)


def main(folder):
    known = set(re.findall(r'\.name = "([^"]+)"', (HERE / "table.inc").read_text(encoding="utf-8")))
    rows = {name: torchvision_row(name) for name in TORCHVISION}
    names = dict(OPENAI)
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        config = json.loads(path.read_text(encoding="utf-8"))
        vision = config["vision_cfg"]
        name = path.stem
        if "multimodal_cfg" in config or isinstance(vision.get("layers"), list) or name in known:
            continue
        timm_name = vision.get("timm_model_name")
        if timm_name is None:
            rows[name] = own_tower(name, config)
        elif timm_name in known and not OTHER_TOWERS.search(timm_name):
            names[name] = timm_name
    text = "// Written by make_open_clip_table.py from open_clip's model_configs; not to be edited.\n// clang-format off\n\n"
    text += "// Sorted by name.\nconstexpr Architecture kNeighbors[] = {\n" + "".join(rows[name] for name in sorted(rows))
    text += "};\n\n// Models with a tower of timm's, and OpenAI's names. Sorted by name.\nconstexpr FormerName kNeighborNames[] = {\n"
    text += "".join(f'    {{"{name}", "{names[name]}"}},\n' for name in sorted(names)) + "};\n// clang-format on\n"
    (HERE / "open_clip_table.inc").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
