"""Holds the rotary positions of timm and transformers against the conformance vectors.

    python data/positions/check_libraries.py            prints a line per model
    python data/positions/check_libraries.py --write    writes the table of README.md, with versions and day
    python data/positions/check_libraries.py --check    exits 1 if a verdict is not that of the table in README.md

Needs torch, timm and transformers. Tables come from the library's own model or rotary module, made tiny, with the positions that the
model itself computes, and queries are rotated by the library's own function, in float32. "agrees": within 1e-5 of the vectors, whose
channels are below 3; an exact table rounded to float32 is within 1e-6, and angles in float32 add their size times 1e-7.
"""

from __future__ import annotations

import datetime
import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import timm
import torch
import transformers
from make_vectors import HERE, read_safetensors
from timm.layers import apply_rot_embed_cat

BOUND = 1e-5


class Case:
    """The tensors of a case as torch tensors, and its facts as members."""

    def __init__(self, name, title, facts):
        self.name, self.title = name, title
        stored = read_safetensors(HERE / f"{name}.safetensors")
        self.tensors = {key[len(title) + 1:]: torch.tensor(values, dtype=torch.float64).reshape(shape)
                        for key, (shape, values) in stored.items() if key.startswith(title + ".")}
        self.d, self.prefix, self.suffix = facts["head_dim"], facts["prefix"], facts["suffix"]
        self.rows, self.columns = facts.get("grid", (0, 0))
        self.frames, self.window, self.reference = facts.get("frames", 1), facts.get("window", 0), facts.get("reference")
        self.q = self.tensors["q"].float()  # (H, T, d)

    def whole(self, rotated):
        """(H, T, d) from rotated patches (H, N, d)."""
        last = self.q.shape[1] - self.suffix
        return torch.cat([self.q[:, :self.prefix], rotated, self.q[:, last:]], 1)

    @property
    def patches(self):
        return self.q[:, self.prefix:self.q.shape[1] - self.suffix]


def cases_of(name, titles=None):
    facts = json.loads((HERE / f"{name}.json").read_text())["cases"]
    return [Case(name, title, case) for title, case in facts.items() if titles is None or title in titles]


# ------------------------------------------------------------------------------------------------ timm


def timm_eva(architecture, **options):
    """The tables of an architecture of timm's `eva`, tiny."""

    def rotated(case):
        given = {"ref_feat_shape": tuple(case.reference)} if options.get("reference") else {}
        model = timm.create_model(architecture, embed_dim=case.d * case.q.shape[0], num_heads=case.q.shape[0], depth=1, num_classes=0,
                                  patch_size=4, img_size=(4 * case.rows, 4 * case.columns), **given)
        if "mixed" in architecture:
            with torch.no_grad():  # (H, P, 2) -> (2, depth, H, P)
                model.rope.freqs.copy_(case.tensors["normal_form"].permute(2, 0, 1)[:, None].float())
        with torch.no_grad():
            table = model.rope.get_embed(shape=[case.rows, case.columns])
        table = table[0] if "mixed" in architecture else table
        return case.whole(apply_rot_embed_cat(case.patches[None], table, half=getattr(model.blocks[0].attn, "rotate_half", False))[0])

    return rotated


def timm_tower(module, name):
    def rotated(case):
        model = getattr(importlib.import_module(f"timm.models.{module}"), name)(
            img_size=64, embed_dim=case.d, num_heads=1, depth=1, global_pool="")
        table = model.rope.get_embed(shape=(case.rows, case.columns)).repeat(case.frames, 1)
        return case.whole(apply_rot_embed_cat(case.patches[None], table, half=model.blocks[0].attn.rotate_half)[0])

    return rotated


def timm_gemma4(case):
    from timm.models import gemma4_vit as module

    rope = module.Gemma4RotaryEmbedding2D(case.d)
    ids = timm_positions(case)
    cos, sin = rope(case.q, ids[None])
    x = case.patches[None].transpose(1, 2)  # (B, N, H, d)
    return case.whole(module.apply_multidimensional_rope(x, cos, sin, ndim=2, unsqueeze_dim=2).transpose(1, 2)[0])


def timm_positions(case):
    """(frames N, 2): x, y."""
    i = torch.arange(case.rows * case.columns)
    return torch.stack([i % case.columns, i // case.columns], -1).repeat(case.frames, 1)


def timm_mrope(case):
    from timm.layers import RotaryEmbeddingMRope

    third = case.d // 6 + 1
    table = RotaryEmbeddingMRope(case.d, mrope_section=(third, third, third)).get_embed((case.rows, case.columns))
    return case.whole(apply_rot_embed_cat(case.patches[None], table, half=True)[0])


# ------------------------------------------------------------------------------------------------ transformers


def model_file(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def config_of(name, config, case, **more):
    """A configuration of the library's defaults, with heads of d channels."""
    heads = case.q.shape[0]
    return getattr(importlib.import_module(f"transformers.models.{name}.configuration_{name}"), config)(
        **({"hidden_size": case.d * heads, "num_attention_heads": heads} | more))


def tower(name, config, rotary, merge=1, **more):
    """Towers of language models: rotary module, positions of vision_utils, apply_rotary_pos_emb_vision."""

    def rotated(case):
        from transformers.vision_utils import get_vision_position_ids

        module, given = model_file(name), {key: value(case) if callable(value) else value for key, value in more.items()}
        rope = getattr(module, rotary)(config_of(name, config, case, **given))
        ids = get_vision_position_ids(torch.tensor([[case.frames, case.rows, case.columns]]), 2 if case.title == "merge" else 1)
        if case.title == "windows":
            ids = ids[case.tensors["patches"].long()]
        cos, sin = rope(case.q, ids)
        x = case.patches.transpose(0, 1)  # (N, H, d)
        return case.whole(module.apply_rotary_pos_emb_vision(x, x, cos, sin)[0].transpose(0, 1))

    return rotated


def hf_dinov3(name, config, rotary):
    def rotated(case):
        module = model_file(name)
        rope = getattr(module, rotary)(config_of(name, config, case, image_size=64, patch_size=4)).eval()
        cos, sin = rope(torch.zeros(1, 3, 4 * case.rows, 4 * case.columns))
        return module.apply_rotary_pos_emb(case.q[None], case.q[None], cos, sin)[0][0]

    return rotated


def hf_pixtral(case):
    module = model_file("pixtral")
    rope = module.PixtralVisionRotaryEmbedding(config_of("pixtral", "PixtralVisionConfig", case, head_dim=case.d))
    ids = torch.stack([timm_positions(case)[:, 1], timm_positions(case)[:, 0]], -1)
    cos, sin = rope(case.q, ids)
    return case.whole(module.apply_rotary_pos_emb(case.patches, case.patches, cos, sin, unsqueeze_dim=0)[0])


def hf_mlcd(case):
    module = model_file("mlcd")
    rope = module.MLCDRotaryEmbedding(config_of("mlcd", "MLCDVisionConfig", case))
    ids = torch.stack([timm_positions(case)[:, 1], timm_positions(case)[:, 0]], -1)
    of_class = case.tensors["class_angles"].float().repeat(2)[None]
    cos, sin = (torch.cat([f(of_class), table]) for f, table in zip((torch.cos, torch.sin), rope(case.q, ids)))
    x = case.q.transpose(0, 1)
    return module.apply_rotary_pos_emb_vision(x, x, cos, sin)[0].transpose(0, 1)


def hf_gemma4(case):
    module = model_file("gemma4")
    rope = module.Gemma4VisionRotaryEmbedding(config_of("gemma4", "Gemma4VisionConfig", case, head_dim=case.d))
    ids = timm_positions(case)[None]
    cos, sin = rope(case.q, ids)
    x = case.patches[None].transpose(1, 2)
    return case.whole(module.apply_multidimensional_rope(x, cos, sin, ids).transpose(1, 2)[0])


def hf_llama4(case):
    module, edge = model_file("llama4"), max(case.rows, case.columns)
    config = config_of("llama4", "Llama4VisionConfig", case, image_size=edge * 4, patch_size=4)
    table = module.Llama4VisionRotaryEmbedding(config)(case.q)
    kept = [r * edge + c for r in range(case.rows) for c in range(case.columns)] + [edge * edge]  # of the square grid, and the class token
    x = case.q.transpose(0, 1)[None]  # (B, T, H, d)
    return module.vision_apply_rotary_emb(x, x, table[kept])[0][0].transpose(0, 1)


def hf_sam3(case):
    module = model_file("sam3")
    edge = max(case.rows, case.columns)
    config = config_of("sam3", "Sam3ViTConfig", case, image_size=edge * 4, patch_size=4, window_size=case.window or case.reference[1])
    layer = module.Sam3ViTLayer(config, case.window)
    cos, sin = layer.rotary_emb(case.q, layer.position_ids)
    if case.window:  # the table of one window
        windows = case.patches.reshape(case.q.shape[0], -1, case.window ** 2, case.d).transpose(0, 1)
        rotated = module.apply_rotary_pos_emb_2d(windows, windows, cos, sin)[0].transpose(0, 1)
        return case.whole(rotated.reshape(case.patches.shape))
    kept = [r * edge + c for r in range(case.rows) for c in range(case.columns)]
    cos, sin = cos[:, kept], sin[:, kept]
    return case.whole(module.apply_rotary_pos_emb_2d(case.patches[None], case.patches[None], cos, sin)[0][0])


def hf_sam2(case):
    module = model_file("sam2_video")
    config = SimpleNamespace(memory_attention_hidden_size=case.d, memory_attention_downsample_rate=1, memory_attention_num_attention_heads=1,
                             rope_parameters=transformers.Sam2VideoConfig().rope_parameters)
    rope = module.Sam2VideoVisionRotaryEmbedding(config)
    cos, sin = rope(case.q, timm_positions(SimpleNamespace(rows=case.rows, columns=case.columns, frames=1)))
    one = case.q[None, :, :case.rows * case.columns]
    return module.apply_rotary_pos_emb_2d(one, case.q[None], cos, sin, num_k_exclude_rope=case.suffix, repeat_freqs_k=True)[1][0]


def hf_vjepa2(case):
    module = model_file("vjepa2")
    config = config_of("vjepa2", "VJEPA2Config", case, crop_size=case.columns * 16, patch_size=16)
    attention = module.VJEPA2RopeAttention(config, case.d, 1)
    where = case.tensors["coordinates"].float()  # the library's own positions are those of square grids
    return attention.apply_rotary_embeddings(case.q[None], (where[:, 2], where[:, 1], where[:, 0]))[0]


def hf_minimax(case):
    from transformers.vision_utils import get_vision_position_ids

    module = model_file("minimax_m3_vl")
    rope = module.MiniMaxM3VLVisionRotaryEmbedding(config_of("minimax_m3_vl", "MiniMaxM3VLVisionConfig", case))
    ids = get_vision_position_ids(torch.tensor([[case.frames, case.rows, case.columns]]), 1, include_temporal=True)
    cos, sin = rope(case.q, ids)
    x = case.patches.transpose(0, 1)
    return case.whole(module.apply_rotary_pos_emb_vision(x, x, cos, sin)[0].transpose(0, 1))


def same_heads(case):
    return case.q.shape[0]


# library, what of it, convention, cases (all if None), adapter, what is known of a difference
CHECKS = [
    ("timm", "vit_small_patch16_rope_224", "rope-vit", None, timm_eva("vit_small_patch16_rope_224"), ""),
    ("timm", "vit_small_patch16_rope_mixed_224", "rope-vit-mixed", None, timm_eva("vit_small_patch16_rope_mixed_224"), ""),
    ("timm", "eva02_tiny_patch14_224", "eva02", None, timm_eva("eva02_tiny_patch14_224"), ""),
    ("timm", "vit_medium_patch16_rope_reg1_gap_256", "eva02", None, timm_eva("vit_medium_patch16_rope_reg1_gap_256"), ""),
    ("timm", "vit_pe_core_tiny_patch16_384", "perception-encoder-timm", ["plain"], timm_eva("vit_pe_core_tiny_patch16_384", reference=True), ""),
    ("timm", "vit_pe_core_gigantic_patch14_448", "perception-encoder-timm", ["no_class"],
     timm_eva("vit_pe_core_gigantic_patch14_448", reference=True), ""),
    ("timm", "vit_pe_core_tiny_patch16_384", "perception-encoder", ["plain"], timm_eva("vit_pe_core_tiny_patch16_384"),
     "scaled to the native grid; equal on that grid only"),
    ("timm", "vit_small_patch16_dinov3", "dinov3", None, timm_eva("vit_small_patch16_dinov3"), ""),
    ("timm", "Qwen3VitEncoder", "qwen2-vl", ["plain", "frames"], timm_tower("qwen3_vit", "Qwen3VitEncoder"), ""),
    ("timm", "DeepseekVitEncoder", "qwen2-vl", ["plain", "frames"], timm_tower("deepseek_vit", "DeepseekVitEncoder"), ""),
    ("timm", "gemma4_vit", "gemma4", None, timm_gemma4, ""),
    ("timm", "RotaryEmbeddingMRope", "timm-mrope", None, timm_mrope, ""),
    ("transformers", "DINOv3ViTModel", "dinov3", None, hf_dinov3("dinov3_vit", "DINOv3ViTConfig", "DINOv3ViTRopePositionEmbedding"), ""),
    ("transformers", "Sapiens2Model", "dinov3", None, hf_dinov3("sapiens2", "Sapiens2Config", "Sapiens2RopePositionEmbedding"), ""),
    ("transformers", "Sam2VideoModel", "sam2", None, hf_sam2, ""),
    ("transformers", "Sam3ViTModel, windows", "sam3-windows", None, hf_sam3, ""),
    ("transformers", "Sam3ViTModel, global", "sam3", None, hf_sam3, "rows are scaled by the number of columns too; its grids are square"),
    ("transformers", "Qwen2VL", "qwen2-vl", None, tower("qwen2_vl", "Qwen2VLVisionConfig", "Qwen2VLVisionRotaryEmbedding",
                                                        embed_dim=lambda c: c.d, num_heads=same_heads), ""),
    ("transformers", "Qwen2_5_VL", "qwen2-vl", None, tower("qwen2_5_vl", "Qwen2_5_VLVisionConfig", "Qwen2_5_VLVisionRotaryEmbedding",
                                                           num_heads=same_heads), ""),
    ("transformers", "Qwen3VL", "qwen2-vl", None, tower("qwen3_vl", "Qwen3VLVisionConfig", "Qwen3VLVisionRotaryEmbedding",
                                                        num_heads=same_heads), ""),
    ("transformers", "Glm4v", "qwen2-vl", None, tower("glm4v", "Glm4vVisionConfig", "Glm4vVisionRotaryEmbedding", num_heads=same_heads), ""),
    ("transformers", "PaddleOCRVL", "qwen2-vl", None, tower("paddleocr_vl", "PaddleOCRVisionConfig", "PaddleOCRVisionRotaryEmbedding"), ""),
    ("transformers", "VideoLlama3", "qwen2-vl", None, tower("video_llama_3", "VideoLlama3VisionConfig", "VideoLlama3VisionRotaryEmbedding"), ""),
    ("transformers", "Ernie4_5_VLMoe", "qwen2-vl", None,
     tower("ernie4_5_vl_moe", "Ernie4_5_VLMoeVisionConfig", "Ernie4_5_VLMoeVisionRotaryEmbedding", num_heads=same_heads), ""),
    ("transformers", "Exaone4_5", "qwen2-vl", None, tower("exaone4_5", "Exaone4_5_VisionConfig", "Exaone4_5_VisionRotaryEmbedding",
                                                          num_heads=same_heads), ""),
    ("transformers", "MLCDVisionModel", "mlcd", None, hf_mlcd, ""),
    ("transformers", "PixtralVisionModel", "pixtral", None, hf_pixtral, ""),
    ("transformers", "Kimi_K25", "moonvit", None, tower("kimi_k25", "Kimi_K25VisionConfig", "Kimi_K25VisionRotaryEmbedding"),
     "rows of q and k are permuted while loading, (j, j + d/2) instead of neighbors"),
    ("transformers", "Gemma4VisionModel", "gemma4", None, hf_gemma4, ""),
    ("transformers", "Llama4VisionModel", "llama4", None, hf_llama4, ""),
    ("transformers", "VJEPA2Model", "vjepa2", None, hf_vjepa2, ""),
    ("transformers", "MiniMaxM3VL", "minimax-m3", None, hf_minimax, ""),
]


def halves_of(case, rotated):
    """Rotates again with the channels of q in the order of halves, where pairs (2j, 2j + 1) become (j, j + d/2)."""
    order = torch.cat([torch.arange(0, case.d, 2), torch.arange(1, case.d, 2)])
    case.q = case.q[..., order]
    found = rotated(case)
    out = torch.empty_like(found)
    out[..., order] = found
    return out


def check(convention, titles, rotated):
    """(verdict, largest error): agrees; agrees after a permutation; differs."""
    def largest(of):
        errors = []
        for case in cases_of(convention, titles):
            with torch.no_grad():
                found = of(case).double()
            errors.append(float((found - case.tensors["q_rotated"]).abs().max()))
        return max(errors)

    error = largest(rotated)
    if error <= BOUND:
        return "agrees", error
    permuted = largest(lambda case: halves_of(case, rotated)) if convention == "moonvit" else error
    return ("agrees permuted", permuted) if permuted <= BOUND else ("differs", error)


def main():
    options = sys.argv[1:]
    if options not in ([], ["--write"], ["--check"]):
        sys.exit(__doc__)
    lines, verdicts = [], {}
    for library, name, convention, titles, rotated, note in CHECKS:
        verdict, error = check(convention, titles, rotated)
        verdicts[library, name, convention] = verdict
        tested = ", ".join(case.title for case in cases_of(convention, titles))
        lines.append(f"| {library} | {name} | {convention} | {tested} | {verdict} | {error:.0e} | {note} |")
        print(lines[-1], flush=True)
        if bool(note) != (verdict != "agrees"):
            sys.exit(f"{library} {name}: {verdict}, and the note says: {note!r}")
    page = (HERE / "README.md").read_text()
    begin, end = "<!-- libraries: begin -->\n", "<!-- libraries: end -->"
    before, table, after = page[:page.index(begin) + len(begin)], page[page.index(begin) + len(begin):page.index(end)], page[page.index(end):]
    if options == ["--write"]:
        day = datetime.date.today().isoformat()
        head = (f"timm {timm.__version__}, transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}, {day}:\n\n"
                "| library | model | convention | cases | verdict | largest error | |\n|---|---|---|---|---|---|---|\n")
        (HERE / "README.md").write_text(before + head + "\n".join(lines) + "\n" + after)
    if options == ["--check"]:
        stored = {tuple(row[:3]): row[4] for row in ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()) if len(row) == 7}
        changed = [f"{' '.join(key)}: {verdict}, the table says {stored.get(key)}" for key, verdict in verdicts.items() if stored.get(key) != verdict]
        if changed:
            sys.exit("\n".join(changed))


if __name__ == "__main__":
    main()
