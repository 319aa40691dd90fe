"""Writes data/golden/prompts: a tiny random SAM 3 as its library saves the whole model, with what it gives for
phrases, boxes, points and a mask on one drawing, computed in float64.

    python tests/golden/make_prompt_golden.py     needs torch, transformers 5, safetensors, pillow

    sam3/                     config.json, processor_config.json, model.safetensors, tokenizer files of
                              data/golden/tokenizers/clip, case.json, expected.safetensors
    images/drawing.png        what the prompts ask

case.json lists the prompts, and for each tensor the largest difference of the library's own float32, relative to the
largest value or 1. Random weights: useless as a model.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
import transformers
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from transformers import (CLIPTokenizerFast, Sam3Config, Sam3ImageProcessor, Sam3Model, Sam3Processor, Sam3TrackerModel,
                          Sam3VideoConfig, Sam3VideoModel)

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/golden"
FOLDER = DATA / "prompts/sam3"
IMAGE, PATCH, DIM, HEADS = 84, 14, 16, 2
SIZE = (75, 52)  # width and height of the drawing
PROMPTS = [
    {"id": "T", "text": "a cat"},
    {"id": "TB", "text": "a dog", "boxes": [[10.0, 8.5, 42.0, 39.0], [50.5, 20.0, 55.0, 24.5]], "labels": [1, 0]},
    {"id": "B", "boxes": [[20.0, 5.0, 70.0, 45.0]], "labels": [1]},
    {"id": "P1", "points": [[30.0, 20.5], [60.0, 44.0]], "labels": [1, 0], "multimask": True},
    {"id": "P2", "box": [12.0, 10.0, 50.0, 40.0], "multimask": False},
    {"id": "P3", "points": [[33.0, 25.0]], "labels": [1], "multimask": False, "mask_of": "P1"},
]


def config():
    backbone = dict(model_type="sam3_vit_model", hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=2, image_size=IMAGE,
                    patch_size=PATCH, window_size=3, global_attn_indexes=[1], pretrain_image_size=42)
    grid = IMAGE // PATCH
    vision = dict(backbone_config=backbone, fpn_hidden_size=DIM,
                  backbone_feature_sizes=[[4 * grid] * 2, [2 * grid] * 2, [grid] * 2])
    vocabulary = len(CLIPTokenizerFast.from_pretrained(DATA / "tokenizers/clip"))
    layers = dict(hidden_size=DIM, num_attention_heads=HEADS, intermediate_size=24, num_layers=2)
    detector = dict(
        vision_config=vision,
        text_config=dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=2,
                         max_position_embeddings=32, vocab_size=vocabulary, projection_dim=8),
        geometry_encoder_config=dict(layers, roi_size=7), detr_encoder_config=layers,
        detr_decoder_config=dict(layers, num_queries=6),
        mask_decoder_config=dict(hidden_size=DIM, num_attention_heads=HEADS, num_upsampling_stages=3))
    tracker = dict(
        vision_config=vision, image_size=IMAGE, memory_attention_hidden_size=DIM, memory_attention_num_layers=1,
        memory_attention_feed_forward_hidden_size=8, memory_encoder_hidden_size=DIM, memory_encoder_output_channels=4,
        mask_downsampler_embed_dim=4, memory_fuser_embed_dim=DIM, memory_fuser_intermediate_dim=8,
        memory_fuser_num_layers=1,
        prompt_encoder_config=dict(hidden_size=DIM, image_size=IMAGE, patch_size=PATCH, mask_input_channels=8),
        mask_decoder_config=dict(hidden_size=DIM, mlp_dim=24, num_attention_heads=HEADS, iou_head_hidden_dim=12,
                                 attention_downsample_rate=2))
    return Sam3VideoConfig(detector_config=detector, tracker_config=tracker)


def randomize(model):
    """Every parameter away from the values that hide mistakes."""
    generator = torch.Generator().manual_seed(11)
    for name, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator)
        one = parameter.dim() == 1 and "norm" in name and "bias" not in name
        fan_in = parameter[0].numel() if parameter.dim() > 1 else 1
        spread = 1.2 / fan_in ** 0.5 if parameter.dim() > 1 else 0.2
        if "embed" in name and parameter.dim() == 2:
            spread = 0.5
        parameter.data = (1.0 if one else 0.0) + spread * noise
    return model.eval()


def drawing():
    image = Image.new("RGB", SIZE, (200, 190, 150))
    draw = ImageDraw.Draw(image)
    draw.ellipse((12, 9, 44, 40), fill=(60, 90, 160))
    draw.rectangle((50, 4, 70, 30), fill=(180, 60, 50))
    draw.polygon([(40, 50), (58, 34), (72, 50)], fill=(70, 150, 80))
    noise = np.random.default_rng(3).integers(-12, 13, (SIZE[1], SIZE[0], 3))
    return Image.fromarray(np.clip(np.asarray(image, np.int16) + noise, 0, 255).astype(np.uint8))


def resized(values, size):
    return torch.nn.functional.interpolate(values[None].double(), size=size, mode="bilinear", align_corners=False)[0]


def run_phrase(model, processor, image, prompt, dtype):
    inputs = processor(images=image, text=prompt.get("text"),
                       input_boxes=[prompt["boxes"]] if "boxes" in prompt else None,
                       input_boxes_labels=[prompt["labels"]] if "boxes" in prompt else None, return_tensors="pt")
    kept = {k: (v.to(dtype) if v.dtype.is_floating_point else v) for k, v in inputs.items() if k != "original_sizes"}
    with torch.no_grad():
        return inputs, model(**kept)


def add(expected, errors, name, wide, narrow):
    wide, narrow = wide.double(), narrow.double()
    expected[name + ".f64"] = wide.contiguous()
    errors[name] = float((wide - narrow).abs().max() / max(1.0, float(wide.abs().max())))


def phrases(case, expected, image):
    processor = Sam3Processor.from_pretrained(FOLDER)
    models = {d: Sam3Model.from_pretrained(FOLDER, dtype=d).eval() for d in (torch.float32, torch.float64)}
    errors = case["float32_error"]
    for prompt in case["prompts"]:
        if prompt["id"].startswith("P"):
            continue
        front = "drawing." + prompt["id"] + "."
        inputs, wide = run_phrase(models[torch.float64], processor, image, prompt, torch.float64)
        _, narrow = run_phrase(models[torch.float32], processor, image, prompt, torch.float32)
        expected["drawing.pixels"] = inputs["pixel_values"][0].contiguous()
        expected[front + "input_ids"] = inputs["input_ids"][0].to(torch.int32)
        if "boxes" in prompt:
            expected[front + "input_boxes"] = inputs["input_boxes"][0].float().contiguous()
            expected[front + "input_boxes_labels"] = inputs["input_boxes_labels"][0].to(torch.int32)
        words = int(inputs["attention_mask"][0].sum())
        with torch.no_grad():
            texts = [models[d].get_text_features(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
                     for d in (torch.float64, torch.float32)]
        texts = [t.pooler_output if hasattr(t, "pooler_output") else t for t in texts]
        add(expected, errors, front + "text", texts[0][0, :words], texts[1][0, :words])
        for name in ("pred_logits", "presence_logits", "pred_boxes", "pred_masks", "semantic_seg"):
            add(expected, errors, front + name, getattr(wide, name)[0], getattr(narrow, name)[0])
        scores = wide.pred_logits[0].sigmoid() * wide.presence_logits[0].sigmoid()
        middle = torch.sort(scores).values
        gaps = middle[1:] - middle[:-1]
        place = int(gaps[: len(gaps) - 1].argmax())
        prompt["threshold"] = float((middle[place] + middle[place + 1]) / 2)
        kept = torch.nonzero(scores > prompt["threshold"])[:, 0]
        expected[front + "scores.f64"] = scores
        expected[front + "kept"] = kept.to(torch.int32)
        width, height = SIZE
        expected[front + "boxes.f64"] = wide.pred_boxes[0][kept] * torch.tensor([width, height, width, height])
        masks = resized(wide.pred_masks[0][kept].sigmoid(), (height, width))
        expected[front + "masks"] = (masks > 0.5).to(torch.uint8)
        expected[front + "mask_lead"] = (masks - 0.5).half()
        semantic = resized(wide.semantic_seg[0].sigmoid(), (height, width))[0]
        expected[front + "semantic"] = (semantic > 0.5).to(torch.uint8)
        expected[front + "semantic_lead"] = (semantic - 0.5).half()


def objects(case, expected):
    models = {d: Sam3TrackerModel.from_pretrained(FOLDER, dtype=d).eval() for d in (torch.float32, torch.float64)}
    errors, logits = case["float32_error"], {}
    width, height = SIZE
    scale = torch.tensor([IMAGE / width, IMAGE / height], dtype=torch.float64)
    for prompt in case["prompts"]:
        if not prompt["id"].startswith("P"):
            continue
        front = "drawing." + prompt["id"] + "."
        found = {}
        for dtype, model in models.items():
            inputs = {"pixel_values": expected["drawing.pixels"][None].to(dtype), "multimask_output": prompt["multimask"]}
            if "points" in prompt:
                points = torch.tensor(prompt["points"], dtype=torch.float64) * scale
                inputs["input_points"] = points[None, None].to(dtype)
                inputs["input_labels"] = torch.tensor(prompt["labels"])[None, None]
            if "box" in prompt:
                inputs["input_boxes"] = (torch.tensor(prompt["box"], dtype=torch.float64).view(2, 2) * scale).view(1, 1, 4).to(dtype)
            if "mask_of" in prompt:
                mask = logits[prompt["mask_of"]][0].float()
                expected[front + "input_masks"] = mask.contiguous()
                inputs["input_masks"] = mask[None, None].to(dtype)
            with torch.no_grad():
                found[dtype] = model(**inputs)
        wide, narrow = found[torch.float64], found[torch.float32]
        logits[prompt["id"]] = wide.pred_masks[0, 0]
        add(expected, errors, front + "pred_masks", wide.pred_masks[0, 0], narrow.pred_masks[0, 0])
        add(expected, errors, front + "iou_scores", wide.iou_scores[0, 0], narrow.iou_scores[0, 0])
        add(expected, errors, front + "object_score_logits", wide.object_score_logits[0, 0], narrow.object_score_logits[0, 0])
        masks = resized(wide.pred_masks[0, 0], (height, width))
        expected[front + "masks"] = (masks > 0).to(torch.uint8)
        expected[front + "mask_lead"] = masks.half()


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER.parent / "images").mkdir(exist_ok=True)
    for file in (DATA / "tokenizers/clip").iterdir():
        if file.name not in ("strings.jsonl", "config.json"):
            shutil.copy(file, FOLDER / file.name)
    model = randomize(Sam3VideoModel(config()))
    model.config.architectures = ["Sam3VideoModel"]
    model.config.save_pretrained(FOLDER)
    # the names of the published file; save_pretrained() writes others for the tracker, which the library then misses
    tensors = {name: value.clone().contiguous() for name, value in model.state_dict().items()}
    fourier = "tracker_model.{}_embedding.positional_embedding"  # stored twice, as in the published file
    tensors[fourier.format("shared_image")] = tensors[fourier.format("prompt_encoder.shared")].clone()
    save_file(tensors, FOLDER / "model.safetensors", {"format": "pt"})
    Sam3Processor(image_processor=Sam3ImageProcessor(size={"height": IMAGE, "width": IMAGE}),
                  tokenizer=CLIPTokenizerFast.from_pretrained(FOLDER), target_size=IMAGE).save_pretrained(FOLDER)
    image = drawing()
    image.save(FOLDER.parent / "images/drawing.png")
    case = {"library": "transformers " + transformers.__version__, "prompts": [dict(p, image="drawing") for p in PROMPTS],
            "float32_error": {}}
    expected = {}
    phrases(case, expected, image)
    objects(case, expected)
    save_file(expected, FOLDER / "expected.safetensors")
    (FOLDER / "case.json").write_text(json.dumps(case, indent=1) + "\n")


if __name__ == "__main__":
    main()
