#!/usr/bin/env python3
"""Which vision models of transformers the program does not load: the list between two marks in vit/weights/README.md.

    python3 vit/weights/families/check_transformers.py VIT            write the list
    python3 vit/weights/families/check_transformers.py VIT --check    exit with 1 if the list is not current

VIT is the program. Needs transformers (no PyTorch). Considered are the model types that transformers maps to a task of images, and those
whose code has rotary positions in a vision tower, except NOT_PLAIN: convolutions, hierarchies, detectors on other backbones. The program is asked with a folder
that holds this model_type and a file with one meaningless tensor: the error says whether it knows the type.
"""

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import transformers
from transformers.models.auto import modeling_auto

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- check_transformers.py: begin -->", "<!-- check_transformers.py: end -->"
TASKS = ("IMAGE_CLASSIFICATION", "DEPTH_ESTIMATION", "ZERO_SHOT_IMAGE_CLASSIFICATION", "ZERO_SHOT_OBJECT_DETECTION", "OBJECT_DETECTION",
         "UNIVERSAL_SEGMENTATION", "SEMANTIC_SEGMENTATION", "BACKBONE")
ROTARY = re.compile(r"class \w*Vision\w*(Rotary|RoPE|Rope)|apply_rotary_pos_emb_vision|RopePositionEmbedding|apply_rotary_pos_emb_2d"
                    r"|apply_multidimensional_rope")
UNKNOWN = ("which no supported family of Vision Transformers has", "the head of this model is not implemented")
NOT_PLAIN = set("""
    align altclip bit blip blip-2 clipseg conditional_detr convnext convnextv2 cvt d_fine dab-detr deformable_detr deimv2 depth_pro detr dinat dinov3_convnext
    donut-swin edgetam_video efficientnet focalnet glpn grounding-dino hgnet_v2 hiera imagegpt levit lw_detr lw_detr_vit mask2former maskformer maskformer-swin
    mm-grounding-dino mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 omdet-turbo oneformer perceiver poolformer pp_doclayout_v2 pp_doclayout_v3 pp_doclayout_v4
    pp_lcnet pp_lcnet_v3 pp_lcnet_v4 pp_ocrv5_mobile_det pp_ocrv5_server_det pp_ocrv6_medium_det pp_ocrv6_small_det pvt pvt_v2 regnet resnet rf_detr
    rf_detr_dinov2 rt_detr rt_detr_resnet rt_detr_v2 sam2_video sam3_tracker_video segformer swiftformer swin swinv2 table-transformer textnet timm_backbone
    timm_wrapper upernet uvdoc_backbone zoedepth""".split())


def considered():
    types = set()
    for task in TASKS:
        types |= set(getattr(modeling_auto, f"MODEL_FOR_{task}_MAPPING_NAMES"))
    for file in (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py"):
        if ROTARY.search(file.read_text(encoding="utf-8")):
            types.add(file.parent.name)
    return sorted(types - NOT_PLAIN)


def knows(vit, model_type, folder):
    header = json.dumps({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    run = subprocess.run([vit, "info", "--model", folder], capture_output=True, text=True)
    if run.returncode != 1:
        sys.exit(f"{model_type}: exit code {run.returncode}, expected 1: {run.stderr}")
    return not any(words in run.stderr for words in UNKNOWN)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the list is not current")
    options = parser.parse_args()
    types = considered()
    with tempfile.TemporaryDirectory() as folder:
        missing = [name for name in types if not knows(options.vit.resolve(), name, Path(folder))]
    release = ".".join(transformers.__version__.split(".")[:2])
    made = (f"{BEGIN}\nOf the {len(types)} model types of transformers {release} with a plain Vision Transformer or rotary positions in a vision tower, {len(types) - len(missing)} load. "
            f"Not yet supported: {', '.join(f'`{name}`' for name in missing)}.\n{END}")
    text = README.read_text(encoding="utf-8")
    start, end = text.index(BEGIN), text.index(END) + len(END)
    if text[start:end] == made:
        return
    if options.check:
        sys.exit(f"{README} is not current: run without --check. It would say:\n{made}")
    README.write_text(text[:start] + made + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
