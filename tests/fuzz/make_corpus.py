#!/usr/bin/env python3
"""Writes the inputs of tests/fuzz/corpus that no golden file has: an image for each layout that a decoder distinguishes, and
texts with each thing that a reader knows or refuses by name. Needs Pillow."""

import io
import json
import math
import pathlib
import random
import struct
import zlib

from PIL import Image

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
GOLDEN = CORPUS.parents[2] / "data" / "golden"


def write(target, name, data):
    path = CORPUS / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def picture(mode, size=(9, 5)):
    random.seed(f"{mode}{size}")
    image = Image.new("RGBA", size)
    image.putdata([tuple(random.randrange(256) for _ in range(4)) for _ in range(size[0] * size[1])])
    return image.convert("RGB").quantize(16) if mode == "P" else image.convert("RGB").convert(mode) \
        if mode not in ("RGBA", "LA") else image.convert(mode)


def saved(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, color, rows, *chunks, interlace=0):
    head = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunks) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


def pngs():
    rows = b"".join(bytes([filter_type]) + bytes(range(16 * filter_type, 16 * filter_type + 8)) for filter_type in range(5))
    palette = chunk(b"PLTE", bytes(range(48)))
    transparent = chunk(b"tRNS", bytes((0, 128, 255)))
    for depth in (1, 2, 4, 8):
        write("png", f"palette_{depth}", png(64 // depth, 5, depth, 3, rows, palette, transparent))
        write("png", f"grey_{depth}", png(64 // depth, 5, depth, 0, rows, chunk(b"tRNS", b"\0\1")))
    write("png", "grey_16", png(4, 5, 16, 0, rows, chunk(b"tRNS", b"\0\1")))
    write("png", "no_palette", png(8, 5, 8, 3, rows))
    rgb = b"".join(bytes([filter_type]) + bytes(range(24)) for filter_type in range(5))
    write("png", "rgb_transparent", png(8, 5, 8, 2, rgb, chunk(b"tRNS", struct.pack(">HHH", 0, 1, 2))))
    write("png", "rgb_16", png(4, 5, 16, 2, rgb))
    write("png", "grey_alpha_16", png(2, 5, 16, 4, rows))
    write("png", "rgba_16", png(3, 5, 16, 6, rgb))
    write("png", "interlaced", png(1, 1, 8, 2, b"\0abc", interlace=1))
    write("png", "two_headers", png(8, 5, 8, 0, rows, chunk(b"IHDR", struct.pack(">IIBBBBB", 9, 5, 8, 0, 0, 0, 0))))
    exif = b"Exif\0\0MM\0*\0\0\0\x08\0\1\x01\x12\0\3\0\0\0\1\0\6\0\0\0\0\0\0"
    write("png", "exif", png(8, 5, 8, 0, rows, chunk(b"eXIf", exif[6:])))
    profile = f"\nexif\n      {len(exif)}\n{exif.hex()}\n".encode()
    write("png", "profile_packed", png(8, 5, 8, 0, rows, chunk(b"zTXt", b"Raw profile type exif\0\0" + zlib.compress(profile))))
    write("png", "profile", png(8, 5, 8, 0, rows, chunk(b"tEXt", b"Raw profile type exif\0" + profile)))
    packet = b'<x:xmpmeta tiff:Orientation="3"/>'
    for flag, text in ((0, packet), (1, zlib.compress(packet))):
        write("png", f"xmp_{flag}", png(8, 5, 8, 0, rows, chunk(b"iTXt", b"XML:com.adobe.xmp\0" + bytes((flag, 0, 0, 0)) + text)))


def tiff(tags, data, order="<"):
    """Tags: number -> values, of 32 bits; a value of None is where the data start."""
    count = len(tags) + 1
    extra_at = 8 + 2 + 12 * count + 4
    extra, entries = b"", b""
    total = sum(4 * len(values) for values in tags.values() if len(values) > 1)
    tags = dict(tags)
    for number in sorted(tags):
        values = [extra_at + total + (value[1] if isinstance(value, tuple) else 0) if value is None or isinstance(value, tuple)
                  else value for value in tags[number]]
        packed = struct.pack(f"{order}{len(values)}I", *values)
        if len(values) > 1:
            place, extra = struct.pack(order + "I", extra_at + len(extra)), extra + packed
        else:
            place = packed
        entries += struct.pack(order + "HHI", number, 4, len(values)) + place
    entries += struct.pack(order + "HHI", 65000, 4, 1) + struct.pack(order + "I", 0)
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    return head + struct.pack(order + "H", count) + entries + b"\0\0\0\0" + extra + data


def tiffs():
    for compression in ("raw", "tiff_lzw", "packbits", "tiff_adobe_deflate", "jpeg"):
        for mode in ("1", "L", "P", "RGB", "RGBA", "CMYK", "LA", "I;16"):
            try:
                image = picture("L").convert("I;16") if mode == "I;16" else picture(mode)
                write("tiff", f"{compression}_{mode.replace(';', '_')}", saved(image, "TIFF", compression=compression))
            except (OSError, ValueError, KeyError):
                pass
    base = {256: [20], 257: [18], 258: [8], 259: [1], 262: [1], 277: [1]}
    tiles = {322: [16], 323: [16], 324: [(0, 0), (0, 256), (0, 512), (0, 768)], 325: [256] * 4}
    write("tiff", "tiles", tiff({**base, **tiles}, bytes(range(256)) * 4))
    write("tiff", "tiles_large", tiff({**base, **tiles, 322: [65536], 323: [65536]}, bytes(range(256)) * 4))
    write("tiff", "tiles_big_endian", tiff({**base, **tiles}, bytes(range(256)) * 4, ">"))
    planes = {**base, 258: [8, 8, 8], 262: [2], 277: [3], 284: [2], 278: [18],
              273: [(0, 0), (0, 360), (0, 720)], 279: [360] * 3}
    write("tiff", "planes", tiff(planes, bytes(range(240)) * 5))
    write("tiff", "palette", tiff({**base, 262: [3], 273: [None], 278: [18], 279: [360], 320: list(range(0, 76800, 100))},
                                  bytes(range(180)) * 2))
    lab = {**base, 258: [8, 8, 8], 262: [8], 277: [3], 278: [7]}
    write("tiff", "lab", tiff({**lab, 273: [(0, 0), (0, 420), (0, 840)], 279: [420, 420, 240]}, bytes(range(216)) * 5))
    write("tiff", "lab_planes", tiff({**planes, 262: [8]}, bytes(range(240)) * 5))
    write("tiff", "no_size", tiff({256: [20], 258: [8]}, b""))
    write("tiff", "white_is_zero", tiff({**base, 262: [0], 273: [None], 278: [18], 279: [360]}, bytes(range(180)) * 2))
    alpha = {**base, 258: [8] * 4, 262: [2], 277: [4], 338: [1], 273: [None], 278: [18], 279: [1440]}
    write("tiff", "premultiplied", tiff(alpha, bytes(range(240)) * 6))


def bmps():
    for name, masks in (("rgba", (0xFF0000, 0xFF00, 0xFF, 0xFF000000)), ("bgra", (0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
                        ("555", (0x7C00, 0x3E0, 0x1F, 0)), ("none", (0, 0, 0, 0)), ("odd", (0xF0, 0xF00, 0xF, 0))):
        for bits in (16, 24, 32):
            head = struct.pack("<IiiHHIIiiII", 108, 4, 2, 1, bits, 3, 0, 0, 0, 0, 0) + struct.pack("<4I", *masks)
            head = head.ljust(108, b"\0")
            data = b"BM" + struct.pack("<IHHI", 0, 0, 0, 14 + 108) + head + bytes(range(32))
            write("bmp", f"masks_{name}_{bits}", data)
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        write("bmp", "saved_" + mode, saved(picture(mode), "BMP"))
    write("bmp", "os2", b"BM" + struct.pack("<IHHI", 0, 0, 0, 26) + struct.pack("<IHHHH", 12, 4, 2, 1, 24) + bytes(24))
    write("bmp", "top_down", b"BM" + struct.pack("<IHHI", 0, 0, 0, 54) + struct.pack("<IiiHHIIiiII", 40, 4, -2, 1, 24, 0, 0, 0, 0, 0, 0) + bytes(24))


def others():
    for mode in ("L", "RGB", "CMYK"):
        for name, options in (("plain", {}), ("progressive", {"progressive": True}), ("restarts", {"restart_marker_blocks": 1})):
            write("jpeg", f"{mode}_{name}", saved(picture(mode, (17, 9)), "JPEG", **options))
    exif = Image.Exif()
    exif[0x112] = 8
    write("jpeg", "exif", saved(picture("RGB"), "JPEG", exif=exif))
    write("jpeg", "xmp", saved(picture("RGB"), "JPEG", xmp=b'<x:xmpmeta tiff:Orientation="5"/>'))
    for mode in ("RGB", "RGBA"):
        write("webp", f"lossless_{mode}", saved(picture(mode), "WEBP", lossless=True))
        write("webp", f"lossy_{mode}", saved(picture(mode), "WEBP", exif=exif))
    write("webp", "animated", saved(picture("RGB"), "WEBP", save_all=True, append_images=[picture("L").convert("RGB")]))
    for mode in ("L", "LA", "RGB", "RGBA"):
        for name, options in (("jp2", {}), ("j2k", {"no_jp2": True}), ("tiles", {"tile_size": (4, 4)}), ("layers", {"quality_mode": "rates", "quality_layers": [4, 2], "irreversible": True})):
            write("jpeg2000", f"{mode}_{name}", saved(picture(mode, (16, 16)), "JPEG2000", **options))
    for mode in ("L", "P", "RGB"):
        write("gif", "saved_" + mode, saved(picture(mode), "GIF"))
    write("gif", "interlaced", saved(picture("L", (9, 19)), "GIF", interlace=1))
    # Codes that nothing defines, and data that say that they end before the pixels do.
    head = b"GIF89a\4\0\1\0\x80\0\0\x0a\x14\x1e\xc8\xd2\xdc,\0\0\0\0\4\0\1\0\0\2"
    write("gif", "undefined_code", head + b"\2\xcc\3\0;")
    write("gif", "early_end", head + b"\2\x4c\1\0;")
    write("json", "zero_byte", b"{}\0 rubbish")
    for number, rule in enumerate(("linear", "ntk,axes=common,factor=2", "yarn,beta_fast=4,beta_slow=0.5,attention_factor=1.25,temperature=log",
                                   "none,factor=2", "yarn,beta_fast=x", "linear\n", "linear,scale=2", "ntk,beta_fast=4")):
        write("rope_scaling", f"rule_{number}", rule.encode())


def layouts():
    """The golden layout own-rope with one thing after the other said in another way, or wrongly."""
    golden = (GOLDEN / "layouts/own-rope/layout.json").read_text()
    changes = {
        "preprocess": ('"tensors": {', '"preprocess": {"crop_pct": 0.9, "filter": "bilinear", "std": [1, 1, 1], '
                       '"pad_color": [1, 2, 3]}, "labels": ["a", "b", "c", "d", "e", "f"], "tensors": {'),
        "filter": ('"tensors": {', '"preprocess": {"filter": "nearer"}, "tensors": {'),
        "constants": ('"norm": "trunk.ln_out.*"', '"norm": {"constant": 1}'),
        "mask": ('"norm": "trunk.ln_out.*"', '"norm.gamma": {"source": "trunk.ln_out.weight", "mask": '
                 '"trunk.ln_out.bias"}, "norm.beta": {"constant": 0}'),
        "transposed": ('"fc2": "trunk.stage.{block}.ffn.shrink.*"', '"fc2.weight": {"source": '
                       '"trunk.stage.{1*block+0}.ffn.shrink.weight", "transposed": true}'),
        "two_forms": ('"fc2": "trunk.stage.{block}.ffn.shrink.*"', '"fc2.weight": {"source": '
                      '"trunk.stage.{block}.ffn.shrink.weight", "transposed": true, "head_rows": true}'),
        "channels_last": ('"patch": "trunk.stem.*"', '"patch": {"source": "trunk.stem.*", "channels_last": true}'),
        "head_rows": ('"qkv": [', '"qkv": [{"source": "trunk.stage.{block}.attn.query.*", "head_rows": true},'),
        "sincos": ('"register_tokens"', '"position_table": {"sincos_2d": 10000}, "register_tokens"'),
        "sincos_elsewhere": ('"norm": "trunk.ln_out.*"', '"norm.gamma": {"sincos_2d": 10000}'),
        "sincos_and_source": ('"register_tokens"', '"position_table": {"sincos_2d": 1, "source": "x"}, "register_tokens"'),
        "large_constant": ('"norm": "trunk.ln_out.*"', '"norm": {"constant": 1e7}'),
        "no_source": ('"norm": "trunk.ln_out.*"', '"norm": {"transposed": false}'),
        "unknown_member": ('"norm": "trunk.ln_out.*"', '"norm": {"shape": 1}'),
        "number_as_name": ('"norm": "trunk.ln_out.*"', '"norm": 3'),
        "no_pieces": ('"norm": "trunk.ln_out.*"', '"norm": []'),
        "empty_name": ('"norm": "trunk.ln_out.*"', '"norm": ""'),
        "twice": ('"norm": "trunk.ln_out.*"', '"norm": "trunk.ln_out.*", "norm.gamma": "trunk.ln_out.weight"'),
        "table": ('"register_tokens": "trunk.memory"', '"position_table": "trunk.memory"'),
        "class_token": ('"register_tokens"', '"class_token": {"constant": 0.5}, "register_tokens"'),
        "no_height": ('"image_height": 24,', ""),
        "no_size": ('"image_height": 24,\n    "image_width": 24,', ""),
        "head_dim": ('"num_heads": 2', '"head_dim": 8'),
        "no_heads": ('"num_heads": 2,', ""),
        "scaling": ('"theta": 30', '"theta": 30, "rope_scaling": "yarn,factor=2", "reference_grid": {"rows": 2, "columns": 3}'),
        "mixed": ('"rope": "axial"', '"rope": "mixed"'),
        "no_rope": ('"rope": "axial"', '"rope": "none", "added": "patches", "added_grid": {"rows": 3, "columns": 3}'),
        "attention_pool": ('"pooling": "patch_mean"', '"pooling": "attention", "attention_pool": {"num_heads": 2, '
                           '"activation": "gelu"}'),
        "unnamed_reason": ('"ignore": {', '"ignore": {"trunk.more": "", '),
        "one_prefix": ('"prefixes": ["", "module."]', '"prefixes": ["module."]'),
        "no_prefix": ('"prefixes": ["", "module."]', '"prefixes": []'),
        "prefixes_absent": ('"prefixes": ["", "module."],', ""),
        "unknown_key": ('"prefixes"', '"prefix"'),
        "misspelt": ("trunk.stem", "trunk.steam"),
        "open_brace": ("{block}.ln_a", "{block.ln_a"),
        "other_blocks": ("{block}.ln_a", "{2*block+1}.ln_a"),
        "blocks": ("{block}.ln_a", "{blocks}.ln_a"),
        "two_blocks": ("{block}.ln_a", "{block}{block}.ln_a"),
        "block_of_none": ("trunk.ln_out.*", "trunk.{block}.ln_out.*"),
        "star_inside": ("trunk.ln_out.*", "trunk.*.ln_out"),
        "no_star": ("trunk.ln_out.*", "trunk.ln_out.weight"),
        "star_of_one": ('"trunk.memory"', '"trunk.memory.*"'),
        "third_of_two": ("[0, 2]", "[2, 2]"),
        "unknown_tensor": ('"norm"', '"norms"'),
    }
    for name, (wanted, put) in changes.items():
        if wanted not in golden:
            raise ValueError(f"{name}: own-rope does not hold {wanted}")
        write("layout", name, b"layouts/own-rope/layout.json\n" + golden.replace(wanted, put, 1).encode())


def tokenizers():
    """A small tokenizer.json with one step after the other around its model."""
    normalizers = {
        "sequence": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}, {"type": "Lowercase"}, None]},
        "replace_spaces": {"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": " "},
        "replace_two": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
        "replace_text": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "replace_nothing": {"type": "Replace", "pattern": {"String": ""}, "content": "\u2581"},
        "replace_other": {"type": "Replace", "pattern": {"Regex": "a|b"}, "content": ""},
        "strip": {"type": "Strip", "strip_left": True, "strip_right": True},
        "prepend": {"type": "Prepend", "prepend": "\u2581"},
        "charsmap": {"type": "Precompiled", "precompiled_charsmap": "AAQA"},
        "charsmap_length": {"type": "Precompiled", "precompiled_charsmap": "AAQ"},
        "charsmap_digit": {"type": "Precompiled", "precompiled_charsmap": "AA-A"},
        "unknown": {"type": "BertNormalizer"},
    }
    words = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    clip = {"type": "Split", "pattern": {"Regex": words}, "behavior": "Removed", "invert": True}
    bytes_of = {"type": "ByteLevel", "add_prefix_space": False}
    splitters = {
        "sequence": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, None]},
        "metaspace_first": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": False},
        "metaspace_never": {"type": "Metaspace", "prepend_scheme": "never", "add_prefix_space": False},
        "metaspace_other": {"type": "Metaspace", "replacement": "_"},
        "metaspace_scheme": {"type": "Metaspace", "prepend_scheme": "last"},
        "clip": {"type": "Sequence", "pretokenizers": [clip, bytes_of]},
        "clip_kept": {**clip, "behavior": "Isolated"},
        "spaces": {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False},
        "bytes_alone": bytes_of,
        "unknown": {"type": "Digits"},
    }
    text, front, back = {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "b"}}
    special = {"a": {"ids": [0]}, "b": {"ids": [1]}, "c": {"ids": [0, 1]}}
    processors = {
        "roberta": {"type": "RobertaProcessing", "sep": ["b", 1], "cls": ["a", 0]},
        "bytes": {"type": "ByteLevel"},
        "template": {"type": "TemplateProcessing", "single": [front, text, back], "special_tokens": special},
        "template_twice": {"type": "TemplateProcessing", "single": [text, text], "special_tokens": special},
        "template_empty": {"type": "TemplateProcessing", "single": [front], "special_tokens": special},
        "template_two_ids": {"type": "TemplateProcessing", "single": [text, {"SpecialToken": {"id": "c"}}],
                             "special_tokens": special},
        "unknown": {"type": "Sequence"},
    }
    model = {"type": "BPE", "merges": ["a b"], "vocab": {"a": 0, "b": 1, "ab": 2}}
    escapes = json.dumps({"model": {**model, "vocab": {"\"\\\b\f\n\r\t\u00e9\U0001f600": 0}}}).replace("0}", "0e+0}")
    write("tokenizer_json", "escapes", escapes.encode())
    for name, escape in (("half_pair", r"\ud83d"), ("other_half", r"\ud83dA"), ("second_half", r"\ude00"), ("digits", r"\u00g0"), ("letter", r"\x")):
        write("tokenizer_json", f"escape_{name}", f'{{"model": {{"vocab": {{"{escape}": 0}}}}}}'.encode())
    for member, steps in (("normalizer", normalizers), ("pre_tokenizer", splitters), ("post_processor", processors)):
        for name, step in steps.items():
            write("tokenizer_json", f"{member}_{name}", json.dumps({"model": model, member: step}).encode())


def header(shapes):
    """The header of a .safetensors file."""
    tensors, offset = {}, 0
    for name, shape in shapes.items():
        end = offset + 4 * math.prod(shape)
        tensors[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    return json.dumps(tensors)


def linear(name, rows, columns, bias=True):
    return {name + ".weight": (rows, columns), **({name + ".bias": (rows,)} if bias else {})}


def norm(name, dim):
    return {name + ".weight": (dim,), name + ".bias": (dim,)}


def without(shapes, part):
    """The tensors whose names do not hold `part`."""
    return {name: shape for name, shape in shapes.items() if part not in name}


def tensor_names():
    """Weight files of publishers of which no golden model has the names: one block of small width each."""
    dim, mlp = 48, 96
    stem = {"patch_embed.proj.weight": (dim, 3, 8, 8), "patch_embed.proj.bias": (dim,), "cls_token": (1, 1, dim),
            "pos_embed": (1, 10, dim)}
    ends = {**norm("norm", dim), **linear("head", 5, dim)}
    norms = {**norm("blocks.0.norm1", dim), **norm("blocks.0.norm2", dim)}
    attention = {**linear("blocks.0.attn.qkv", 3 * dim, dim), **linear("blocks.0.attn.proj", dim, dim)}
    plain = {**linear("blocks.0.mlp.fc1", mlp, dim), **linear("blocks.0.mlp.fc2", dim, mlp)}
    scales = {"blocks.0.ls1.gamma": (dim,), "blocks.0.ls2.gamma": (dim,)}
    naver = {**stem, "pos_embed": (1, 9, dim), "freqs": (2, 1, dim // 2), "freqs_t_x": (9,), "freqs_t_y": (9,), **norms, **attention, **plain,
             "blocks.0.gamma_1": (dim,), "blocks.0.gamma_2": (dim,), **ends}
    no_table = without(naver, "pos_embed")
    own_bias = {"blocks.0.attn.q_bias": (dim,), "blocks.0.attn.v_bias": (dim,)}
    fused = {"blocks.0.attn.qkv.weight": (3 * dim, dim), **own_bias, **linear("blocks.0.attn.proj", dim, dim)}
    separate = {f"blocks.0.attn.{part}_proj.weight": (dim, dim) for part in "qkv"} | own_bias
    packed = {**linear("blocks.0.mlp.w12", 2 * mlp, dim), **linear("blocks.0.mlp.w3", dim, mlp)}
    gated = {**linear("blocks.0.mlp.w1", mlp, dim), **linear("blocks.0.mlp.w2", mlp, dim),
             **norm("blocks.0.mlp.ffn_ln", mlp), **linear("blocks.0.mlp.w3", dim, mlp)}
    eva = {**stem, **norms, **fused, **packed, "lm_head.weight": (7, dim), "lm_head.bias": (7,), **norm("norm", dim)}
    eva_large = {**stem, **norms, **separate, **norm("blocks.0.attn.inner_attn_ln", dim),
                 **linear("blocks.0.attn.proj", dim, dim), **gated, **norm("fc_norm", dim), **linear("head", 5, dim)}
    dinov2 = {**stem, "mask_token": (1, dim), **norms, **attention, **scales, **norm("norm", dim)}
    dinov3 = {**without(stem, "pos_embed"), "storage_tokens": (1, 4, dim),
              "mask_token": (1, dim), "rope_embed.periods": (6,), **norms, **attention,
              "blocks.0.attn.qkv.bias_mask": (3 * dim,), **scales, **norm("norm", dim)}
    text = "text_model.backbone."
    dino_text = {text + "token_embedding.weight": (9, 16), text + "positional_embedding": (8, 16),
                 **norm(text + "blocks.0.attention_norm", 16), **linear(text + "blocks.0.attention.qkv", 48, 16, False),
                 **linear(text + "blocks.0.attention.proj", 16, 16), **norm(text + "blocks.0.ffn_norm", 16),
                 **linear(text + "blocks.0.feed_forward.fc1", 32, 16), **linear(text + "blocks.0.feed_forward.fc2", 16, 32),
                 **norm(text + "ln_final", 16), "text_model.head.linear_projection.weight": (2 * dim, 16), "logit_scale": ()}
    head = "visual_model.head.blocks.0."
    joint = {**norm("visual_model.head.ln_final", dim), **norm(head + "norm1", dim), **norm(head + "norm2", dim),
             **linear(head + "attn.qkv", 3 * dim, dim, False), **linear(head + "attn.proj", dim, dim),
             head + "ls1.gamma": (dim,), head + "ls2.gamma": (dim,), **linear(head + "mlp.w1", mlp, dim),
             **linear(head + "mlp.w2", mlp, dim), **linear(head + "mlp.w3", dim, mlp)}
    arguments = ("img_size=24x24 patch_size=8 in_chans=3 embed_dim=24 depth=2 mlp_ratio=2 num_classes=5 global_pool=avg "
                 "class_token=true reg_tokens=0 no_embed_class=false pos_embed=learn qkv_bias=true proj_bias=true "
                 "pre_norm=false final_norm=true fc_norm=false act_layer=gelu init_values=0.1")
    eva_arguments = ("num_reg_tokens=0 use_abs_pos_emb=true use_pre_transformer_norm=false use_post_transformer_norm=true "
                     "use_fc_norm=true pool_include_prefix=false swiglu_mlp=true swiglu_align_to=0 qkv_fused=false "
                     "scale_mlp=true scale_attn_inner=true attn_type=rope use_rot_pos_emb=true rope_type=mixed "
                     "rope_temperature=10 rope_grid_offset=0.5 rope_grid_indexing=xy rope_rotate_half=true "
                     "pos_embed_grid_size=3x3 pos_embed_interp_mode=bilinear")
    said = {
        "naver": ("vit_small_patch16_rope_mixed_ape_224 num_heads=2 img_size=24x24", naver),
        "naver_timm_rules": ("vit_small_patch16_rope_mixed_224 num_heads=2 img_size=24x24 rules=timm", no_table),
        "naver_unnamed": ("", naver),
        "eva": ("eva02_tiny_patch14_224.mim_in22k num_heads=2 img_size=24x24", eva),
        "eva_large": ("eva02_base_patch14_448 num_heads=2 img_size=24x24 rules=timm", eva_large),
        "eva_unnamed": ("", eva_large),
        "dinov2": ("vit_small_patch14_dinov2 num_heads=2 img_size=24x24", {**dinov2, **plain}),
        "dinov2_registers": ("vit_small_patch14_reg4_dinov2 num_heads=2 img_size=24x24",
                             {**dinov2, **plain, "register_tokens": (1, 4, dim)}),
        "dinov2_gated": ("vit_giant_patch14_dinov2 num_heads=2 img_size=24x24 rules=timm", {**dinov2, **packed}),
        "dinov3_gated": ("vit_small_plus_patch16_dinov3_qkvb num_heads=2 rope_periods=recomputed",
                         {**dinov3, **without(gated, "ffn_ln")}),
        "dinov3_other_periods": ("vit_small_patch16_dinov3 num_heads=2 rope_periods=guessed", {**dinov3, **plain}),
        "dino_text": ("vit_small_patch16_dinov3 num_heads=2", {**dinov3, **plain, **dino_text, **joint}),
        "dino_text_cut": ("vit_small_patch16_dinov3 num_heads=2",
                          {**dinov3, **plain, **dino_text, **norm("visual_model.head.blocks.0.norm1", dim)}),
        "no_patches": ("vit_tiny_patch16_224", {**stem, "patch_embed.proj.weight": (dim, 3, 8, 4)}),
        "compiled": ("vit_tiny_patch16_224", {"_orig_mod." + name: shape for name, shape in {**stem, **ends}.items()}),
        "arguments": (f"vit_tiny_patch16_224 {arguments}", {**stem, **norms, **attention, **plain, **ends}),
        "eva_arguments": (f"vit_small_patch16_rope_224 {eva_arguments}", {**stem, **norms, **attention, **plain, **ends}),
        "oblong_patches": ("vit_tiny_patch16_224 patch_size=8x4", stem),
        "four_channels": ("vit_tiny_patch16_224 in_chans=4", stem),
        "unknown_argument": ("vit_tiny_patch16_224 width=4", stem),
        "unknown_architecture": ("vit_tiny_patch17", stem),
    }
    for name, (line, shapes) in said.items():
        write("tensor_names", name, f"{line}\n{header(shapes)}".encode())


def open_clip_configs():
    """The golden configuration of OpenCLIP with one thing after the other changed."""
    golden = json.loads((GOLDEN / "models/open-clip/open_clip_config.json").read_text())
    changes = {
        "resnet": {"layers": [1, 2, 3, 4]},
        "oblong": {"patch_size": [8, 4]},
        "switches": {"no_ln_pre": True, "final_ln_after_pool": True, "pool_type": "avg", "attentional_pool": False},
        "switched_on": {"attentional_pool": True},
        "unknown": {"colour": 1},
        "inert": {"patch_dropout": 0.5, "output_tokens": True, "timm_drop": 0.0},
        "functions": {"act_kwargs": {"approximate": "tanh"}, "norm_kwargs": {"eps": 1e-6}},
        "two_functions": {"act_kwargs": {"approximate": "tanh", "more": 1}},
        "timm": {"timm_model_name": "vit_base_patch16_224", "timm_pool": "avg", "timm_proj": "linear", "timm_proj_bias": True},
        "timm_plain": {"timm_model_name": "vit_base_patch16_224", "timm_pool": "", "timm_proj": "none"},
        "timm_classifier": {"timm_model_name": "vit_base_patch16_224", "timm_pool": None, "timm_proj": None},
        "timm_naflex": {"timm_model_name": "naflexvit_base_patch16_siglip", "timm_pool": "map", "timm_proj": ""},
        "timm_unknown": {"timm_model_name": "resnet50"},
    }
    for name, members in changes.items():
        config = json.loads(json.dumps(golden))
        config["model_cfg"]["vision_cfg"].update(members)
        write("open_clip_config", name, json.dumps(config).encode())


def tokenizer_folders():
    """Golden tokenizers with files that are missing, more or read by the rules of another library."""
    def open_clip(**text_cfg):
        text_cfg = {"context_length": 12, "vocab_size": 600, **text_cfg}
        return {"model_cfg": {"embed_dim": 8, "vision_cfg": {}, "text_cfg": text_cfg}}

    def of_hub(**arguments):
        return open_clip(hf_tokenizer_name="x", tokenizer_kwargs=arguments)

    own, hub = open_clip(), of_hub(clean="canonicalize", strip_sep_token=True)

    def type_of(name, **more):
        return {"model_type": name, **more}

    def token(content, **more):
        return {"content": content, "lstrip": False, "rstrip": False, "normalized": False, "single_word": False, **more}

    config = "tokenizer_config.json"
    said = {
        "clip_own": ("clip/open_clip_config.json", own),
        "clip_own_split": ("clip-split/open_clip_config.json", own),
        "clip_own_merges": ("clip-merges/open_clip_config.json", own),
        "clip_hub": ("clip/open_clip_config.json", hub),
        "t5_hub": ("t5/open_clip_config.json", hub),
        "gemma_hub": ("gemma/open_clip_config.json open_clip", hub),
        "gemma_cleaned": ("gemma/open_clip_config.json open_clip", of_hub(clean="lower")),
        "xlm_roberta_hub": ("xlm-roberta/open_clip_config.json", hub),
        "unknown_cleaning": ("t5/open_clip_config.json", of_hub(clean="twice")),
        "unknown_argument": ("t5/open_clip_config.json", of_hub(speed=1)),
        "no_text": ("t5/open_clip_config.json", {"model_cfg": {"vision_cfg": {}}}),
        "clip_openai": ("clip/config.json openai", type_of("clip")),
        "clip_open_clip": ("clip/config.json open_clip", type_of("clip")),
        "split_transformers": ("clip-split/config.json transformers -tokenizer_config.json", type_of("clip_text_model")),
        "split_no_merges": ("clip-split/config.json -merges.txt", type_of("clip")),
        "split_untold": ("clip-split/special_tokens_map.json -tokenizer_config.json", {"pad_token": "!", "unk_token": token("!")}),
        "merges_transformers": ("clip-merges/config.json transformers", type_of("clip", text_config={"max_position_embeddings": 9})),
        "merges_alone": ("clip-merges/merges.txt bpe_simple_vocab_16e6.txt.gz", None),
        "merges_alone_transformers": ("clip-merges/merges.txt transformers bpe_simple_vocab_16e6.txt.gz", None),
        "merges_alone_open_clip": ("clip-merges/merges.txt open_clip bpe_simple_vocab_16e6.txt.gz", None),
        "merges_unpacked": ("clip-merges/bpe_simple_vocab_16e6.txt -bpe_simple_vocab_16e6.txt.gz", "#version\na b\n"),
        "t5_open_clip": ("t5/config.json open_clip", type_of("t5")),
        "t5_openai": ("t5/config.json openai", type_of("t5")),
        "t5_model_file": ("t5/config.json -tokenizer.json", type_of("t5")),
        "t5_nothing": ("t5/config.json -tokenizer.json -spiece.model", type_of("t5")),
        "t5_bpe": ("t5/tokenizer.json", {"model": {"type": "BPE", "merges": ["a b"], "vocab": {"a": 0, "b": 1, "ab": 2}}}),
        "t5_sentinels": (f"t5/{config}", {"tokenizer_class": "T5TokenizerFast", "additional_special_tokens": ["<extra_id_0>", token("<x>")],
                                          "pad_token": None}),
        "t5_more_sentinels": (f"t5/{config}", {"tokenizer_class": "MT5Tokenizer", "extra_ids": 2}),
        "xlm_roberta_open_clip": ("xlm-roberta/config.json open_clip", type_of("metaclip_2")),
        "xlm_roberta_untold": (f"xlm-roberta/config.json -{config}", type_of("metaclip_2")),
        "xlm_roberta_model": ("xlm-roberta-model/config.json", type_of("metaclip_2", text_config_dict={"max_position_embeddings": 7})),
        "xlm_roberta_nothing": ("xlm-roberta-model/config.json -sentencepiece.bpe.model", type_of("metaclip_2")),
        "gemma_open_clip": ("gemma/config.json open_clip", type_of("gemma")),
        "siglip2_untold": (f"siglip2/config.json -{config}", type_of("siglip2")),
        "siglip2_nothing": ("siglip2/config.json -tokenizer.json", type_of("siglip2")),
        "siglip_untold": (f"siglip/config.json -{config}", type_of("siglip", text_config={})),
        "siglip_open_clip": ("siglip/config.json open_clip", type_of("siglip")),
        "siglip_nothing": ("siglip/config.json -spiece.model", type_of("siglip")),
        "siglip_tokens": (f"siglip/{config}", {"tokenizer_class": "SiglipTokenizer", "do_lower_case": False, "unk_token": "<unk>",
                                               "added_tokens_decoder": {"1": token("</s>"), "2": token("<unk>", normalized=True)}}),
        "tipsv2_untold": (f"tipsv2/config.json -{config}", type_of("tipsv2")),
        "tipsv2_nothing": ("tipsv2/config.json -tokenizer.model", type_of("tipsv2")),
        "tipsv2_both_ends": (f"tipsv2/{config}", {"tokenizer_class": "Tipsv2Tokenizer", "add_bos_token": True, "add_eos_token": True,
                                                  "bos_token": "<unk>", "eos_token": "<pad>", "padding_side": "left"}),
        "tipsv2_no_end": (f"tipsv2/{config}", {"tokenizer_class": "Tipsv2Tokenizer", "add_eos_token": True}),
        "as_written_t5": (f"t5/{config}", {"tokenizer_class": "PreTrainedTokenizerFast"}),
        "as_written_clip": (f"clip/{config}", {"tokenizer_class": "TokenizersBackend"}),
        "as_written_gemma": (f"gemma/{config}", {"tokenizer_class": "PreTrainedTokenizerFast"}),
        "as_written_nothing": (f"t5/{config} -tokenizer.json", {"tokenizer_class": "PreTrainedTokenizerFast"}),
        "untold_json": (f"t5/special_tokens_map.json -{config}", {"pad_token": "<pad>"}),
        "untold_nothing": (f"t5/special_tokens_map.json -{config} -tokenizer.json", {}),
        "unknown_class": (f"t5/{config}", {"tokenizer_class": "BertTokenizer"}),
        "class_of_two_lines": (f"t5/{config}", {"tokenizer_class": "T5Tok\nizer"}),
        "open_clip_class_of_two_lines": (f"t5/{config} open_clip", {"tokenizer_class": "T5Tok\nizer"}),
        "unknown_side": (f"t5/{config}", {"tokenizer_class": "T5Tokenizer", "padding_side": "both"}),
        "unknown_truncation": (f"t5/{config}", {"tokenizer_class": "T5Tokenizer", "truncation_side": "left"}),
        "unknown_library": (f"t5/{config} timm", {"tokenizer_class": "T5Tokenizer"}),
        "single_word": (f"t5/{config}", {"tokenizer_class": "T5Tokenizer", "unk_token": token("<unk>", single_word=True)}),
        "clip_of_t5": (f"t5/{config}", {"tokenizer_class": "CLIPTokenizer"}),
        "t5_of_siglip": (f"siglip/{config}", {"tokenizer_class": "T5Tokenizer"}),
        "xlm_roberta_of_t5": (f"t5/{config} -tokenizer.json", {"tokenizer_class": "XLMRobertaTokenizer"}),
        "gemma_of_t5": (f"t5/{config}", {"tokenizer_class": "GemmaTokenizer"}),
        "clip_of_tipsv2": (f"tipsv2/{config}", {"tokenizer_class": "CLIPTokenizer"}),
    }
    for name, (line, content) in said.items():
        text = "" if content is None else content if isinstance(content, str) else json.dumps(content)
        write("tokenizer_folder", name, f"tokenizers/{line}\n{text}".encode())


def open_clip_towers():
    """Weights of OpenCLIP with a tower of timm in it, and text towers of bare files, by names and shapes."""
    dim, mlp, width = 48, 96, 64
    trunk = {"patch_embed.proj.weight": (dim, 3, 8, 8), "patch_embed.proj.bias": (dim,), "cls_token": (1, 1, dim),
             "pos_embed": (1, 10, dim), **norm("blocks.0.norm1", dim), **norm("blocks.0.norm2", dim),
             **linear("blocks.0.attn.qkv", 3 * dim, dim), **linear("blocks.0.attn.proj", dim, dim),
             **linear("blocks.0.mlp.fc1", mlp, dim), **linear("blocks.0.mlp.fc2", dim, mlp), **norm("norm", dim)}
    in_trunk = {f"visual.trunk.{name}": shape for name, shape in trunk.items()}
    block = "transformer.resblocks.0."
    text = {"token_embedding.weight": (9, width), "positional_embedding": (8, width), **norm(block + "ln_1", width),
            block + "attn.in_proj_weight": (3 * width, width), block + "attn.in_proj_bias": (3 * width,),
            **linear(block + "attn.out_proj", width, width), **norm(block + "ln_2", width), **linear(block + "mlp.c_fc", 128, width),
            **linear(block + "mlp.c_proj", width, 128), **norm("ln_final", width), "text_projection": (width, 16), "logit_scale": ()}
    integers = {"input_resolution": (), "context_length": (), "vocab_size": ()}
    block = "visual.transformer.resblocks.0."
    image = {"visual.class_embedding": (width,), "visual.positional_embedding": (10, width), "visual.conv1.weight": (width, 3, 8, 8),
             **norm("visual.ln_pre", width), **norm(block + "ln_1", width), block + "attn.in_proj_weight": (3 * width, width),
             block + "attn.in_proj_bias": (3 * width,), **linear(block + "attn.out_proj", width, width), **norm(block + "ln_2", width),
             **linear(block + "mlp.c_fc", 256, width), **linear(block + "mlp.c_proj", width, 256), **norm("visual.ln_post", width),
             "visual.proj": (width, 16)}

    sizes = "- num_heads=3 img_size=24x24 patch_size=8 embed_dim=48 depth=1 mlp_ratio=2"

    def config(**vision):
        vision = {"image_size": 24, "timm_model_name": "vit_base_patch16_224", "timm_model_pretrained": False, **vision}
        tower = {"context_length": 8, "vocab_size": 9, "width": width, "heads": 1, "layers": 1}
        return json.dumps({"model_cfg": {"embed_dim": 16, "vision_cfg": vision, "text_cfg": tower},
                           "preprocess_cfg": {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "interpolation": "bicubic",
                                              "resize_mode": "squash"}})

    said = {
        "timm_linear": (sizes,
                        {**in_trunk, "visual.head.proj.weight": (16, dim), **text}, config(timm_pool="avg", timm_proj="linear")),
        "timm_linear_bias": (sizes,
                             {**in_trunk, **linear("visual.head.proj", 16, dim), **text},
                             config(timm_pool="token", timm_proj="linear", timm_proj_bias=True)),
        "timm_classifier": (sizes,
                            {**in_trunk, **linear("visual.trunk.head", 16, dim), **text}, config(timm_pool="token", timm_proj="")),
        "timm_none": (sizes,
                      {**in_trunk, **text}, config(timm_pool=None, timm_proj="none")),
        "timm_all_tokens": ("- num_heads=3", {**in_trunk, **text}, config(timm_pool="", timm_proj="none")),
        "timm_naflex": ("- num_heads=3", {**in_trunk, **text, "visual.trunk.embeds.proj.weight": (dim, 192)},
                        config(timm_model_name="naflexvit_base_patch16_siglip", timm_pool="map", timm_proj="")),
        "timm_unknown": ("-", {**in_trunk, **text}, config(timm_model_name="vit_bse_patch16_224")),
        "timm_missing": ("-", text, config()),
        "openai": ("-", {**image, **text, **integers}, ""),
        "openai_named": ("ViT-B-32", {**image, **text, **integers}, ""),
        "openai_untold": ("-", {**image, **text}, ""),
        "openai_clip_named": ("vit_base_patch32_clip_224", {**image, **text}, ""),
        "pe": ("PE-Core-B16-224", {**image, **text}, ""),
        "pe_tiny": ("PE-Core-T16-384", {**image, **text}, ""),
        "pe_giant": ("PE-Core-G14-448", {**image, **text}, ""),
        "no_places": ("-", {**image, **without(text, "positional_embedding"), **integers}, ""),
    }
    for name, (line, shapes, config_text) in said.items():
        write("tensor_names", name, f"{line}\n{header(shapes)}\n{config_text}".encode())


def preprocessing():
    """timm's rules in each of their forms."""
    def with_cfg(model_args=None, **rules):
        arguments = {} if model_args is None else {"model_args": model_args}
        return {"architecture": "vit_tiny_patch16_224", **arguments, "pretrained_cfg": {"input_size": [3, 24, 32], **rules}}

    colors = {"mean": [0.5, 0.4, 2.0], "std": [0.5, 0.25, 1]}
    said = {
        "border": with_cfg(crop_mode="border", crop_pct=0.9, **colors),
        "squash": with_cfg(crop_mode="squash", interpolation="bilinear"),
        "center": with_cfg(crop_mode="center", interpolation="lanczos"),
        "other_mode": with_cfg(crop_mode="tile"),
        "small_crop": with_cfg(crop_pct=0.001),
        "four_channels": with_cfg(input_size=[4, 24, 32]),
        "size_of_arguments": with_cfg({"img_size": [16, 24]}, fixed_input_size=True),
        "dynamic_size": with_cfg({"img_size": 16, "dynamic_img_size": True}, fixed_input_size=True),
        "no_size": {"architecture": "vit_tiny_patch16_224", "model_args": {"img_size": 32}, "pretrained_cfg": {"mean": [0, 0, 0]}},
        "flat": {"architecture": "vit_tiny_patch16_224", "input_size": [3, 24, 24], "crop_pct": 1.0, **colors},
        "unnamed": {"pretrained_cfg": {"input_size": [3, 24, 24]}},
        "zero_deviation": with_cfg(std=[0, 1, 1]),
    }
    for name, config in said.items():
        write("timm_preprocess", name, json.dumps(config).encode())


def paths():
    """Lines that lead to no image."""
    write("paths", "refused", b"/a.jpg\n/none.jpg\n/j.tar.gz\n/\x00\n/f/h.txt\n" + 5000 * b"x" + b"\n/c.tar\n")
    write("paths", "empty", b"\n\r\n")


def partial_indexes():
    """What an interrupted run left, of a model that lay elsewhere, and cut in places."""
    model = '{"model": "%s", "fingerprint": "", "features": "", "size": "", "dtype": "", "dim": 4}'
    line = '{"file": "%s", "size": 10, "modified": 1.5, "width": 4, "height": 3}\n'
    for name, text in {
        "elsewhere": model % "a/longer/path/to/m" + "\n" + line % "a.jpg" + line % "b.jpg",
        "shorter": model % "" + "\n" + line % "a.jpg",
        "cut": model % "m" + "\n" + line % "a.jpg" + (line % "b.jpg")[:20],
        "cut_first": (model % "m")[:30],
        "more_than_vectors": model % "m" + "\n" + 5 * (line % "a.jpg"),
        "other_dim": (model % "m").replace("4}", "5}") + "\n" + line % "a.jpg",
    }.items():
        write("index_partial", name, text.encode())


if __name__ == "__main__":
    pngs()
    tiffs()
    bmps()
    others()
    layouts()
    tokenizers()
    tensor_names()
    open_clip_configs()
    tokenizer_folders()
    open_clip_towers()
    preprocessing()
    paths()
    partial_indexes()
