"""Dense heads of random weights, of many configurations, compared with transformers: what the model gives (--raw) and what its
post-processing makes of it, for images of several sizes.

    python tests/rings/dense/compare_heads.py --vit build/release/vit [--work FOLDER] [--only NAME...] [--seeds 2]

Needs torch, torchvision, transformers and Pillow; no downloads. Stops with exit code 1 if anything differs by more than 2e-5 of
the largest value, or a class or segment by a pixel whose scores are not nearly equal.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers as tr
from PIL import Image

LIMIT = 2e-5
SIZES = [(73, 54), (43, 65), (94, 39), (160, 121), (31, 200)]  # width, height
CLASSES = {i: f"class {i}" for i in range(7)}


def randomize(model, seed, scale=0.25):
    """Weights at which outputs differ: norms near 1, the rest of some size."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if not tensor.is_floating_point() or any(part in name for part in ("attn_mask_probs", "inv_freq", "box_bias")):
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            if "running_var" in name:
                tensor.copy_(0.5 + noise.abs())
            elif tensor.ndim == 1 and ("weight" in name or "lambda" in name or "gamma" in name):
                tensor.copy_(1 + 0.2 * noise)
            elif tensor.ndim >= 2:
                fan = tensor[0].numel()
                tensor.copy_(noise * max(scale, 1.2 / fan**0.5))
            else:
                tensor.copy_(0.1 * noise)
    return model.eval()


def image_of(size, seed):
    """Smooth shapes with noise, so that resizing and heads have something to do."""
    random = np.random.default_rng(seed)
    small = random.integers(0, 256, (max(3, size[1] // 9), max(3, size[0] // 9), 3), dtype=np.uint8)
    big = np.asarray(Image.fromarray(small).resize(size, Image.Resampling.BICUBIC), np.int16)
    return Image.fromarray(np.clip(big + random.integers(-20, 21, big.shape), 0, 255).astype(np.uint8))


def vit(options, *words):
    done = subprocess.run([options.vit, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


class Case:
    """A folder with a model, its processor, and images."""

    def __init__(self, options, name, model, processor, seed):
        self.options, self.name, self.model, self.processor = options, name, model, processor
        self.folder = options.work / name
        self.folder.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(self.folder)
        processor.save_pretrained(self.folder)
        self.images = []
        for number, size in enumerate(SIZES):
            path = self.folder / f"image{number}.png"
            image_of(size, seed + number).save(path)
            self.images.append((path, Image.open(path).convert("RGB")))
        self.problems = []
        self.worst = 0.0

    def near(self, what, found, expected, limit=LIMIT):
        found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
        if found.size != expected.size:
            return self.problems.append(f"{what}: shape {found.shape}, expected {expected.shape}")
        if found.size == 0:
            return None
        off = np.abs(found.reshape(expected.shape) - expected).max() / max(np.abs(expected).max(), 1e-3)
        self.worst = max(self.worst, off / limit * LIMIT)
        if not off <= limit:
            self.problems.append(f"{what}: differs by {off:.2g}")
        return None

    def same(self, what, found, expected, unsure=None):
        found, expected = np.asarray(found), np.asarray(expected)
        if found.shape != expected.shape:
            return self.problems.append(f"{what}: shape {found.shape}, expected {expected.shape}")
        other = found != expected
        if unsure is not None:
            other &= ~unsure
        if other.any():
            self.problems.append(f"{what}: {other.sum()} of {other.size} differ")
        return None

    def arrays(self, command, path, *words):
        out = self.folder / "out.npz"
        lines = vit(self.options, command, "--model", self.folder, path, "--output", out, "--format", "json", *words)
        return np.load(out), [json.loads(line) for line in lines.splitlines()]


# ------------------------------------------------------------------------------------------------ depth


def check_depth(case):
    for path, image in case.images:
        inputs = case.processor(images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = case.model(**inputs)
        raw, _ = case.arrays("depth", path, "--raw")
        case.near(f"{path.name} raw", raw["depth.0"], outputs.predicted_depth[0])
        found, lines = case.arrays("depth", path)
        expected = case.processor.post_process_depth_estimation(outputs, target_sizes=[(image.height, image.width)])[0]
        case.near(f"{path.name} depth", found["depth.0"], expected["predicted_depth"])
        case.near(f"{path.name} max", [lines[0]["max"]], [expected["predicted_depth"].max()])


def dpt_processor(size, multiple, **more):
    return tr.DPTImageProcessor(size=size, keep_aspect_ratio=True, ensure_multiple_of=multiple,
                                image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225], **more)


def depth_anything(seed, **changes):
    backbone = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 5, "image_size": 56, "patch_size": 14,
                "out_indices": [1, 2, 4, 5], "apply_layernorm": True, "reshape_hidden_states": False, "mlp_ratio": 2}
    backbone.update(changes.pop("backbone", {}))
    values = {"reassemble_hidden_size": backbone["hidden_size"], "patch_size": backbone["patch_size"],
              "neck_hidden_sizes": [6, 9, 12, 15], "fusion_hidden_size": 10, "head_hidden_size": 32}
    values.update(changes)
    kind = tr.Dinov2WithRegistersConfig if "num_register_tokens" in backbone else tr.Dinov2Config
    model = tr.DepthAnythingForDepthEstimation(tr.DepthAnythingConfig(backbone_config=kind(**backbone), **values))
    randomize(model, seed)
    with torch.no_grad():
        model.head.conv3.bias.fill_(1.5)
        if changes.get("depth_estimation_type") == "metric":  # away from the flat ends of the sigmoid
            model.head.conv3.weight.mul_(0.02)
    return model


def prompt_depth_anything(seed, **changes):
    """Without a prompt."""
    plain = depth_anything(seed, **changes)
    config = tr.PromptDepthAnythingConfig(**{key: value for key, value in plain.config.to_dict().items() if key != "model_type"})
    model = randomize(tr.PromptDepthAnythingForDepthEstimation(config), seed)
    model.load_state_dict(plain.state_dict(), strict=False)
    return model


def prompt_processor():
    return tr.PromptDepthAnythingImageProcessor(size={"height": 56, "width": 56}, keep_aspect_ratio=True, ensure_multiple_of=14,
                                                image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])


def dpt(seed, **changes):
    values = {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 5, "intermediate_size": 64, "image_size": 48,
              "patch_size": 16, "backbone_out_indices": [0, 1, 3, 4], "neck_hidden_sizes": [6, 8, 10, 12],
              "fusion_hidden_size": 12, "is_hybrid": False, "num_labels": 7, "id2label": CLASSES}
    values.update(changes)
    return randomize(tr.DPTForDepthEstimation(tr.DPTConfig(**values)), seed)


def dpt_dinov2(seed, **changes):
    backbone = tr.Dinov2Config(hidden_size=40, num_attention_heads=2, num_hidden_layers=5, image_size=70, patch_size=14,
                               out_indices=[1, 3, 4, 5], apply_layernorm=False, reshape_hidden_states=False,
                               use_swiglu_ffn=changes.pop("swiglu", False))
    values = {"neck_hidden_sizes": [5, 10, 20, 40], "fusion_hidden_size": 256, "use_bias_in_fusion_residual": False,
              "add_projection": True, "is_hybrid": False, "readout_type": "project", "hidden_size": 40}
    values.update(changes)
    return randomize(tr.DPTForDepthEstimation(tr.DPTConfig(backbone_config=backbone, **values)), seed)


# ------------------------------------------------------------------------------------------------ segments


def check_segments(case, windows=False):
    size = case.processor.size["shortest_edge"]
    for path, image in case.images:
        target = [(image.height, image.width)]
        inputs = case.processor(images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = case.model(inputs["pixel_values"])
        outputs.patch_offsets = inputs.get("patch_offsets")
        if windows:
            found, _ = case.arrays("segment", path, "--task", "semantic")
            expected, scores = semantic_of(case, outputs, target)
            unsure = (scores[0] - scores[1] < 1e-4 * scores[0].abs().max()).numpy()
            case.same(f"{path.name} semantic", found["segmentation.0"], expected, unsure)
            continue
        raw, _ = case.arrays("segment", path, "--raw")
        case.near(f"{path.name} masks", raw["mask_logits.0"], outputs.masks_queries_logits[0])
        case.near(f"{path.name} classes", raw["class_logits.0"], outputs.class_queries_logits[0])
        # pixels near a threshold of any query may go to either side
        pixels = torch.nn.functional.interpolate(outputs.masks_queries_logits, size=(size, size), mode="bilinear")
        masks = case.processor.unpad_image(pixels, target, case.processor.size)[0]
        close = (masks.abs() < 1e-4 * masks.abs().max()).any(0).numpy()
        for task in ("panoptic", "instance"):
            words = ["--task", task, "--threshold", 0.2]
            more = {"threshold": 0.2}
            if task == "panoptic":
                words += ["--overlap", 0.3, "--mask-threshold", 0.5, "--stuff", "0,2,5"]
                more |= {"overlap_mask_area_threshold": 0.3, "stuff_classes": [0, 2, 5]}
            call = getattr(case.processor, f"post_process_{task}_segmentation")
            expected = call(outputs, target_sizes=target, **more)[0]
            found, lines = case.arrays("segment", path, *words)
            segments = lines[0]["segments"]
            infos = expected["segments_info"]
            if [(s["id"], s["index"]) for s in segments] != [(s["id"], s["label_id"]) for s in infos]:
                case.problems.append(f"{path.name} {task}: segments {segments} against {infos}")
                continue
            case.near(f"{path.name} {task} scores", [s["score"] for s in segments], [s["score"] for s in infos], 1e-3)
            case.same(f"{path.name} {task}", found["segmentation.0"], expected["segmentation"].numpy().astype(int), close)


def semantic_of(case, outputs, target):
    found = case.processor.post_process_semantic_segmentation(outputs, target_sizes=target, return_segmentation_scores=True)[0]
    scores = torch.as_tensor(found["segmentation_scores"] if isinstance(found, dict) else found.segmentation_scores)
    segmentation = found["segmentation"] if isinstance(found, dict) else found.segmentation
    return segmentation.numpy(), scores.topk(2, dim=0).values


def eomt(seed, dinov3=False, masked=False, **changes):
    values = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 5, "mlp_ratio": 2, "image_size": 96,
              "patch_size": 16, "num_queries": 13, "num_blocks": 3, "num_upscale_blocks": 2, "num_register_tokens": 2,
              "id2label": CLASSES}
    if dinov3:
        values["intermediate_size"] = 96
    values.update(changes)
    kind = ((tr.EomtDinov3Config, tr.EomtDinov3ForUniversalSegmentation) if dinov3 else
            (tr.EomtConfig, tr.EomtForUniversalSegmentation))
    model = randomize(kind[1](kind[0](**values)), seed, 0.1)
    with torch.no_grad():
        model.attn_mask_probs.fill_(1.0 if masked else 0.0)
        model.class_predictor.weight.mul_(3)
    return model


def eomt_processor(size, windows=False):
    if windows:
        return tr.EomtImageProcessor(size={"shortest_edge": size, "longest_edge": None}, do_split_image=True, do_pad=False)
    return tr.EomtImageProcessor(size={"shortest_edge": size, "longest_edge": size}, do_split_image=False, do_pad=True)


def check_classes(case):
    """A class of each pixel."""
    for path, image in case.images:
        inputs = case.processor(images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = case.model(**inputs)
        raw, _ = case.arrays("segment", path, "--raw")
        case.near(f"{path.name} logits", raw["logits.0"], outputs.logits[0])
        found, _ = case.arrays("segment", path)
        full = torch.nn.functional.interpolate(outputs.logits, size=(image.height, image.width), mode="bilinear")[0]
        best = full.topk(2, dim=0).values
        case.same(f"{path.name} classes", found["segmentation.0"], full.argmax(0).numpy(),
                  (best[0] - best[1] < 1e-4 * full.abs().max()).numpy())


# ------------------------------------------------------------------------------------------------ boxes


def check_boxes(case, sorts):
    """Boxes with their classes. `sorts`: the best come first, and are compared in their order only where no two scores are nearly equal."""
    for path, image in case.images:
        inputs = case.processor(images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = case.model(inputs["pixel_values"])
        raw, _ = case.arrays("detect", path, "--raw")
        case.near(f"{path.name} logits", raw["logits.0"], outputs.logits[0])
        case.near(f"{path.name} raw boxes", raw["boxes.0"], outputs.pred_boxes[0])
        expected = case.processor.post_process_object_detection(outputs, threshold=0.2, target_sizes=[(image.height, image.width)])[0]
        found, _ = case.arrays("detect", path, "--threshold", 0.2)
        case.near(f"{path.name} scores", found["scores.0"], expected["scores"])
        if sorts and (expected["scores"][:-1] - expected["scores"][1:] < 1e-4).any():
            continue
        case.near(f"{path.name} boxes", found["boxes.0"], expected["boxes"])
        case.same(f"{path.name} labels", found["classes.0"], expected["labels"].numpy())


def check_yolos(case):
    check_boxes(case, sorts=False)


def yolos(seed, **changes):
    values = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 4, "intermediate_size": 96, "image_size": [64, 80],
              "patch_size": 16, "num_detection_tokens": 11, "use_mid_position_embeddings": True, "id2label": CLASSES}
    values.update(changes)
    return randomize(tr.YolosForObjectDetection(tr.YolosConfig(**values)), seed, 0.15)


def check_detr(case):
    check_boxes(case, sorts=True)


def query_boxes(model, seed):
    """Random weights with boxes that stay near the image, and scores of pixels that differ."""
    randomize(model, seed, 0.15)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if "bbox_embed" in name and "layers.2" in name:
                tensor.mul_(0.2)
            if "sampling_offsets" in name or "reference_point_embed" in name:
                tensor.mul_(0.5)
    return model


QUERIES = {"d_model": 32, "decoder_ffn_dim": 40, "decoder_layers": 2, "decoder_self_attention_heads": 4,
           "decoder_cross_attention_heads": 2, "num_queries": 9, "group_detr": 2, "id2label": CLASSES}


def rf_detr(seed, kind=tr.RfDetrForObjectDetection, **changes):
    backbone = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 5, "mlp_ratio": 2, "image_size": 64, "patch_size": 8,
                "num_windows": 2, "out_indices": [2, 5]}
    backbone.update(changes.pop("backbone", {}))
    config = tr.RfDetrConfig(backbone_config=tr.RfDetrDinov2Config(**backbone), **{**QUERIES, **changes})
    return query_boxes(kind(config), seed)


def lw_detr(seed, **changes):
    backbone = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 4, "mlp_ratio": 2, "image_size": 64,
                "pretrain_image_size": 32, "patch_size": 8, "num_windows": 4, "window_block_indices": [0, 2], "out_indices": [2, 4]}
    backbone.update(changes.pop("backbone", {}))
    config = tr.LwDetrConfig(backbone_config=tr.LwDetrViTConfig(**backbone),
                             **{**QUERIES, "projector_scale_factors": [1.0], **changes})
    return query_boxes(tr.LwDetrForObjectDetection(config), seed)


def drawn_queries(random):
    """Arguments that both detectors have, drawn for 96 x 96 pixels and patches of 8."""
    def pick(*values):
        return values[random.integers(len(values))]

    heads, sampling = pick(1, 2, 4), pick(1, 2, 3, 6)
    width = int(12 * heads * random.integers(1, 5))
    return {"d_model": width, "decoder_self_attention_heads": heads, "decoder_cross_attention_heads": sampling,
            "decoder_ffn_dim": int(random.integers(3, 90)), "decoder_layers": int(random.integers(1, 4)),
            "decoder_n_points": int(random.integers(1, 6)), "num_queries": int(random.integers(1, 30)), "group_detr": int(random.integers(1, 4)),
            "c2f_num_blocks": int(random.integers(0, 4)), "hidden_expansion": float(pick(0.25, 0.5, 0.75, 1.0)),
            "activation_function": pick("silu", "relu", "gelu"), "decoder_activation_function": pick("relu", "silu", "gelu"),
            "attention_bias": bool(random.integers(2))}


def drawn_tower(random):
    heads, depth = int(random.integers(1, 4)), int(random.integers(2, 6))
    stages = sorted(int(stage) for stage in random.choice(np.arange(1, depth + 1), random.integers(1, min(depth, 4) + 1), replace=False))
    return {"hidden_size": heads * int(random.choice([8, 12, 16])), "num_attention_heads": heads, "num_hidden_layers": depth,
            "out_indices": stages, "mlp_ratio": int(random.integers(1, 4)), "qkv_bias": bool(random.integers(2)), "patch_size": 8}


def drawn_rf_detr(seed):
    random = np.random.default_rng(seed)
    tower = drawn_tower(random) | {"num_windows": int(random.choice([1, 2, 3, 4, 6])), "image_size": int(8 * random.integers(3, 14)),
                                   "use_swiglu_ffn": bool(random.integers(2)), "apply_layernorm": bool(random.integers(2))}
    queries = drawn_queries(random) | {"attention_bias": True}  # its files join q, k and v with a bias
    return rf_detr(seed, backbone=tower, layer_norm_eps=float(10.0 ** random.uniform(-6, -3)), **queries)


def drawn_lw_detr(seed):
    random = np.random.default_rng(seed)
    tower = drawn_tower(random)
    blocks = np.arange(tower["num_hidden_layers"])
    tower |= {"num_windows": int(random.choice([1, 4, 9, 16])), "image_size": 0, "pretrain_image_size": int(8 * random.integers(2, 14)),
              "window_block_indices": sorted(int(block) for block in random.choice(blocks, random.integers(0, len(blocks) + 1), replace=False))}
    scales = [float(scale) for scale in random.choice([0.5, 1.0, 2.0], random.integers(1, 4))]
    return lw_detr(seed, backbone=tower | {"image_size": tower["num_windows"] ** 2 * 8}, projector_scale_factors=scales,
                   batch_norm_eps=float(10.0 ** random.uniform(-6, -3)), **drawn_queries(random))


def detr_processor(kind, height, width):
    return kind(size={"height": height, "width": width}, do_pad=False)


def check_owl(case):
    """Words as vectors that are ready: tokens of random numbers have no text."""
    random = np.random.default_rng(3)
    text = case.model.config.text_config
    ids = torch.from_numpy(random.integers(3, text.vocab_size - 1, (3, text.max_position_embeddings)))
    ids[:, 0] = text.bos_token_id
    ids[:, -2] = text.vocab_size - 1  # the highest id is where texts end
    ids[:, -1] = 0
    from safetensors.numpy import save_file
    with torch.no_grad():
        vectors = case.model.owlvit.get_text_features(ids, attention_mask=torch.ones_like(ids)) if hasattr(case.model, "owlvit") \
            else case.model.owlv2.get_text_features(ids, attention_mask=torch.ones_like(ids))
    vectors = getattr(vectors, "pooler_output", vectors)
    vectors = vectors / vectors.norm(dim=-1, keepdim=True)
    words = case.folder / "words.safetensors"
    save_file({"text": vectors.numpy()}, words, metadata={"names": json.dumps(["one", "two", "three"])})
    for path, image in case.images:
        inputs = case.processor(images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = case.model(input_ids=ids, pixel_values=inputs["pixel_values"], attention_mask=torch.ones_like(ids))
        raw, _ = case.arrays("detect", path, "--raw", "--classes-file", words)
        case.near(f"{path.name} logits", raw["logits.0"], outputs.logits[0])
        case.near(f"{path.name} raw boxes", raw["boxes.0"], outputs.pred_boxes[0])
        expected = case.processor.post_process_object_detection(outputs, threshold=0.3, target_sizes=[(image.height, image.width)])[0]
        found, _ = case.arrays("detect", path, "--threshold", 0.3, "--classes-file", words)
        case.near(f"{path.name} boxes", found["boxes.0"], expected["boxes"])
        case.near(f"{path.name} scores", found["scores.0"], expected["scores"])
        case.same(f"{path.name} labels", found["classes.0"], expected["labels"].numpy())


def owl(seed, second, **changes):
    config, model = (tr.Owlv2Config, tr.Owlv2ForObjectDetection) if second else (tr.OwlViTConfig, tr.OwlViTForObjectDetection)
    text = {"hidden_size": 40, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 90,
            "max_position_embeddings": 9, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    vision = {"hidden_size": 48, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 3, "image_size": 80,
              "patch_size": 16}
    vision.update(changes)
    return randomize(model(config(text_config=text, vision_config=vision, projection_dim=40)), seed, 0.1)


# ------------------------------------------------------------------------------------------------ keypoints


def check_poses(case, expert=None):
    words = [] if expert is None else ["--expert", expert]
    for number, (path, image) in enumerate(case.images):
        random = np.random.default_rng(number)
        boxes = [[float(x), float(y), float(w), float(h)] for x, y, w, h in
                 zip(random.uniform(-5, 20, 2), random.uniform(-5, 15, 2), random.uniform(12, 60, 2), random.uniform(12, 60, 2))]
        inputs = case.processor(images=image, boxes=[boxes], return_tensors="pt")
        more = {} if expert is None else {"dataset_index": torch.full((len(boxes),), expert)}
        with torch.no_grad():
            outputs = case.model(inputs["pixel_values"], **more)
        expected = case.processor.post_process_pose_estimation(outputs, boxes=[boxes])[0]
        file = case.folder / "boxes.jsonl"
        file.write_text(json.dumps({"file": str(path), "boxes": [{"bbox": box} for box in boxes]}) + "\n")
        raw, _ = case.arrays("pose", path, "--boxes", file, "--raw", *words)
        case.near(f"{path.name} heat maps", raw["heatmaps.0"], outputs.heatmaps)
        found, _ = case.arrays("pose", path, "--boxes", file, *words)
        for index, pose in enumerate(expected):
            points = found["keypoints.0"][index]
            case.near(f"{path.name} scores {index}", points[:, 2], pose["scores"])
            # A step s = gradient / curvature errs by s^2 / gradient times the error of the curvature: where the heat map is nearly
            # flat the library's step leaves the box by several sizes of it, and the last digits of the map move it.
            x, y, width, height = boxes[index]
            away = np.linalg.norm(pose["keypoints"].numpy() - [x + width / 2, y + height / 2], axis=1) / np.hypot(width, height)
            off = np.abs(points[:, :2] - pose["keypoints"].numpy()).max(1) / np.maximum(away, 1) ** 2
            if not off.max() < 0.02:
                case.problems.append(f"{path.name} keypoints {index}: {off.max():.3g} pixels off")


def vitpose(seed, **changes):
    backbone = {"hidden_size": 48, "num_attention_heads": 3, "num_hidden_layers": 3, "mlp_ratio": 2, "image_size": [96, 64],
                "patch_size": [16, 16], "out_indices": [3]}
    backbone.update(changes.pop("backbone", {}))
    values = {"use_simple_decoder": True, "num_labels": 7, "id2label": CLASSES}
    values.update(changes)
    model = tr.VitPoseForPoseEstimation(tr.VitPoseConfig(backbone_config=tr.VitPoseBackboneConfig(**backbone), **values))
    return randomize(model, seed)


def vitpose_processor(height=96, width=64):
    return tr.VitPoseImageProcessor(size={"height": height, "width": width})


# name -> (model of a seed, processor, check)
CASES = {
    "depth-anything": (lambda s: depth_anything(s), dpt_processor({"height": 56, "width": 56}, 14), check_depth),
    "depth-anything-v1-large": (lambda s: depth_anything(s, backbone={"out_indices": [2, 3, 4, 5], "image_size": 70, "use_swiglu_ffn": False},
                                                         fusion_hidden_size=16, head_hidden_size=8),
                                dpt_processor({"height": 70, "width": 70}, 14), check_depth),
    "depth-anything-metric": (lambda s: depth_anything(s, depth_estimation_type="metric", max_depth=80),
                              dpt_processor({"height": 42, "width": 42}, 14), check_depth),
    "depth-anything-relative-scaled": (lambda s: depth_anything(s, depth_estimation_type="relative", max_depth=3),
                                       dpt_processor({"height": 56, "width": 84}, 14), check_depth),
    "depth-anything-stages": (lambda s: depth_anything(s, backbone={"out_indices": None, "out_features": ["stage2", "stage3", "stage4", "stage5"]}),
                              dpt_processor({"height": 56, "width": 56}, 14), check_depth),
    "depth-anything-patch-16": (lambda s: depth_anything(s, backbone={"patch_size": 16, "image_size": 64}),
                                dpt_processor({"height": 64, "width": 64}, 16), check_depth),
    "depth-anything-swiglu": (lambda s: depth_anything(s, backbone={"use_swiglu_ffn": True}),
                              dpt_processor({"height": 56, "width": 56}, 14), check_depth),
    "depth-anything-squash": (lambda s: depth_anything(s), tr.DPTImageProcessor(size={"height": 56, "width": 70}, keep_aspect_ratio=False,
                              ensure_multiple_of=1), check_depth),
    "prompt-depth-anything": (lambda s: prompt_depth_anything(s), prompt_processor(), check_depth),
    "prompt-depth-anything-metric": (lambda s: prompt_depth_anything(s, depth_estimation_type="metric", max_depth=2), prompt_processor(),
                                     check_depth),
    "dpt-vit": (lambda s: dpt(s), tr.DPTImageProcessor(size={"height": 48, "width": 48}, keep_aspect_ratio=False), check_depth),
    "dpt-vit-add": (lambda s: dpt(s, readout_type="add"), tr.DPTImageProcessor(size={"height": 48, "width": 48}), check_depth),
    "dpt-vit-ignore": (lambda s: dpt(s, readout_type="ignore"), tr.DPTImageProcessor(size={"height": 64, "width": 64}), check_depth),
    "dpt-vit-norm": (lambda s: dpt(s, use_batch_norm_in_fusion_residual=True), tr.DPTImageProcessor(size={"height": 48, "width": 48}), check_depth),
    "dpt-dinov2": (lambda s: dpt_dinov2(s), dpt_processor({"height": 70, "width": 70}, 14), check_depth),
    "dpt-dinov2-giant": (lambda s: dpt_dinov2(s, swiglu=True), tr.DPTImageProcessor(do_resize=False, do_rescale=False, do_pad=True, size_divisor=14,
                         image_mean=[123.675, 116.28, 103.53], image_std=[58.395, 57.12, 57.375]), check_depth),
    "dpt-segmentation": (lambda s: randomize(tr.DPTForSemanticSegmentation(tr.DPTConfig(
        hidden_size=32, num_attention_heads=4, num_hidden_layers=4, intermediate_size=64, image_size=48, patch_size=16, is_hybrid=False,
        backbone_out_indices=[0, 1, 2, 3], neck_hidden_sizes=[6, 8, 10, 12], fusion_hidden_size=12, id2label=CLASSES,
        use_batch_norm_in_fusion_residual=True)), s), tr.DPTImageProcessor(size={"height": 48, "width": 48}), check_classes),
    "eomt": (lambda s: eomt(s), eomt_processor(96), check_segments),
    "eomt-masked": (lambda s: eomt(s, masked=True, num_upscale_blocks=1), eomt_processor(96), check_segments),
    "eomt-giant": (lambda s: eomt(s, use_swiglu_ffn=True, num_register_tokens=4, num_blocks=2), eomt_processor(96), check_segments),
    "eomt-windows": (lambda s: eomt(s, image_size=64), eomt_processor(64, windows=True), lambda case: check_segments(case, windows=True)),
    "eomt-dinov3": (lambda s: eomt(s, dinov3=True), eomt_processor(96), check_segments),
    "eomt-dinov3-masked": (lambda s: eomt(s, dinov3=True, masked=True, num_blocks=2), eomt_processor(96), check_segments),
    "eomt-dinov3-windows": (lambda s: eomt(s, dinov3=True, image_size=64), eomt_processor(64, windows=True),
                            lambda case: check_segments(case, windows=True)),
    "yolos": (lambda s: yolos(s), tr.YolosImageProcessor(size={"shortest_edge": 64, "longest_edge": 112}, do_pad=False), check_yolos),
    "yolos-plain": (lambda s: yolos(s, use_mid_position_embeddings=False, image_size=[96, 64]),
                    tr.YolosImageProcessor(size={"shortest_edge": 48, "longest_edge": 100}, do_pad=False), check_yolos),
    "rf-detr": (lambda s: rf_detr(s), detr_processor(tr.RfDetrImageProcessor, 64, 64), check_detr),
    "rf-detr-segmentation": (lambda s: rf_detr(s, tr.RfDetrForInstanceSegmentation, intermediate_size=40),
                             detr_processor(tr.RfDetrImageProcessor, 64, 64), check_detr),
    "rf-detr-larger": (lambda s: rf_detr(s, c2f_num_blocks=1, hidden_expansion=0.75, backbone={"num_windows": 3, "image_size": 40}),
                       detr_processor(tr.RfDetrImageProcessor, 96, 96), check_detr),
    "rf-detr-whole": (lambda s: rf_detr(s, decoder_n_points=2, backbone={"num_windows": 1, "out_indices": [1, 3, 4]}),
                      detr_processor(tr.RfDetrImageProcessor, 64, 64), check_detr),
    "rf-detr-swiglu": (lambda s: rf_detr(s, activation_function="relu", decoder_activation_function="silu", backbone={"use_swiglu_ffn": True}),
                       detr_processor(tr.RfDetrImageProcessor, 80, 80), check_detr),
    "rf-detr-drawn": (drawn_rf_detr, detr_processor(tr.RfDetrImageProcessor, 96, 96), check_detr),
    "lw-detr-drawn": (drawn_lw_detr, detr_processor(tr.DeformableDetrImageProcessor, 96, 96), check_detr),
    "lw-detr": (lambda s: lw_detr(s), detr_processor(tr.DeformableDetrImageProcessor, 64, 64), check_detr),
    "lw-detr-levels": (lambda s: lw_detr(s, projector_scale_factors=[2.0, 0.5]),
                       detr_processor(tr.DeformableDetrImageProcessor, 64, 96), check_detr),
    "lw-detr-wide": (lambda s: lw_detr(s, projector_scale_factors=[2.0, 1.0, 0.5], attention_bias=False,
                                       backbone={"hidden_size": 516, "num_attention_heads": 3, "num_hidden_layers": 2, "out_indices": [1, 2]}),
                     detr_processor(tr.DeformableDetrImageProcessor, 48, 64), check_detr),
    "owlv2": (lambda s: owl(s, True), tr.Owlv2ImageProcessor(size={"height": 80, "width": 80}), check_owl),
    "owlvit": (lambda s: owl(s, False), tr.OwlViTImageProcessor(size={"height": 80, "width": 80}, do_center_crop=False), check_owl),
    "owlvit-32": (lambda s: owl(s, False, patch_size=32, image_size=96), tr.OwlViTImageProcessor(size={"height": 96, "width": 96}), check_owl),
    "vitpose": (lambda s: vitpose(s), vitpose_processor(), check_poses),
    "vitpose-classic": (lambda s: vitpose(s, use_simple_decoder=False), vitpose_processor(), check_poses),
    "vitpose-plus": (lambda s: vitpose(s, use_simple_decoder=False, backbone={"num_experts": 6, "part_features": 12}), vitpose_processor(),
                     lambda case: check_poses(case, 2)),
    "vitpose-plus-0": (lambda s: vitpose(s, backbone={"num_experts": 3, "part_features": 20, "image_size": [64, 48]}), vitpose_processor(64, 48),
                       lambda case: check_poses(case, 0)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", required=True)
    parser.add_argument("--work", type=Path, default=None)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        options.work = options.work or Path(folder)
        for name in options.only:
            make, processor, check = CASES[name]
            for seed in range(options.seeds):
                try:
                    case = Case(options, name, make(seed + 1), processor, 100 * seed)
                    check(case)
                    problems, worst = case.problems, f"{case.worst:.1e}"
                except Exception as error:
                    problems, worst = [f"{type(error).__name__}: {error}"], "-"
                bad += bool(problems)
                print(f"{name:32} seed {seed}  {worst}  {'ok' if not problems else ''}", flush=True)
                for problem in problems[:6]:
                    print(f"    {problem[:600]}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
