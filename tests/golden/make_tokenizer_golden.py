"""Writes data/golden/tokenizers: a tiny tokenizer of each class that vit/text reads, trained on the README, and the
ids that the libraries themselves give to strings that are hard to get right.

    python3 tests/golden/make_tokenizer_golden.py [KIND...]

Needs transformers 5, tokenizers, sentencepiece, open_clip_torch and ftfy. No third-party vocabulary is included.
"""

import argparse
import collections
import gzip
import io
import json
import pathlib
import shutil
import tempfile

import open_clip.tokenizer
import regex
import sentencepiece
import tokenizers
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    CLIPTokenizer,
    GemmaTokenizer,
    SiglipTokenizer,
    T5Tokenizer,
    Tipsv2Tokenizer,
    XLMRobertaTokenizer,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "data/golden/tokenizers"
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
SENTENCES = [line for line in TEXT.splitlines() if line.strip()]

STRINGS = [
    "", " ", "a photo of a cat", "A Photo of a Cat!", "two  spaces\tand a tab", "line\none\r\nline two",
    "it's we're I'VE they'll don't 'S", "3 cats, 12 dogs & 1,000 birds", "snake_case under_scores",
    "caf\u00e9 cafe\u0301 \u00c9cole", "na\u00efve fa\u00e7ade", "\u039f\u0394\u039f\u03a3 \u03a3\u0391\u03a3", "\u0130stanbul I\u0131",
    "stra\u00dfe STRASSE", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440", "\u732b\u3068\u72ac", "\uac00\uac01 \u1100\u1161", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467 ok", "\u00bd\u0301 e\u0323\u0307",
    "\ufb01ne \ufb02our", "\uff26\uff55\uff4c\uff4c\u3000width", "\u201ccurly\u201d \u2018quotes\u2019", "caf\u00c3\u00a9 \u00e2\u20ac\u0153x\u00e2\u20ac\u009d", "&lt;b&gt; &amp;amp; &eacute; &EACUTE; &#233; &#128;",
    "<b>tags</b> &lt;", "\u00a0nbsp\u00a0", "\u2581mark \u2581", "zero\u200bwidth\ufeff", "bell\u0007 and \u001b[31mred\u001b[0m", "\u001c\u001dseparators",
    "<|startoftext|> <|endoftext|>", "<|STARTOFTEXT|>", "<start_of_text>", "</s> end", "<unk> <pad> <mask>", "<eos>", "x <mask>",
    "don\u2019t", "'\u017fo", "\u2167 \u00b2 \u0663", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0905\u091c\u093c", "...!!!", "a" * 40, " \u2028para\u2029",
    " ".join(["model"] * 30),
]


def write_case(name, answers, strings=None, **config):
    rows = [
        {"text": text, "ids": {library: encode(text) for library, encode in answers.items()}}
        for text in strings or STRINGS
    ]
    lines = "\n".join(json.dumps(row) for row in rows)
    (OUT / name / "strings.jsonl").write_text(lines + "\n")
    for file, content in config.items():
        (OUT / name / f"{file}.json").write_text(json.dumps(content, indent=1) + "\n")


def cleaned(rule, tokenizer):
    clean = open_clip.tokenizer.get_clean_fn(rule)
    return lambda text: tokenizer(clean(text)).input_ids


def plain(tokenizer):
    return lambda text: tokenizer(text).input_ids


def clip_merges(count):
    """Byte pair encoding of the words of the README, as CLIP's vocabulary was made."""
    symbols = open_clip.tokenizer.bytes_to_unicode()
    words = collections.Counter()
    for word in regex.findall(r"\p{L}+|\p{N}|[^\s\p{L}\p{N}]+", TEXT.lower()):
        letters = [symbols[b] for b in word.encode()]
        words[tuple(letters[:-1] + [letters[-1] + "</w>"])] += 1
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += n
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged = collections.Counter()
        for word, n in words.items():
            out, i = [], 0
            while i < len(word):
                if word[i : i + 2] == best:
                    out.append(best[0] + best[1])
                    i += 2
                else:
                    out.append(word[i])
                    i += 1
            merged[tuple(out)] += n
        words = merged
    return merges


def make_clip():
    folder = OUT / "clip"
    folder.mkdir()
    merges = clip_merges(200)
    symbols = list(open_clip.tokenizer.bytes_to_unicode().values())
    names = symbols + [s + "</w>" for s in symbols] + ["".join(m) for m in merges]
    vocabulary = {name: i for i, name in enumerate(names + ["<|startoftext|>", "<|endoftext|>"])}
    tokenizer = CLIPTokenizer(vocab=vocabulary, merges=merges, model_max_length=77)
    tokenizer.save_pretrained(folder)
    # The same as vocab.json and merges.txt, and as the merges only.
    split = OUT / "clip-split"
    split.mkdir()
    shutil.copy(folder / "tokenizer_config.json", split)
    (split / "vocab.json").write_text(json.dumps(vocabulary))
    lines = "\n".join(" ".join(m) for m in merges)
    (split / "merges.txt").write_text("#version: 0.2\n" + lines + "\n", encoding="utf-8")
    packed = OUT / "clip-merges"
    packed.mkdir()
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as stream:
        stream.write(("version\n" + lines).encode())
    (packed / "bpe_simple_vocab_16e6.txt.gz").write_bytes(buffer.getvalue())
    simple = open_clip.tokenizer.SimpleTokenizer(bpe_path=str(packed / "bpe_simple_vocab_16e6.txt.gz"))

    def python(text):
        return [simple.sot_token_id] + simple.encode(text) + [simple.eot_token_id]

    loaded = AutoTokenizer.from_pretrained(folder)
    for name in ("clip", "clip-split", "clip-merges"):
        write_case(name, {"transformers": plain(loaded), "open_clip": python})


def train(folder, name, **options):
    """A SentencePiece model of the README in `folder`/`name`."""
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch) / "model"
        if options.pop("small_rules", False):
            # Half of what NFKC does here, so that the map is small: u+FF21.. -> letters, ligatures, fractions.
            rules = pathlib.Path(scratch) / "rules.tsv"
            pairs = [(0xFF21 + i, [0x41 + i]) for i in range(26)] + [(0xFF41 + i, [0x61 + i]) for i in range(26)]
            pairs += [(0xFB01, [0x66, 0x69]), (0xBD, [0x31, 0x2044, 0x32]), (0x3000, [0x20]), (0xA0, [0x20]), (0x9, [0x20])]
            lines = [f"{a:X}\t{' '.join(f'{c:X}' for c in b)}" for a, b in pairs]
            lines += ["65 301\tE9", "D A\t20", "A\t20", "D\t20", "200B\t"]
            rules.write_text("\n".join(lines) + "\n")
            options["normalization_rule_tsv"] = str(rules)
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(SENTENCES), model_prefix=str(prefix), num_threads=1, minloglevel=2, **options
        )
        shutil.copy(f"{prefix}.model", folder / name)


def save(cls, folder, config):
    """Lets the class convert the .model file of the folder, and writes what it would publish."""
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    tokenizer = cls.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    return AutoTokenizer.from_pretrained(folder)


def make_unigram():
    t5 = OUT / "t5"
    t5.mkdir()
    train(t5, "spiece.model", vocab_size=400, small_rules=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    config = {"tokenizer_class": "T5Tokenizer", "extra_ids": 0, "additional_special_tokens": [], "pad_token": "</s>"}
    tokenizer = save(T5Tokenizer, t5, config)
    write_case("t5", {"transformers": plain(tokenizer), "open_clip": cleaned("canonicalize", tokenizer)})

    xlm = OUT / "xlm-roberta"
    xlm.mkdir()
    train(xlm, "sentencepiece.bpe.model", vocab_size=400, small_rules=True)
    tokenizer = save(XLMRobertaTokenizer, xlm, {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 512})
    (xlm / "sentencepiece.bpe.model").rename(OUT / "sentencepiece.bpe.model")
    write_case("xlm-roberta", {"transformers": plain(tokenizer), "open_clip": cleaned("whitespace", tokenizer)})
    model_only = OUT / "xlm-roberta-model"
    model_only.mkdir()
    (OUT / "sentencepiece.bpe.model").rename(model_only / "sentencepiece.bpe.model")
    shutil.copy(xlm / "tokenizer_config.json", model_only)
    write_case("xlm-roberta-model", {"transformers": plain(AutoTokenizer.from_pretrained(model_only))})

    siglip = OUT / "siglip"
    siglip.mkdir()
    train(siglip, "spiece.model", vocab_size=400, small_rules=True, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    config = {"tokenizer_class": "SiglipTokenizer", "model_max_length": 64}
    (siglip / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    write_case("siglip", {"transformers": plain(SiglipTokenizer.from_pretrained(siglip))})


def make_byte_fallback():
    gemma = OUT / "gemma"
    gemma.mkdir()
    train(gemma, "tokenizer.model", vocab_size=700, model_type="bpe", byte_fallback=True, pad_id=0, eos_id=1,
          bos_id=2, unk_id=3, normalization_rule_name="identity", add_dummy_prefix=False,
          remove_extra_whitespaces=False, user_defined_symbols=["<mask>", "\n", "\n\n", "\u2581\u2581"])
    model = sentencepiece.SentencePieceProcessor(str(gemma / "tokenizer.model"))
    names = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    ids = {name: i for i, name in enumerate(names)}
    merges = [
        (name[:i], name[i:]) for name in names for i in range(1, len(name)) if name[:i] in ids and name[i:] in ids
    ]
    tokenizer = GemmaTokenizer(vocab=ids, merges=merges, add_bos_token=False, add_eos_token=True)
    tokenizer.add_tokens(["\n", "\n\n", "\u2581\u2581"])
    tokenizer.save_pretrained(gemma)
    config = json.loads((gemma / "tokenizer_config.json").read_text())
    config.update(tokenizer_class="GemmaTokenizer", padding_side="right")
    (gemma / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
    (gemma / "tokenizer.model").unlink()
    tokenizer = AutoTokenizer.from_pretrained(gemma)
    write_case("gemma", {"transformers": plain(tokenizer), "open_clip": cleaned("canonicalize", tokenizer)},
               config={"model_type": "siglip"})
    naflex = OUT / "siglip2"
    shutil.copytree(gemma, naflex)
    (naflex / "config.json").write_text('{"model_type": "siglip2"}\n')
    write_case("siglip2", {"transformers": plain(AutoTokenizer.from_pretrained(naflex))})

    tips = OUT / "tipsv2"
    tips.mkdir()
    train(tips, "tokenizer.model", vocab_size=700, model_type="bpe", byte_fallback=True, small_rules=True, pad_id=0,
          unk_id=1, bos_id=-1, eos_id=-1)
    config = {"tokenizer_class": "Tipsv2Tokenizer", "do_lower_case": True, "pad_token": "<pad>", "unk_token": "<unk>"}
    (tips / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    write_case("tipsv2", {"transformers": plain(Tipsv2Tokenizer.from_pretrained(tips))})


# What BERT's rules are hard on: ideographs of all blocks, accents, marks, punctuation, words that are too long.
BERT_STRINGS = [
    "\u4e00\u53ea\u732b\u7684\u7167\u7247", "\u732bcat\u72ac 3\u53ea", "\u732b\u3002\u72ac\uff0c", "\u3402 \U00020000 \U0002b830 \U0002b921 \uf900 \U0002f800", "\u304b\u3099 \u30ab\u30fc",
    "caf\u00e9 CAFE\u0301 \u1ebe\u0302 \u0149", "[MASK] [CLS] x[SEP]y [mask] [UNK]", "a-b_c$d^e`f|g~h+i", "\u00a7 \u00b6 \u2020 \u20ac \u00a1\u00bf",
    "\u00ad\u200d\ue000\ufffd x", "#hash ##ing", "a" * 100, "a" * 101, "model" * 20 + "s", "\u0130I\u0131 \u03a3\u03a3", "e\u0301\u0323\u20dd",
    "\u2e43 \u2e52 \u061d \u166d", "\u0378 \u0897", "x\u1734 x\u1885 x\ua9bd x\U000111c9",
]


def bert_vocabulary(lower):
    """Special tokens, the characters of the README and some ideographs, its most frequent words and ends of words."""
    rules = tokenizers.normalizers.BertNormalizer(lowercase=lower)
    words = collections.Counter(word for line in SENTENCES
                                for word, _ in tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(rules.normalize_str(line)))
    ends = collections.Counter()
    for word, count in words.items():
        for length in range(2, min(5, len(word))):
            ends["##" + word[-length:]] += count
    letters = sorted(set("".join(words)) | set("\u4e00\u53ea\u732b\u72ac\u7684\u7167\u7247\u3002\uff0c\u20ac\u3402"))
    frequent = [part for parts in (words, ends) for part, _ in sorted(parts.items(), key=lambda item: (-item[1], item[0]))[:150]]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *["##" + letter for letter in letters], *frequent]
    return list(dict.fromkeys(names))


def make_bert():
    """The vocabulary as tokenizer.json and, with capitals and accents, as a list."""
    for name, lower in (("bert", True), ("bert-list", False)):
        folder = OUT / name
        folder.mkdir()
        names = bert_vocabulary(lower)
        config = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower, "model_max_length": 512}
        if lower:
            BertTokenizer(vocab={token: i for i, token in enumerate(names)}).save_pretrained(folder)
        else:
            (folder / "vocab.txt").write_text("".join(token + "\n" for token in names), encoding="utf-8")
        (folder / "tokenizer_config.json").write_text(json.dumps(config, indent=1) + "\n")
        write_case(name, {"transformers": plain(AutoTokenizer.from_pretrained(folder))}, STRINGS + BERT_STRINGS)


KINDS = {"clip": (make_clip, ["clip", "clip-split", "clip-merges"]),
         "unigram": (make_unigram, ["t5", "xlm-roberta", "xlm-roberta-model", "siglip"]),
         "byte_fallback": (make_byte_fallback, ["gemma", "siglip2", "tipsv2"]),
         "bert": (make_bert, ["bert", "bert-list"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", nargs="*", choices=[[], *KINDS])
    for kind in parser.parse_args().kind or KINDS:
        make, folders = KINDS[kind]
        for folder in folders:
            shutil.rmtree(OUT / folder, ignore_errors=True)
        OUT.mkdir(parents=True, exist_ok=True)
        make()


if __name__ == "__main__":
    main()
