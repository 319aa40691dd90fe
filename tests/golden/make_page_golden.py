"""Writes data/golden/pages: a tiny random ColModernVBERT as its library saves it, with the vectors that it gives of three
drawings and three questions, computed in float64, and the scores of its processor.

    python tests/golden/make_page_golden.py     needs torch, torchvision, transformers 5, safetensors, pillow

    colmodernvbert/           config.json, processor_config.json, model.safetensors, tokenizer.json, tokenizer_config.json,
                              case.json, expected.safetensors
    images/*.png              the drawings

case.json lists drawings and questions, their ids, and the largest difference of the library's own float32. Random weights:
useless as a model.
"""

import json
import pathlib
import shutil

import numpy as np
import torch
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (ColModernVBertConfig, ColModernVBertForRetrieval, ColModernVBertProcessor, Idefics3ImageProcessor,
                          PreTrainedTokenizerFast)

DATA = pathlib.Path(__file__).resolve().parents[2] / "data/golden/pages"
FOLDER = DATA / "colmodernvbert"
TILE, PATCH, SHUFFLE = 32, 4, 2
TOKENS = (TILE // PATCH // SHUFFLE) ** 2
DRAWINGS = {"wide.png": (100, 61), "tall.png": (30, 118), "square.png": (31, 31)}
QUESTIONS = ["revenue by quarter, 2024", "  It's the café's  menu:\n\n\tsoup  ", "two"]
CORPUS = ["revenue by quarter and by year, the revenue of the cafe", "User: Describe the image. Assistant: two pages of a menu with soup",
          "it's what they've said, we'll see; 2024 2025 2026", "a  page   of\n\n text\n"]


def tokenizer():
    """A byte level tokenizer of the form of ModernBERT's."""
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    special = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", "<|begin_of_text|>", "<fake_token_around_image>", "<image>", "<end_of_utterance>",
               "<global-img>"] + [f"<row_{i}_col_{j}>" for i in range(1, 7) for j in range(1, 7)]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=made, pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", mask_token="[MASK]",
                                   model_input_names=["input_ids", "attention_mask"])


def make_processor():
    images = Idefics3ImageProcessor(size={"longest_edge": 4 * TILE}, max_image_size={"longest_edge": TILE})
    return ColModernVBertProcessor(images, tokenizer(), image_seq_len=TOKENS)


def make_model(processor):
    vocabulary = len(processor.tokenizer)
    vision = dict(model_type="siglip_vision_model", hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3, image_size=TILE,
                  patch_size=PATCH, vision_use_head=False)
    text = dict(model_type="modernbert", vocab_size=vocabulary, hidden_size=32, intermediate_size=24, num_hidden_layers=4, num_attention_heads=4,
                local_attention=24, pad_token_id=0, bos_token_id=1, cls_token_id=1, eos_token_id=2, sep_token_id=2)
    config = ColModernVBertConfig(embedding_dim=16, vlm_config=dict(
        model_type="modernvbert", text_config=text, vision_config=vision, pixel_shuffle_factor=SHUFFLE, image_token_id=processor.image_token_id))
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    model = ColModernVBertForRetrieval(config)
    generator = torch.Generator().manual_seed(5)
    for _, parameter in sorted(model.named_parameters()):
        noise = torch.randn(parameter.shape, generator=generator)
        spread = 1.2 / parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 0.2
        one = 1.0 if parameter.dim() == 1 and "norm" in _ and "bias" not in _ else 0.0
        parameter.data = one + spread * noise
    return model.eval()


def drawing(size, seed):
    random = np.random.default_rng(seed)
    image = Image.new("RGB", size, tuple(int(c) for c in random.integers(150, 255, 3)))
    draw = ImageDraw.Draw(image)
    for _ in range(9):
        x, y = int(random.integers(0, size[0])), int(random.integers(0, size[1]))
        draw.rectangle([x, y, x + int(random.integers(2, 25)), y + int(random.integers(1, 9))], fill=tuple(int(c) for c in random.integers(0, 255, 3)))
    return image


def main():
    shutil.rmtree(DATA, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    (DATA / "images").mkdir()
    processor = make_processor()
    model = make_model(processor)
    processor.save_pretrained(FOLDER)
    model.save_pretrained(FOLDER)
    out, case = {}, {"pages": [], "questions": [], "largest_float32": 0.0}

    def run(name, batch):
        single = model.float()(**batch).embeddings[0]
        double = model.double()(**batch).embeddings[0]
        case["largest_float32"] = max(case["largest_float32"], float((single - double).abs().max()))
        out[name] = double.float()
        out[name + ".ids"] = batch["input_ids"][0].to(torch.int32)

    with torch.no_grad():
        for i, (name, size) in enumerate(DRAWINGS.items()):
            image = drawing(size, i)
            image.save(DATA / "images" / name)
            run(f"page.{i}", processor.process_images([image]))
            case["pages"].append(name)
        for i, text in enumerate(QUESTIONS):
            run(f"query.{i}", processor.process_queries([text]))
            case["questions"].append(text)
    pages = [out[f"page.{i}"] for i in range(len(DRAWINGS))]
    questions = [out[f"query.{i}"] for i in range(len(QUESTIONS))]
    # One page and one question at a time: rows of padding are vectors of zeros that compete in the maximum.
    out["scores"] = torch.stack([torch.cat([processor.score_retrieval([q], [p])[0] for p in pages]) for q in questions])
    save_file(out, FOLDER / "expected.safetensors")
    (FOLDER / "case.json").write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
