"""Holds vectors of pages and questions against transformers on random tiny ColModernVBERTs, drawn with every argument that matters.

    python tests/rings/pages/compare_pages.py build/release/vit [COUNT [FIRST]]     needs torch, torchvision, transformers 5, safetensors, pillow

A model agrees if no vector differs by more than max(3e-6, twice the library's own float32 error) of the longest before they are brought to length 1, and
scores are those of the library's processor.
Exit status 1 if one does not.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from PIL import Image
from safetensors.numpy import load_file

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/golden"))
import make_page_golden as golden  # noqa: E402
from transformers import ColModernVBertConfig, ColModernVBertForRetrieval, ColModernVBertProcessor, Idefics3ImageProcessor  # noqa: E402

LIMIT = 3e-6
WORDS = ["revenue", "of", "the", "café", "2024,", "it's", "\n", "a  page", "naïve", "½", "text", "<row_1_col_1>", "[SEP]", "日本"]


def draw(random):
    """A model and its processor."""
    patch, shuffle = int(random.choice([2, 4, 6])), int(random.choice([1, 2, 4]))
    tile = patch * shuffle * int(random.integers(1, 5))
    heads, depth = int(random.integers(1, 5)), int(random.integers(1, 6))
    width = heads * 2 * int(random.integers(-(-8 // heads), 9))  # a norm over a few channels multiplies any rounding
    images = Idefics3ImageProcessor(size={"longest_edge": tile * int(random.integers(1, 5))}, max_image_size={"longest_edge": tile},
                                    image_mean=random.uniform(0.3, 0.6, 3).tolist(), image_std=random.uniform(0.2, 0.6, 3).tolist(),
                                    resample=int(random.choice([1, 2, 3])))
    extra = {}
    if random.random() < 0.3:
        extra["visual_prompt_prefix"] = "[CLS]<image>Read the page.\n"
    if random.random() < 0.3:
        extra["query_prefix"] = "question: "
    processor = ColModernVBertProcessor(images, golden.tokenizer(), image_seq_len=(tile // patch // shuffle) ** 2, **extra)
    vision_heads = int(random.integers(1, 4))
    vision = dict(model_type="siglip_vision_model", hidden_size=vision_heads * 4 * int(random.integers(2, 6)), intermediate_size=int(random.integers(8, 60)),
                  num_hidden_layers=int(random.integers(1, 4)), num_attention_heads=vision_heads, image_size=tile, patch_size=patch,
                  vision_use_head=bool(random.random() < 0.5), layer_norm_eps=float(random.choice([1e-6, 1e-5])),
                  hidden_act=str(random.choice(["gelu_pytorch_tanh", "gelu", "quick_gelu"])))
    text = dict(model_type="modernbert", vocab_size=len(processor.tokenizer) + int(random.integers(0, 3)), hidden_size=width,
                intermediate_size=int(random.integers(4, 50)), num_hidden_layers=depth, num_attention_heads=heads, local_attention=int(random.integers(1, 60)),
                pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2, norm_eps=float(random.choice([1e-5, 1e-6, 1e-12])),
                norm_bias=bool(random.random() < 0.3), attention_bias=bool(random.random() < 0.3), mlp_bias=bool(random.random() < 0.3),
                hidden_activation=str(random.choice(["gelu", "silu", "gelu_pytorch_tanh", "relu", "quick_gelu"])))
    if random.random() < 0.5:
        text["layer_types"] = [str(kind) for kind in random.choice(["full_attention", "sliding_attention"], depth)]
    elif random.random() < 0.5:
        text["global_attn_every_n_layers"] = int(random.integers(1, 4))
    if random.random() < 0.5:
        text["rope_parameters"] = {kind: {"rope_type": "default", "rope_theta": float(random.choice([100.0, 10000.0, 500000.0]))}
                                   for kind in ("full_attention", "sliding_attention")}
    elif random.random() < 0.5:
        text.update(global_rope_theta=float(random.choice([1000.0, 80000.0])), local_rope_theta=float(random.choice([50.0, 20000.0])))
    config = ColModernVBertConfig(embedding_dim=int(random.integers(1, 40)), vlm_config=dict(
        model_type="modernvbert", text_config=text, vision_config=vision, pixel_shuffle_factor=shuffle, image_token_id=processor.image_token_id))
    config._attn_implementation = "sdpa"
    model = ColModernVBertForRetrieval(config)
    for name, parameter in model.named_parameters():
        noise = torch.from_numpy(random.standard_normal(parameter.shape).astype(np.float32))
        spread = 1.2 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.2
        one = 1.0 if parameter.dim() == 1 and "norm" in name and "bias" not in name else 0.0
        parameter.data = one + spread * noise
    return model.eval(), processor


def vit(program, *arguments):
    run = subprocess.run([program, *map(str, arguments), "--progress", "never"], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return run.stdout


def compare(program, seed, folder):
    random = np.random.default_rng(seed)
    torch.manual_seed(seed)
    model, processor = draw(random)
    processor.save_pretrained(folder)
    model.save_pretrained(folder)
    sizes = [tuple(int(edge) for edge in random.integers(8, 90, 2)) for _ in range(3)]
    names = []
    for i, size in enumerate(sizes):
        names.append(folder / f"image-{i}.png")
        golden.drawing(size, seed + i).save(names[-1])
    questions = [" ".join(random.choice(WORDS, int(random.integers(1, 9)))) for _ in range(3)]
    (folder / "questions.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in questions))
    vit(program, "embed", "--model", folder, "--features", "page", *names, "--output", folder / "pages.safetensors")
    vit(program, "embed", "--model", folder, "--features", "page", "--text-file", folder / "questions.jsonl", "--output", folder / "questions.safetensors")
    pages, found = load_file(folder / "pages.safetensors"), load_file(folder / "questions.safetensors")
    batches = [(pages, "page", i, processor.process_images([Image.open(name)])) for i, name in enumerate(names)]
    batches += [(found, "question", i, processor.process_queries([text])) for i, text in enumerate(questions)]
    worst, share = 0.0, 0.0
    with torch.no_grad():
        for arrays, kind, i, batch in batches:
            single, double = model.float()(**batch).embeddings[0], model.double()(**batch).embeddings[0]
            # A vector is divided by its length at the end: rounding counts as it was before.
            lengths = model.embedding_proj_layer(model.vlm(**batch)[0])[0].norm(dim=-1, keepdim=True)
            weights = (lengths / lengths.max()).numpy()
            own = float(((single - double).abs() * torch.from_numpy(weights)).max())
            vectors = arrays[f"{kind}.{i}"] if f"{kind}.{i}" in arrays else arrays[kind][i]
            if vectors.shape != tuple(double.shape):
                raise RuntimeError(f"{kind} {i}: {vectors.shape} instead of {tuple(double.shape)}")
            error = float((np.abs(vectors - double.numpy()) * weights).max())
            worst, share = max(worst, error), max(share, error / max(LIMIT, 2 * own))
    vit(program, "index", "--model", folder, "--pages", *names, "--output", folder / "index")
    for i, text in enumerate(questions):
        scores = json.loads(vit_search(program, folder / "index", text))["results"]
        for result in scores:
            page = names.index(pathlib.Path(result["file"]))
            get = lambda arrays, kind, j: torch.from_numpy(arrays[f"{kind}.{j}"] if f"{kind}.{j}" in arrays else arrays[kind][j])  # noqa: E731
            question = get(found, "question", i)
            wanted = float(processor.score_retrieval([question], [get(pages, "page", page)])[0, 0])
            if abs(result["score"] - wanted) > 1e-6 * max(1.0, abs(wanted)) * len(question) ** 0.5:
                raise RuntimeError(f"score {result['score']} instead of {wanted}")
    return worst, share


def vit_search(program, index, text):
    run = subprocess.run([program, "search", str(index), "--text", text, "--format", "json"], capture_output=True, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip())
    return run.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=pathlib.Path)
    parser.add_argument("count", type=int, nargs="?", default=40)
    parser.add_argument("first", type=int, nargs="?", default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    failed, worst, largest = 0, 0.0, 0.0
    for seed in range(options.first, options.first + options.count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                error, share = compare(options.vit.resolve(), seed, pathlib.Path(folder))
            except RuntimeError as problem:
                failed += 1
                print(f"{seed}: {problem}", flush=True)
                continue
        worst, largest = max(worst, share), max(largest, error)
        if share > 1:
            failed += 1
            print(f"{seed}: {error:.2e}, {share:.0%} of the limit", flush=True)
    print(f"{options.count} models, {failed} differ; largest error {largest:.1e}, at most {worst:.0%} of the limit")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
