#!/usr/bin/env python3
"""Tiny models of boxes and keypoints and transformers' results for pictures with them: data/golden/boxes.

Weights are random and of this project. Needs torch, torchvision, transformers, scipy, Pillow and safetensors:

    python3 tests/golden/make_boxes_golden.py [FOLDER [SEED]]

With a FOLDER models of other sizes and settings, chosen by SEED, are made there.
"""
import json
import pathlib
import sys

import numpy as np
import torch
import transformers
from PIL import Image
from safetensors.numpy import save_file
from transformers import (CLIPTokenizer, DeformableDetrImageProcessor, LwDetrConfig, LwDetrForObjectDetection, LwDetrViTConfig,
                          RfDetrConfig, RfDetrDinov2Config, RfDetrForObjectDetection, RfDetrImageProcessor, Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor, Owlv2Processor,
                          OwlViTConfig, OwlViTForObjectDetection, OwlViTImageProcessor, OwlViTProcessor, VitPoseConfig,
                          VitPoseForPoseEstimation, VitPoseImageProcessor, YolosConfig, YolosForObjectDetection,
                          YolosImageProcessor)

ROOT = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden" / "boxes"
WORDS = ["a cat", "the remote control", "dog"]
LABELS = ["person", "bicycle", "car"]


def picture(random, height, width):
    """Colors that change slowly and quickly, so that every filter shows."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [127 + 90 * np.sin(x / (3 + c) + y / (7 - c)) + 25 * random.standard_normal((height, width)) for c in range(3)]
    return Image.fromarray(np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8))


def randomize(model, seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if not value.is_floating_point():
                continue
            if "running_var" in name:
                value.copy_(0.5 + torch.rand_like(value))
            elif "norm" in name and name.endswith("weight"):
                value.copy_(1 + 0.2 * torch.randn_like(value))
            elif value.dim() >= 2 and "embedding" not in name and "token" not in name:
                fan = value[0].numel() if "deconv" not in name else value.shape[0] * 4
                value.copy_(torch.randn_like(value) * 1.3 / fan ** 0.5)
            else:
                value.copy_(0.4 * torch.randn_like(value))
    return model.eval()


def tokenizer(folder):
    """A vocabulary of single bytes and a few pairs, in CLIP's files."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = [chr(byte) for byte in shown] + [chr(256 + i) for i in range(len(hidden))]
    merges = [("c", "a"), ("ca", "t</w>"), ("t", "h"), ("th", "e</w>")]
    vocab = letters + [letter + "</w>" for letter in letters] + ["".join(pair) for pair in merges]
    vocab += ["<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(vocab)}) + "\n")
    (folder / "merges.txt").write_text("#version: 0.2\n" + "\n".join(" ".join(pair) for pair in merges) + "\n")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "CLIPTokenizer", "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
         "unk_token": "<|endoftext|>", "pad_token": "!", "model_max_length": 16, "do_lower_case": True}) + "\n")
    return CLIPTokenizer.from_pretrained(folder), len(vocab)


def rows(results):
    return np.array([[label, score, *box] for label, score, box in
                     zip(results["labels"].tolist(), results["scores"].tolist(), results["boxes"].tolist())],
                    dtype=np.float32).reshape(-1, 6)


def finish(folder, model, processor, pictures, results):
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    for name, image in pictures.items():
        image.save(folder / f"{name}.png")
    save_file({name: np.ascontiguousarray(value.detach().numpy() if torch.is_tensor(value) else value)
               for name, value in results.items()}, folder / "expected.safetensors")


def yolos(folder, seed, pictures, **settings):
    options = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24,
               "image_size": [48, 32], "patch_size": 16, "num_detection_tokens": 5, "use_mid_position_embeddings": True}
    size = settings.pop("size", {"shortest_edge": 33, "longest_edge": 42})
    options.update(settings)
    model = randomize(YolosForObjectDetection(YolosConfig(id2label=dict(enumerate(LABELS)), **options)), seed)
    processor = YolosImageProcessor(size=size)
    results = {}
    for name, image in pictures.items():
        inputs = processor(images=image, return_tensors="pt")
        out = model(pixel_values=inputs["pixel_values"])
        found = processor.post_process_object_detection(out, threshold=0.3, target_sizes=[image.size[::-1]])[0]
        results.update({f"{name}.pixels": inputs["pixel_values"], f"{name}.logits": out.logits[0],
                        f"{name}.boxes": out.pred_boxes[0], f"{name}.detected": rows(found)})
    finish(folder, model, processor, pictures, results)


def query_boxes(folder, seed, pictures, windowed_dinov2, edge=32, **settings):
    """RF-DETR, or LW-DETR with maps of two sizes. No two scores are so near that rounding changes their order."""
    options = {"d_model": 16, "decoder_ffn_dim": 24, "decoder_layers": 2, "decoder_self_attention_heads": 2,
               "decoder_cross_attention_heads": 4, "decoder_n_points": 2, "c2f_num_blocks": 1, "num_queries": 5, "group_detr": 2,
               "id2label": dict(enumerate(LABELS))}
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "mlp_ratio": 2, "image_size": 24, "patch_size": 4,
             "out_indices": [1, 3]}
    options.update(settings)
    if windowed_dinov2:
        options["backbone_config"] = RfDetrDinov2Config(num_windows=2, **sizes)
        kinds = RfDetrConfig, RfDetrForObjectDetection, RfDetrImageProcessor
    else:
        options["backbone_config"] = LwDetrViTConfig(pretrain_image_size=20, num_windows=4, window_block_indices=[0, 2],
                                                     **{**sizes, "image_size": 32})
        options["projector_scale_factors"] = [2.0, 0.5]
        kinds = LwDetrConfig, LwDetrForObjectDetection, DeformableDetrImageProcessor
    model = randomize(kinds[1](kinds[0](**options)), seed)
    for name, value in model.named_parameters():
        if "bbox_embed.layers.2" in name or "embed.0.layers.2" in name or "reference_point_embed" in name:
            value.mul_(0.2)
    processor = kinds[2](size={"height": edge, "width": edge}, do_pad=False)
    results = {}
    for name, image in pictures.items():
        inputs = processor(images=image, return_tensors="pt")
        out = model(pixel_values=inputs["pixel_values"])
        found = processor.post_process_object_detection(out, threshold=0.3, target_sizes=[image.size[::-1]])[0]
        scores = found["scores"]
        if len(scores) < 2 or (scores[:-1] - scores[1:]).min() < 1e-4 or ((out.logits.sigmoid() - 0.3).abs() < 1e-4).any():
            return False
        results.update({f"{name}.pixels": inputs["pixel_values"], f"{name}.logits": out.logits[0],
                        f"{name}.boxes": out.pred_boxes[0], f"{name}.detected": rows(found)})
    finish(folder, model, processor, pictures, results)
    return True


def stable_query_boxes(folder, seed, *arguments, **settings):
    while not query_boxes(folder, seed, *arguments, **settings):
        seed += 100


def owl(folder, seed, pictures, second, **settings):
    words, vocabulary = tokenizer(folder)
    image_size = settings.pop("image_size", 32)
    text = {"vocab_size": vocabulary, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
            "num_attention_heads": 2, "max_position_embeddings": 16, "bos_token_id": vocabulary - 2,
            "eos_token_id": vocabulary - 1}
    vision = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3, "num_attention_heads": 2,
              "image_size": image_size, "patch_size": 8}
    vision.update(settings)
    kinds = ((Owlv2Config, Owlv2ForObjectDetection, Owlv2ImageProcessor, Owlv2Processor) if second else
             (OwlViTConfig, OwlViTForObjectDetection, OwlViTImageProcessor, OwlViTProcessor))
    model = randomize(kinds[1](kinds[0](text_config=text, vision_config=vision, projection_dim=16)), seed)
    images = kinds[2](size={"height": image_size, "width": image_size})
    processor = kinds[3](images, words)
    results = {}
    for name, image in pictures.items():
        inputs = processor(text=[WORDS], images=image, return_tensors="pt")
        out = model(**inputs)
        found = processor.post_process_grounded_object_detection(out, threshold=0.3, target_sizes=[image.size[::-1]])[0]
        results.update({f"{name}.pixels": inputs["pixel_values"], f"{name}.logits": out.logits[0],
                        f"{name}.boxes": out.pred_boxes[0], f"{name}.detected": rows(found)})
        if second:
            results[f"{name}.objectness"] = out.objectness_logits[0]
        results["input_ids"] = inputs["input_ids"].to(torch.int32)
        results["text_embeds"] = out.text_embeds[0]
    finish(folder, model, processor, pictures, results)


def vitpose(folder, seed, pictures, boxes, simple=True, experts=1, expert=0, size=(24, 16), **settings):
    backbone = {"model_type": "vitpose_backbone", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                "mlp_ratio": 2, "image_size": list(size), "patch_size": [8, 8], "out_indices": [2],
                "num_experts": experts, "part_features": 4}
    backbone.update(settings)
    backbone["out_indices"] = [backbone["num_hidden_layers"]]
    config = VitPoseConfig(backbone_config=backbone, use_simple_decoder=simple, scale_factor=4,
                           id2label={i: name for i, name in enumerate(["nose", "left eye", "right eye", "neck"])})
    model = VitPoseForPoseEstimation(config)
    if not simple:  # the library has 256 channels fixed, which is too much for a small file
        decoder, width = model.head, backbone["hidden_size"]
        decoder.deconv1 = torch.nn.ConvTranspose2d(width, 6, 4, 2, 1, bias=False)
        decoder.batchnorm1, decoder.batchnorm2 = torch.nn.BatchNorm2d(6), torch.nn.BatchNorm2d(6)
        decoder.deconv2 = torch.nn.ConvTranspose2d(6, 6, 4, 2, 1, bias=False)
        decoder.conv = torch.nn.Conv2d(6, 4, 1)
    model = randomize(model, seed)
    processor = VitPoseImageProcessor(size={"height": size[0], "width": size[1]})
    index = {} if experts == 1 else {"dataset_index": None}
    results, lines = {}, []
    for name, image in pictures.items():
        own = boxes[name]
        for kind, given in (("", own), ("whole.", [[0.0, 0.0, float(image.width), float(image.height)]])):
            # one box a call: the library lets the boxes of a batch touch each other where a map has no peak
            for number, box in enumerate(given):
                inputs = processor(image, boxes=[[box]], return_tensors="pt")
                if experts > 1:
                    index["dataset_index"] = torch.tensor([expert])
                out = model(pixel_values=inputs["pixel_values"], **index)
                if not is_stable(processor, out, box):
                    return False
                pose = processor.post_process_pose_estimation(out, boxes=[[box]])[0][0]
                key = f"{name}.{kind}{number}."
                results.update({key + "pixels": inputs["pixel_values"], key + "heatmaps": out.heatmaps[0],
                                key + "keypoints": torch.cat([pose["keypoints"], pose["scores"][:, None]], 1)})
        lines.append(json.dumps({"file": f"{name}.png",
                                 "boxes": [{"label": "person", "box": [x, y, x + w, y + h]} for x, y, w, h in own]}))
    finish(folder, model, processor, pictures, results)
    (folder / "boxes.jsonl").write_text("\n".join(lines) + "\n")
    return True


def is_stable(processor, out, box):
    """Whether rounding of the heat maps moves no keypoint: where a map is flat, a Newton step amplifies it."""
    def points(scale):
        moved = transformers.utils.ModelOutput(heatmaps=out.heatmaps * scale)
        return processor.post_process_pose_estimation(moved, boxes=[[box]])[0][0]["keypoints"]

    noise = 1 + 1e-6 * torch.randn(out.heatmaps.shape, generator=torch.Generator().manual_seed(1))
    return bool((points(noise) - points(1.0)).abs().max() < 3e-4)


def stable_vitpose(folder, seed, *arguments, **settings):
    while not vitpose(folder, seed, *arguments, **settings):
        seed += 100


def main():
    transformers.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    if len(sys.argv) == 1:
        random = np.random.default_rng(5)
        pictures = {"wide": picture(random, 40, 54), "high": picture(random, 33, 26)}
        boxes = {"wide": [[10.5, 4.25, 21.0, 30.0], [-6.0, 15.0, 30.0, 12.5]], "high": [[3.0, 2.0, 20.0, 26.0]]}
        yolos(ROOT / "yolos", 1, pictures)
        owl(ROOT / "owlv2", 2, pictures, True)
        owl(ROOT / "owlvit", 3, pictures, False)
        stable_query_boxes(ROOT / "rf-detr", 6, pictures, True)
        stable_query_boxes(ROOT / "lw-detr", 7, pictures, False)
        stable_vitpose(ROOT / "vitpose", 4, pictures, boxes)
        stable_vitpose(ROOT / "vitpose-plus", 5, pictures, boxes, simple=False, experts=3, expert=1)
        return
    root, seed = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    random = np.random.default_rng(seed)
    sizes = [tuple(int(edge) for edge in random.integers(20, 260, 2)) for _ in range(4)]
    pictures = {f"p{i}": picture(random, *size) for i, size in enumerate(sizes)}
    boxes = {name: [[float(value) for value in
                     (*random.uniform(-10, 0.6 * min(image.size), 2), *random.uniform(8, max(image.size), 2))]
                    for _ in range(3)] for name, image in pictures.items()}
    yolos(root / "yolos", seed, pictures, hidden_size=32, num_attention_heads=4, num_hidden_layers=4,
          image_size=[int(16 * e) for e in random.integers(2, 7, 2)], num_detection_tokens=int(random.integers(1, 12)),
          size={"shortest_edge": int(random.integers(40, 120)), "longest_edge": int(random.integers(100, 200))})
    yolos(root / "yolos-flat", seed, pictures, use_mid_position_embeddings=False, patch_size=8, qkv_bias=False,
          size={"height": 40, "width": 64})
    owl(root / "owlv2", seed, pictures, True, image_size=int(16 * random.integers(2, 7)), hidden_size=32, patch_size=16)
    owl(root / "owlv2-small", seed, pictures, True, image_size=30, patch_size=10)
    owl(root / "owlvit", seed, pictures, False, image_size=int(8 * random.integers(3, 9)), patch_size=8)
    stable_query_boxes(root / "rf-detr", seed, pictures, True, edge=int(8 * random.integers(3, 12)), num_queries=int(random.integers(2, 30)))
    stable_query_boxes(root / "lw-detr", seed, pictures, False, edge=int(8 * random.integers(3, 12)), attention_bias=False)
    stable_vitpose(root / "vitpose", seed, pictures, boxes, size=(64, 48), hidden_size=32, patch_size=[16, 16], num_hidden_layers=3)
    stable_vitpose(root / "vitpose-plus", seed, pictures, boxes, experts=4, expert=2, part_features=12, size=(48, 64))
    stable_vitpose(root / "vitpose-classic", seed, pictures, boxes, simple=False, qkv_bias=False)


if __name__ == "__main__":
    main()
