"""Compares vit segment --raw with transformers' SAM 3 on random tiny configurations, in float64.

    python tests/rings/prompts/compare_prompts.py build/release/vit [COUNT]     needs torch, transformers 5, safetensors

Prints the largest difference of each configuration, relative to the largest value of a tensor or 1, and the same of
transformers' own float32; fails where the first exceeds 3e-6 and twice the second.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import load_file
from safetensors.torch import save_file
from transformers import CLIPTokenizerFast, Sam3Config, Sam3ImageProcessor, Sam3Model, Sam3Processor

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "golden"))
from make_prompt_golden import DATA, randomize  # noqa: E402

WORDS = ["a cat", "the remote control", "dog", "photo of a horse"]


def random_config(pick):
    """Windows that divide the grid, as those of the published model, and others."""
    window, grid, patch = pick.choice([2, 3]), pick.choice([3, 4, 5, 6, 7]), pick.choice([4, 8, 14])
    dim = pick.choice([8, 16, 24, 32])
    heads = lambda width: pick.choice([h for h in (1, 2, 4) if width % h == 0])  # noqa: E731
    width = pick.choice([16, 24, 40])
    vision_heads = pick.choice([h for h in (1, 2) if width % (4 * h) == 0])
    backbone = dict(model_type="sam3_vit_model", hidden_size=width, intermediate_size=pick.choice([24, 40]),
                    num_hidden_layers=pick.choice([2, 3]), num_attention_heads=vision_heads, image_size=grid * patch,
                    patch_size=patch, window_size=window, global_attn_indexes=[pick.choice([0, 1])],
                    pretrain_image_size=pick.choice([2, 3]) * patch)
    layers = lambda: dict(hidden_size=dim, num_attention_heads=heads(dim), num_layers=pick.choice([1, 2, 3]),  # noqa: E731
                          intermediate_size=24)
    text_width = pick.choice([16, 24])
    vocabulary = len(CLIPTokenizerFast.from_pretrained(DATA / "tokenizers/clip"))
    return Sam3Config(
        vision_config=dict(backbone_config=backbone, fpn_hidden_size=dim,
                           backbone_feature_sizes=[[4 * grid] * 2, [2 * grid] * 2, [grid] * 2]),
        text_config=dict(hidden_size=text_width, intermediate_size=32, num_hidden_layers=pick.choice([1, 2]),
                         num_attention_heads=2, max_position_embeddings=32, vocab_size=vocabulary, projection_dim=8),
        geometry_encoder_config=dict(layers(), roi_size=pick.choice([3, 7])), detr_encoder_config=layers(),
        detr_decoder_config=dict(layers(), num_queries=pick.choice([1, 5, 33, 70])),
        mask_decoder_config=dict(hidden_size=dim, num_attention_heads=heads(dim), num_upsampling_stages=3)), grid * patch


def write_model(folder, config, edge, seed):
    model = randomize(Sam3Model(config))
    config.architectures = ["Sam3Model"]
    config.save_pretrained(folder)
    save_file({name: value.clone().contiguous() for name, value in model.state_dict().items()}, folder / "model.safetensors",
              {"format": "pt"})
    tokenizer = CLIPTokenizerFast.from_pretrained(DATA / "tokenizers/clip")
    Sam3Processor(image_processor=Sam3ImageProcessor(size={"height": edge, "width": edge}), tokenizer=tokenizer,
                  target_size=edge).save_pretrained(folder)
    pixels = np.random.default_rng(seed).integers(0, 256, (61, 47, 3), dtype=np.uint8)
    Image.fromarray(pixels).resize((83, 59)).save(folder / "photo.png")


def reference(folder, text, boxes, labels, dtype):
    processor = Sam3Processor.from_pretrained(folder)
    model = Sam3Model.from_pretrained(folder, dtype=dtype).eval()
    inputs = processor(images=Image.open(folder / "photo.png"), text=text, input_boxes=[boxes] if boxes else None,
                       input_boxes_labels=[labels] if boxes else None, return_tensors="pt")
    with torch.no_grad():
        return model(**{k: (v.to(dtype) if v.dtype.is_floating_point else v) for k, v in inputs.items() if k != "original_sizes"})


def compare(program, folder, pick):
    text = pick.choice(WORDS + [None])
    boxes, labels = [], []
    for _ in range(pick.choice([0, 1, 3]) if text else pick.choice([1, 2])):
        x, y = pick.uniform(0, 60), pick.uniform(0, 40)
        boxes.append([x, y, x + pick.uniform(2, 22), y + pick.uniform(2, 18)])
        labels.append(pick.choice([1, 1, 0]))
    arguments = [program, "segment", "--model", folder, folder / "photo.png", "--raw", "-o", folder / "raw.safetensors", "--quiet"]
    if text:
        arguments += ["--classes", text]
    if boxes:
        (folder / "boxes.jsonl").write_text(json.dumps({"file": str(folder / "photo.png"), "boxes": [
            {"box": box, "positive": label == 1} for box, label in zip(boxes, labels)]}) + "\n")
        arguments += ["--boxes", folder / "boxes.jsonl"]
    subprocess.run([str(a) for a in arguments], check=True, stdout=subprocess.DEVNULL)
    found = load_file(folder / "raw.safetensors")
    wide, narrow = (reference(folder, text, boxes, labels, d) for d in (torch.float64, torch.float32))
    worst, allowed = 0.0, 0.0
    names = {"class_logits.0": "pred_logits", "presence_logits.0": "presence_logits", "boxes.0": "pred_boxes",
             "mask_logits.0": "pred_masks", "semantic_logits.0": "semantic_seg"}
    for ours, theirs in names.items():
        want = getattr(wide, theirs)[0].double().numpy()
        scale = max(1.0, np.abs(want).max())
        own = np.abs(getattr(narrow, theirs)[0].double().numpy() - want).max() / scale
        error = np.abs(found[ours].astype(np.float64).reshape(want.shape) - want).max() / scale
        worst, allowed = max(worst, error), max(allowed, 2 * own)
    return worst, max(3e-6, allowed), text, len(boxes)


def main():
    program, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 40
    failed = 0
    for seed in range(count):
        pick = random.Random(seed)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            config, edge = random_config(pick)
            write_model(folder, config, edge, seed)
            worst, allowed, text, boxes = compare(program, folder, pick)
        failed += worst > allowed
        print(f"{seed:3} {'ok  ' if worst <= allowed else 'FAIL'} {worst:.2e} of {allowed:.2e}  {text}, {boxes} boxes", flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
