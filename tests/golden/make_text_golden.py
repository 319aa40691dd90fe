"""Writes data/golden/text: one tiny random model of images and texts per family and layout, with ids, vectors, logits
and probabilities of transformers and OpenCLIP.

    python tests/golden/make_text_golden.py [CASE...]     needs torch, transformers 5, open_clip_torch, safetensors

Every folder holds the checkpoint in its publisher's layout, the tokenizer's files (those of data/golden/tokenizers,
or in case.json their path, where the publisher has none), case.json, and expected.safetensors:

    ids                        (texts, context)    as the library pads and cuts
    pixels                     (2, 3, H, W)        prepared images
    text, image                (texts, E), (2, E)  before they are normalized
    classes.logits, .probabilities   (2, labels)   the labels put into `template`; softmax or sigmoid
    averaged.classifier, .logits, .probabilities   (labels, E), (2, labels): `templates`, averaged as OpenCLIP does

in float32 and, with .f64 appended, in float64 with the same weights. Random weights: useless as models.
"""

import argparse
import json
import pathlib
import shutil
import warnings

import open_clip
import open_clip.tokenizer
import torch
import transformers
from safetensors.torch import save_file

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/golden"
TEXTS = ["a photo of a cat", "A Photo of TWO Dogs!", "", "caf\u00e9 in Stra\u00dfburg, 12 km", "it's </s> here",
         " ".join(["model"] * 90)]
LABELS = ["cat", "fire hydrant", "St. Bernard's dog"]
TEMPLATES = ["a bad photo of a {}.", "itap of my {}."]
HF_TEMPLATE, OC_TEMPLATE = "This is a photo of {}.", "a photo of a {}."
CONTEXT = 20


def randomize(model):
    """Every parameter away from the values that hide mistakes."""
    generator = torch.Generator().manual_seed(5)
    for name, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator)
        if name.endswith(("logit_scale", "temperature")):
            continue
        one = parameter.dim() == 1 and ("norm" in name or "ln_" in name or "scale" in name) and "bias" not in name
        spread = 0.4 / parameter.shape[-1] ** 0.5 * 3 if parameter.dim() > 1 else 0.2
        parameter.data = (1.0 if one else 0.0) + spread * noise
    return model.eval()


def tokenizer_files(name, folder):
    for file in (DATA / "tokenizers" / name).iterdir():
        if file.name not in ("strings.jsonl", "config.json"):
            shutil.copy(file, folder / file.name)


def scores(image, text, scale, bias):
    image, text = (x / x.norm(dim=-1, keepdim=True) for x in (image, text))
    logits = scale.exp() * image @ text.T + (bias if bias is not None else 0)
    return logits, logits.sigmoid() if bias is not None else logits.softmax(dim=-1)


def results(run, encode, score, template, size, averaged):
    """run(dtype) -> (text vectors of ids, image vectors of pixels, logit scale, bias)."""
    generator = torch.Generator().manual_seed(7)
    out = {"ids": encode(TEXTS)["input_ids"], "pixels": torch.randn((2, 3, size, size), generator=generator)}
    for dtype, ending in ((torch.float32, ""), (torch.float64, ".f64")):
        text, image, scale, bias = run(dtype)
        with torch.no_grad():
            vectors = {"text": text(encode(TEXTS)), "image": image(out["pixels"].to(dtype))}
            if score:
                labels = text(encode([template.format(label) for label in LABELS]))
                logits, probabilities = scores(vectors["image"], labels, scale, bias)
                vectors.update({"classes.logits": logits, "classes.probabilities": probabilities})
            if averaged:
                rows = [text(encode([t.format(label) for t in TEMPLATES])) for label in LABELS]
                rows = torch.stack([torch.nn.functional.normalize(x, dim=-1).mean(dim=0) for x in rows])
                rows = torch.nn.functional.normalize(rows, dim=-1)
                logits, probabilities = scores(vectors["image"], rows, scale, bias)
                vectors.update({"averaged.classifier": rows, "averaged.logits": logits,
                                "averaged.probabilities": probabilities})
        out.update({name + ending: value.contiguous() for name, value in vectors.items()})
    return out


def write(folder, expected, **facts):
    facts = {"file": "", "architecture": None, "set": {}, "texts": TEXTS, "template": None, "templates": None,
             "labels": LABELS, "tokenizer": None} | facts
    (folder / "case.json").write_text(json.dumps(facts, indent=1, ensure_ascii=True) + "\n")
    for name in list(expected):
        if name.endswith(".f64"):
            expected[name] = expected[name].double()
    save_file(expected, folder / "expected.safetensors")


# ------------------------------------------------------------------------------------------- transformers


def hf_case(folder, model_class, config, tokenizer_class, files, sigmoid=False, size=16, masked=False,
            temperature=False):
    config._attn_implementation = "sdpa"
    model = randomize(model_class(config))
    if sigmoid:
        model.logit_bias.data.fill_(-1.5)
    if not temperature:
        model.logit_scale.data.fill_(2.3)
    model.save_pretrained(folder)
    tokenizer_files(files, folder)
    tokenizer = tokenizer_class.from_pretrained(folder)
    keys = ("input_ids", "attention_mask") if masked else ("input_ids",)

    def encode(texts):
        rows = tokenizer(texts, padding="max_length", truncation=True, max_length=CONTEXT, return_tensors="pt")
        return {key: rows[key] for key in keys}

    def run(dtype):
        one = model_class.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa").to(dtype).eval()
        scale = -torch.log(one.temperature.detach()) if temperature else one.logit_scale.detach()
        return (lambda rows: one.get_text_features(**rows).pooler_output,
                lambda pixels: one.get_image_features(pixel_values=pixels).pooler_output, scale,
                one.logit_bias.detach() if sigmoid else None)

    expected = results(run, encode, True, HF_TEMPLATE, size, False)
    write(folder, expected, template=HF_TEMPLATE)


def text_sizes(**others):
    return dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
                max_position_embeddings=CONTEXT, **others)


VISION = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, patch_size=8,
              image_size=16)


def vocabulary_of(cls, files):
    return len(cls.from_pretrained(DATA / "tokenizers" / files))


def hf_clip(folder):
    size = vocabulary_of(transformers.CLIPTokenizer, "clip")
    text = text_sizes(vocab_size=size, eos_token_id=2)
    config = transformers.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=20)
    hf_case(folder, transformers.CLIPModel, config, transformers.CLIPTokenizer, "clip")


def hf_clip_eos(folder):
    size = vocabulary_of(transformers.CLIPTokenizer, "clip-split")
    text = text_sizes(vocab_size=size, eos_token_id=size - 1, hidden_act="gelu")
    config = transformers.CLIPConfig(text_config=text, vision_config=VISION, projection_dim=20)
    hf_case(folder, transformers.CLIPModel, config, transformers.CLIPTokenizer, "clip-split")


def hf_siglip(folder):
    size = vocabulary_of(transformers.SiglipTokenizer, "siglip")
    text = text_sizes(vocab_size=size, projection_size=24)
    config = transformers.SiglipConfig(text_config=text, vision_config=VISION)
    hf_case(folder, transformers.SiglipModel, config, transformers.SiglipTokenizer, "siglip", sigmoid=True)


def hf_metaclip2(folder):
    size = vocabulary_of(transformers.XLMRobertaTokenizer, "xlm-roberta")
    text = text_sizes(vocab_size=size, eos_token_id=2)
    config = transformers.MetaClip2Config(text_config=text, vision_config=VISION, projection_dim=20)
    hf_case(folder, transformers.MetaClip2Model, config, transformers.XLMRobertaTokenizer, "xlm-roberta")


def hf_tipsv2(folder):
    size = vocabulary_of(transformers.Tipsv2Tokenizer, "tipsv2")
    vision = dict(VISION, mlp_ratio=2.0, num_register_tokens=1)
    del vision["intermediate_size"]
    config = transformers.Tipsv2Config(text_config=text_sizes(vocab_size=size), vision_config=vision,
                                       temperature_init_value=0.0625)
    hf_case(folder, transformers.Tipsv2Model, config, transformers.Tipsv2Tokenizer, "tipsv2", masked=True,
            temperature=True)


def hf_chinese_clip(folder):
    size = vocabulary_of(transformers.BertTokenizer, "bert")
    config = transformers.ChineseCLIPConfig(text_config=text_sizes(vocab_size=size), vision_config=VISION,
                                            projection_dim=20)
    hf_case(folder, transformers.ChineseCLIPModel, config, transformers.BertTokenizer, "bert", masked=True)


def hf_altclip(folder):
    size = vocabulary_of(transformers.XLMRobertaTokenizer, "xlm-roberta")
    text = text_sizes(vocab_size=size, project_dim=44) | {"max_position_embeddings": CONTEXT + 2}
    config = transformers.AltCLIPConfig(text_config=text, vision_config=VISION, projection_dim=20)
    hf_case(folder, transformers.AltCLIPModel, config, transformers.XLMRobertaTokenizer, "xlm-roberta", masked=True)


# ---------------------------------------------------------------------------------------------- OpenCLIP


def oc_encoder(files, clean):
    if files == "clip-merges":
        merges = DATA / "tokenizers" / files / "bpe_simple_vocab_16e6.txt.gz"
        tokenizer = open_clip.tokenizer.SimpleTokenizer(str(merges), clean=clean, context_length=CONTEXT)
        return len(tokenizer.encoder), lambda texts: {"input_ids": tokenizer(texts)}
    inner = transformers.T5Tokenizer.from_pretrained(DATA / "tokenizers" / files)
    cleaned = open_clip.tokenizer.get_clean_fn(clean)

    def encode(texts):
        return {"input_ids": inner([cleaned(text) for text in texts], padding="max_length", truncation=True,
                                   max_length=CONTEXT, return_tensors="pt").input_ids}

    return len(inner), encode


def oc_model(cfg):
    cfg = dict(cfg)
    custom = cfg.pop("custom_text", False)
    model = (open_clip.CustomTextCLIP if custom else open_clip.CLIP)(**cfg)
    randomize(model)
    model.logit_scale.data.fill_(2.3)
    return model


def oc_run(model):
    def run(dtype):
        one = model.to(dtype).eval()
        bias = None if one.logit_bias is None else one.logit_bias.detach()
        return (lambda rows: one.encode_text(rows["input_ids"]), one.encode_image, one.logit_scale.detach(), bias)

    return run


OC_VISION = dict(image_size=16, layers=2, width=32, head_width=16, patch_size=8)


def open_clip_case(folder, files, clean, text_cfg, **model_cfg):
    size, encode = oc_encoder(files, clean)
    text = dict(context_length=CONTEXT, vocab_size=size, width=24, heads=3, layers=2) | text_cfg
    cfg = dict(embed_dim=20, vision_cfg=OC_VISION, text_cfg=text) | model_cfg
    model = oc_model(cfg)
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": cfg, "preprocess_cfg": {}}, indent=1) + "\n")
    save_file({k: v.clone().contiguous() for k, v in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    expected = results(oc_run(model), encode, True, OC_TEMPLATE, 16, True)
    if files == "clip-merges":
        write(folder, expected, template=OC_TEMPLATE, templates=TEMPLATES, tokenizer="../../tokenizers/" + files)
    else:
        tokenizer_files(files, folder)
        write(folder, expected, template=OC_TEMPLATE, templates=TEMPLATES)


def openclip_clip(folder):
    open_clip_case(folder, "clip-merges", "lower", {}, quick_gelu=True)


def openclip_nocausal(folder):
    open_clip_case(folder, "clip-merges", "lower", {"no_causal_mask": True}, custom_text=True)


def openclip_siglip(folder):
    text = {"no_causal_mask": True, "pool_type": "last", "proj_bias": True, "norm_kwargs": {"eps": 1e-6},
            "act_kwargs": {"approximate": "tanh"}, "mlp_ratio": 1.7, "hf_tokenizer_name": "t5",
            "tokenizer_kwargs": {"clean": "canonicalize"}}
    open_clip_case(folder, "t5", "canonicalize", text, custom_text=True, init_logit_bias=-1.5)


# --------------------------------------------------------------------------------- publishers' bare files


def bare_case(folder, file, extra, drop=(), architecture=None, half=(), **cfg):
    size, encode = oc_encoder("clip-merges", "lower")
    text = dict(context_length=CONTEXT, vocab_size=size, layers=2) | cfg.pop("text_cfg")
    model = oc_model(dict(embed_dim=20, vision_cfg=cfg.pop("vision_cfg"), text_cfg=text, **cfg))
    for name, value in model.state_dict().items():
        if name.endswith(half):
            value.copy_(value.half())
    state = {name: value.half() if half and name.endswith(half) else value.clone()
             for name, value in model.state_dict().items() if not name.startswith(drop)}
    torch.save(state | extra(size), folder / file)
    expected = results(oc_run(model), encode, not drop, OC_TEMPLATE, 16, not drop)
    if drop:
        for name in ("pixels", "image", "image.f64"):
            del expected[name]
    write(folder, expected, file=file, architecture=architecture, template=None if drop else OC_TEMPLATE,
          templates=None if drop else TEMPLATES, tokenizer="../../tokenizers/clip-merges")


def openai_clip(folder):
    """Heads are 64 wide, whatever is stored; matrices are float16."""
    def extra(size):
        return {"input_resolution": torch.tensor(16), "context_length": torch.tensor(CONTEXT),
                "vocab_size": torch.tensor(size)}

    bare_case(folder, "ViT-B-32.pt", extra, half=("proj_weight", "c_fc.weight", "c_proj.weight", "embedding.weight"),
              quick_gelu=True, text_cfg=dict(width=64, heads=1),
              vision_cfg=dict(OC_VISION, width=64, head_width=64, patch_size=8))


def meta_pe(folder):
    """Only the text tower: 8 heads by the name, whatever the width."""
    bare_case(folder, "PE-Core-T16-384.pt", lambda size: {}, drop=("visual.",), architecture="PE-Core-T16-384",
              text_cfg=dict(width=32, heads=8), vision_cfg=OC_VISION)


CASES = {"hf-clip": hf_clip, "hf-clip-eos": hf_clip_eos, "hf-siglip": hf_siglip, "hf-metaclip2": hf_metaclip2,
         "hf-tipsv2": hf_tipsv2, "hf-chinese-clip": hf_chinese_clip, "hf-altclip": hf_altclip, "openclip-clip": openclip_clip, "openclip-nocausal": openclip_nocausal,
         "openclip-siglip": openclip_siglip, "openai-clip": openai_clip, "meta-pe": meta_pe}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", choices=[[], *CASES])
    warnings.filterwarnings("ignore")
    for name in parser.parse_args().case or CASES:
        folder = DATA / "text" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        torch.manual_seed(1)
        CASES[name](folder)
        print(name, sum(file.stat().st_size for file in folder.iterdir()) // 1000, "kB")


if __name__ == "__main__":
    main()
