"""Vision towers of language models, of published shapes and random weights: `vit` (float32, bfloat16, int8) next to
transformers with torch (float32, bfloat16) and llama.cpp's encoder (f16, bf16), by turns, one process each, from prepared
pixels to visual tokens; their peak memory, and the cosines of visual tokens with those of float32. No downloads.

    python towers.py --vit build/release/vit --work ~/compare --sizes 512 1024 --rounds 2
    python towers.py --vit build/release/vit --work ~/compare --windows
    python towers.py --vit build/release/vit --work ~/compare --whole

--blocks N makes towers of N blocks, and the table says so; time grows linearly with blocks. --windows prints the time of a
windowed block per token instead, from 1,000 to 9,000 tokens in about two minutes; --windows 4 6 8 12 16 --seconds 3 goes on to
16,000 and takes three times as long. --whole measures what reading a tower out of a folder of
Qwen2.5-VL-7B's shape costs: files opened and bytes read (with strace), seconds, peak memory; the numbers of its language
model are holes in the files, so that 17 GB take the disk space of the tower. Results of rounds are kept in --work. torch and transformers
run in this Python; llama.cpp needs --llama-python (one with llama-cpp-python, built from source, and gguf) and --llama-source
(the folder vendor/llama.cpp of its source archive, whose script converts the weights); without them it is left out. vit
stops where its float32 tokens differ from torch's.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]  # tokenizers.py

# The tower's part of config.json, with the defaults of its class in transformers; the width of the language model.
TOWERS = {
    "qwen2_5_vl_3b": dict(model_type="qwen2_5_vl", prefix="visual.", factor=28, full=[7, 15, 23, 31],
                          architecture="Qwen2_5_VLForConditionalGeneration",
                          vision=dict(depth=32, hidden_size=1280, num_heads=16, intermediate_size=3420, patch_size=14,
                                      out_hidden_size=2048, window_size=112, hidden_act="silu", spatial_merge_size=2,
                                      temporal_patch_size=2, in_channels=3, in_chans=3)),
    "qwen3_vl_4b": dict(model_type="qwen3_vl", prefix="model.visual.", factor=32, full=None,
                        architecture="Qwen3VLForConditionalGeneration",
                        vision=dict(depth=24, hidden_size=1024, num_heads=16, intermediate_size=4096, patch_size=16,
                                    out_hidden_size=2560, num_position_embeddings=2304, hidden_act="gelu_pytorch_tanh",
                                    deepstack_visual_indexes=[5, 11, 17], spatial_merge_size=2, temporal_patch_size=2,
                                    in_channels=3)),
}
LEAST_COSINE = {"float32": 0.99999, "bfloat16": 0.99, "int8": 0.9, "f16": 0.99, "bf16": 0.99}  # mean over tokens

PRELUDE = """
import json, sys, time
import numpy
def peak():
    return [int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
def measure(run):
    found, times = run(), []
    while not times or sum(times) < SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    numpy.save(OUT, numpy.asarray(found, numpy.float32))
    print(json.dumps({"seconds": sorted(times)[len(times) // 2], "mib": peak()}))
"""
# Only the class of transformers, with the weights of the whole model's folder.
TORCH = """
import torch, transformers
from safetensors.torch import load_file
torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
name, config = CLASS
module = getattr(transformers, name)
tower = module._from_config(module.config_class(**config), dtype=getattr(torch, DTYPE)).eval()
weights = load_file(FOLDER + "/model.safetensors")
tower.load_state_dict({key.removeprefix(PREFIX): value.to(getattr(torch, DTYPE)) for key, value in weights.items()})
del weights
pixels = torch.from_numpy(numpy.load(PIXELS))
channels, height, width = pixels.shape
patch, merge = config["patch_size"], 2
rows, columns = height // patch, width // patch
order = pixels.reshape(channels, rows // merge, merge, patch, columns // merge, merge, patch).permute(1, 4, 2, 5, 0, 3, 6)
order = order.reshape(rows * columns, channels, 1, patch, patch).expand(-1, -1, 2, -1, -1)
patches = order.reshape(rows * columns, -1).to(getattr(torch, DTYPE))
grid = torch.tensor([[1, rows, columns]])
measure(lambda: tower(patches, grid_thw=grid).pooler_output.float().numpy())
"""
# Its tokenizer wants a vocabulary for the words around an image, so one of bytes replaces that of the language model.
LLAMA = """
import ctypes
import gguf
import llama_cpp
from llama_cpp import mtmd_cpp
quiet = llama_cpp.llama_log_callback(lambda level, text, user: None)
llama_cpp.llama_log_set(quiet, None)
mtmd_cpp.mtmd_log_set(quiet, None)
writer = gguf.GGUFWriter(VOCABULARY, ARCHITECTURE)
tokens = [chr(256 + i) for i in range(256)] + [chr(i) for i in range(33, 127)] + ["<|vision_start|>", "<|vision_end|>"]
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("qwen2")
writer.add_token_list(tokens)
writer.add_token_types([1] * (len(tokens) - 2) + [3] * 2)
writer.add_token_merges(["a b"])
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.close()
llama_cpp.llama_backend_init()
model_options = llama_cpp.llama_model_default_params()
model_options.vocab_only = True
vocabulary = llama_cpp.llama_model_load_from_file(VOCABULARY.encode(), model_options)
options = mtmd_cpp.mtmd_context_params_default()
options.use_gpu, options.print_timings, options.warmup, options.n_threads = False, False, False, THREADS
options.image_min_tokens, options.image_max_tokens = 4, TOKENS  # it reserves memory for the largest
tower = mtmd_cpp.mtmd_init_from_file(MMPROJ.encode(), vocabulary, options)
picture = numpy.ascontiguousarray(numpy.load(PICTURE))
data = picture.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
bitmap = mtmd_cpp.mtmd_bitmap_init(picture.shape[1], picture.shape[0], data)
words = mtmd_cpp.mtmd_input_text()
words.text, words.add_special, words.parse_special = mtmd_cpp.mtmd_default_marker(), False, True
words.text_len = len(words.text)
chunks = mtmd_cpp.mtmd_input_chunks_init()
bitmaps = (mtmd_cpp.mtmd_bitmap_p_ctypes * 1)(bitmap)
assert mtmd_cpp.mtmd_tokenize(tower, chunks, ctypes.byref(words), bitmaps, 1) == 0
found = [mtmd_cpp.mtmd_input_chunks_get(chunks, i) for i in range(mtmd_cpp.mtmd_input_chunks_size(chunks))]
image = [chunk for chunk in found if mtmd_cpp.mtmd_input_chunk_get_type(chunk) == 1][0]
count = mtmd_cpp.mtmd_input_chunk_get_n_tokens(image)
assert count == TOKENS, (count, TOKENS)
def run():
    assert mtmd_cpp.mtmd_encode_chunk(tower, image) == 0
    numbers = mtmd_cpp.mtmd_get_output_embd(tower)
    return numpy.ctypeslib.as_array(numbers, (count, WIDTH))[:, :OWN].copy()
measure(run)
"""
CLASSES = {"qwen2_5_vl": "Qwen2_5_VisionTransformerPretrainedModel", "qwen3_vl": "Qwen3VLVisionModel"}


def vision_of(name, blocks):
    """The tower's configuration, of fewer blocks where they are asked for."""
    tower = TOWERS[name]
    vision = dict(tower["vision"])
    if blocks:
        vision["depth"] = blocks
    if tower["full"] is not None:
        vision["fullatt_block_indexes"] = [block for block in tower["full"] if block < vision["depth"]]
    else:
        last = [block for block in vision["deepstack_visual_indexes"] if block < vision["depth"]]
        vision["deepstack_visual_indexes"] = last
    return vision


def write_config(folder, name, vision):
    tower = TOWERS[name]
    text = {"model_type": tower["model_type"] + "_text", "hidden_size": vision["out_hidden_size"], "num_hidden_layers": 1,
            "num_attention_heads": 16, "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 512, "rms_norm_eps": 1e-6}
    config = {"architectures": [tower["architecture"]], "model_type": tower["model_type"], "text_config": text,
              "vision_config": {"model_type": tower["model_type"], **vision}}
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    half = tower["factor"] == 32
    (folder / "preprocessor_config.json").write_text(json.dumps({
        "image_processor_type": "Qwen2VLImageProcessor", "patch_size": vision["patch_size"], "merge_size": 2,
        "temporal_patch_size": 2, "size": {"shortest_edge": 3136, "longest_edge": 1 << 26},
        "image_mean": [0.5] * 3 if half else [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.5] * 3 if half else [0.26862954, 0.26130258, 0.27577711]}))


def write_weights(folder, name, vision):
    """Random weights, of a size that keeps activations near 1, in bfloat16 as published."""
    import torch
    import transformers
    from safetensors.torch import save_file
    torch.manual_seed(0)
    module = getattr(transformers, CLASSES[TOWERS[name]["model_type"]])
    with torch.device("meta"):
        shapes = module(module.config_class(**vision)).state_dict()
    tensors = {}
    for key, like in shapes.items():
        if like.ndim >= 2:
            values = torch.randn(like.shape) / (0.5 if "pos_embed" in key else like[0].numel() ** 0.5)
        else:
            values = (1.0 if key.endswith("weight") else 0.0) + 0.1 * torch.randn(like.shape)
        tensors[TOWERS[name]["prefix"] + key] = values.to(torch.bfloat16)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def prepare(options, name):
    vision = vision_of(name, options.blocks)
    folder = options.work / f"tower_{name}_{vision['depth']}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.safetensors").exists():
        write_config(folder, name, vision)
        write_weights(folder, name, vision)
    for kind in ("f16", "bf16") if options.llama_python else ():
        file = folder / f"mmproj-{kind}.gguf"
        if not file.exists():
            subprocess.run([sys.executable, options.llama_source / "convert_hf_to_gguf.py", folder, "--mmproj",
                            "--outtype", kind, "--outfile", file], check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL if not options.verbose else None)
    return folder, vision


def write_picture(folder, name, size):
    """A picture of noise and shapes whose size the processor keeps, and its pixels as the tower takes them."""
    factor = TOWERS[name]["factor"]
    edge = round(size / factor) * factor
    picture, pixels = folder / f"picture_{edge}.npy", folder / f"pixels_{edge}.npy"
    rng = np.random.default_rng(1)
    coarse = rng.integers(0, 256, (edge // 16 + 1, edge // 16 + 1, 3))
    image = np.repeat(np.repeat(coarse, 16, 0), 16, 1)[:edge, :edge] + rng.integers(-20, 21, (edge, edge, 3))
    image = np.clip(image, 0, 255).astype(np.uint8)
    rules = json.loads((folder / "preprocessor_config.json").read_text())
    mean, std = (np.float32(rules[key]) * np.float32(255) for key in ("image_mean", "image_std"))
    np.save(picture, image)
    np.save(pixels, ((image.astype(np.float32) - mean) / std).transpose(2, 0, 1).copy())
    (folder / f"picture_{edge}.ppm").write_bytes(b"P6\n%d %d\n255\n" % (edge, edge) + image.tobytes())
    return edge


def run_python(python, body, values, options):
    program = "\n".join([*(f"{key} = {value!r}" for key, value in values.items()), PRELUDE, body])
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    done = subprocess.run([python, "-c", program], stdout=subprocess.PIPE, text=True, check=True, env=environment,
                          stderr=None if options.verbose else subprocess.DEVNULL)
    return json.loads(done.stdout.splitlines()[-1]), np.load(values["OUT"])


def run_torch(folder, vision, name, edge, dtype, options):
    values = {"FOLDER": str(folder), "PIXELS": str(folder / f"pixels_{edge}.npy"), "OUT": str(folder / "torch.npy"),
              "THREADS": options.threads, "SECONDS": options.seconds, "DTYPE": dtype, "PREFIX": TOWERS[name]["prefix"],
              "CLASS": (CLASSES[TOWERS[name]["model_type"]], vision)}
    return run_python(sys.executable, TORCH, values, options)


def run_llama(folder, vision, name, edge, kind, options):
    deepstack = len(vision.get("deepstack_visual_indexes", ()))
    own = vision["out_hidden_size"]
    values = {"MMPROJ": str(folder / f"mmproj-{kind}.gguf"), "VOCABULARY": str(folder / "vocabulary.gguf"),
              "PICTURE": str(folder / f"picture_{edge}.npy"), "OUT": str(folder / "llama.npy"), "THREADS": options.threads,
              "SECONDS": options.seconds, "TOKENS": (edge // TOWERS[name]["factor"]) ** 2, "OWN": own,
              "WIDTH": own * (1 + deepstack), "ARCHITECTURE": {"qwen2_5_vl": "qwen2vl", "qwen3_vl": "qwen3vl"}[TOWERS[name]["model_type"]]}
    return run_python(options.llama_python, LLAMA, values, options)


def vit(options, *words):
    done = subprocess.run([options.vit, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


def bench(options, folder, sizes, dtype, seconds):
    sizes = ",".join(map(str, sizes))
    found = vit(options, "bench", "--model", folder, "--sizes", sizes, "--threads", options.threads, "--dtype", dtype,
                "--seconds", seconds, "--json")
    return json.loads(found)["results"]


def run_vit(folder, edge, dtype, options):
    output = folder / "vit.safetensors"
    output.unlink(missing_ok=True)
    vit(options, "embed", "--model", folder, folder / f"pixels_{edge}.npy", "--features", "merged", "--dtype", dtype,
        "--threads", options.threads, "--output", output, "--progress", "never")
    result = bench(options, folder, [edge], dtype, options.seconds)[0]
    from safetensors.numpy import load_file
    found = load_file(output)
    merged = found.get("merged", found.get("merged.0"))
    return ({"seconds": result["ms_per_image"] / 1e3, "mib": result["peak_memory_bytes"] >> 20,
             "percent": result["percent_of_peak"], "stages": result["ms_per_stage"]}, merged.reshape(-1, merged.shape[-1]))


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


def engines_of(folder, vision, name, edge, options):
    engines = {f"vit, {dtype}": lambda dtype=dtype: run_vit(folder, edge, dtype, options)
               for dtype in ("float32", "bfloat16", "int8")}
    for dtype in ("float32", "bfloat16"):
        engines[f"torch, {dtype}"] = lambda dtype=dtype: run_torch(folder, vision, name, edge, dtype, options)
    for kind in ("f16", "bf16") if options.llama_python else ():
        engines[f"llama.cpp, {kind}"] = lambda kind=kind: run_llama(folder, vision, name, edge, kind, options)
    return {key: run for key, run in engines.items() if not options.engines or key.split(",")[0] in options.engines}


def compare(options):
    log = options.work / "towers.jsonl"
    machine = json.loads(vit(options, "bench", "--seconds", "0.01", "--json"))["machine"]
    for number in range(options.rounds):
        for name in options.towers:
            folder, vision = prepare(options, name)
            for size in options.sizes:
                edge = write_picture(folder, name, size)
                reference = None
                for engine, run in engines_of(folder, vision, name, edge, options).items():
                    result, merged = run()
                    reference = merged if reference is None else reference
                    cosines = cosine(reference, merged)
                    least = LEAST_COSINE[engine.split(", ")[1]]
                    if not cosines.mean() >= least:
                        sys.exit(f"{name}, {edge}, {engine}: the mean cosine with the first engine is {cosines.mean():.6f}")
                    row = {"day": datetime.date.today().isoformat(), "machine": machine, "tower": name, "blocks": vision["depth"],
                           "edge": edge, "engine": engine, **result,
                           "cosine": cosines.mean(), "least": cosines.min()}
                    with log.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    print(f"round {number + 1}: {name} {edge} {engine}: {result['seconds']:.2f} s", file=sys.stderr)
    print_table([json.loads(line) for line in log.read_text().splitlines()], options)


def print_table(rows, options):
    for name in options.towers:
        for edge in sorted({row["edge"] for row in rows if row["tower"] == name}):
            depths = sorted({row["blocks"] for row in rows if row["tower"] == name and row["edge"] == edge})
            for blocks in depths:
                mine = [row for row in rows if (row["tower"], row["edge"], row["blocks"]) == (name, edge, blocks)]
                whole = TOWERS[name]["vision"]["depth"]
                tokens = (edge // TOWERS[name]["vision"]["patch_size"]) ** 2
                print(f"\n{name}, {edge} x {edge} ({tokens} patches), {blocks} of {whole} blocks, {options.threads} threads")
                print("| engine | s | of vit's float32 | MiB | mean cosine with float32 | least |\n|---|---|---|---|---|---|")
                own = statistics.median(row["seconds"] for row in mine if row["engine"] == mine[0]["engine"])
                for engine in dict.fromkeys(row["engine"] for row in mine):
                    these = [row for row in mine if row["engine"] == engine]
                    seconds = statistics.median(row["seconds"] for row in these)
                    print(f"| {engine} | {seconds:.2f} | {seconds / own:.2f} | {max(row['mib'] for row in these)} | "
                          f"{these[-1]['cosine']:.6f} | {these[-1]['least']:.6f} |", flush=True)


def windows(options):
    """A windowed block of Qwen2.5-VL: the difference of towers of five blocks and of one, without global blocks."""
    edges = [8 * 14 * n for n in options.windows or (4, 6, 8, 12)]
    times = {}
    for depth in (1, 5):
        vision = {**TOWERS["qwen2_5_vl_3b"]["vision"], "depth": depth, "fullatt_block_indexes": []}
        folder = options.work / f"tower_windows_{depth}"
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "model.safetensors").exists():
            write_config(folder, "qwen2_5_vl_3b", vision)
            write_weights(folder, "qwen2_5_vl_3b", vision)
        for dtype in ("float32", "bfloat16", "int8"):
            for result in bench(options, folder, edges, dtype, options.seconds):
                times[depth, dtype, result["height"]] = result["ms_min"]
    print("Microseconds of a windowed block per token\n| tokens | float32 | bfloat16 | int8 |\n|---|---|---|---|")
    for edge in edges:
        tokens = (edge // 14) ** 2
        each = [1e3 * (times[5, dtype, edge] - times[1, dtype, edge]) / 4 / tokens for dtype in ("float32", "bfloat16", "int8")]
        print(f"| {tokens} | " + " | ".join(f"{x:.2f}" for x in each) + " |", flush=True)


# Tensors of the language model of Qwen2.5-VL-7B, of each layer and of the whole.
LAYER = {"self_attn.q_proj.weight": (3584, 3584), "self_attn.q_proj.bias": (3584,), "self_attn.k_proj.weight": (512, 3584),
         "self_attn.k_proj.bias": (512,), "self_attn.v_proj.weight": (512, 3584), "self_attn.v_proj.bias": (512,),
         "self_attn.o_proj.weight": (3584, 3584), "mlp.gate_proj.weight": (18944, 3584), "mlp.up_proj.weight": (18944, 3584),
         "mlp.down_proj.weight": (3584, 18944), "input_layernorm.weight": (3584,), "post_attention_layernorm.weight": (3584,)}
SHARD_BYTES = 4_000_000_000


def write_whole(folder):
    """Shards as published: the tower in the first; the tensors of the language model have no bytes on the disk."""
    vision = {**TOWERS["qwen2_5_vl_3b"]["vision"], "out_hidden_size": 3584, "fullatt_block_indexes": [7, 15, 23, 31]}
    write_config(folder, "qwen2_5_vl_3b", vision)
    write_weights(folder, "qwen2_5_vl_3b", vision)
    data = (folder / "model.safetensors").read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tower = data[8 + length:]
    text = {f"model.layers.{i}.{name}": shape for i in range(28) for name, shape in LAYER.items()}
    text.update({"model.embed_tokens.weight": (152064, 3584), "lm_head.weight": (152064, 3584), "model.norm.weight": (3584,)})
    shards, size = [header], len(tower)
    for name, shape in text.items():
        count = 2 * int(np.prod(shape))
        if size + count > SHARD_BYTES:
            shards.append({})
            size = 0
        shards[-1][name] = {"dtype": "BF16", "shape": shape, "data_offsets": [size, size + count]}
        size += count
    names = [f"model-{i + 1:05}-of-{len(shards):05}.safetensors" for i in range(len(shards))]
    index = {tensor: name for name, shard in zip(names, shards) for tensor in shard}
    for number, (name, shard) in enumerate(zip(names, shards)):
        head = json.dumps(shard).encode()
        head += b" " * (-len(head) % 8)
        with (folder / name).open("wb") as file:
            file.write(len(head).to_bytes(8, "little") + head)
            if number == 0:
                file.write(tower)
            file.truncate(8 + len(head) + max(entry["data_offsets"][1] for entry in shard.values()))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    (folder / "model.safetensors").unlink()


def bytes_read(traces):
    """Files of traces of strace -y, one for each thread, and the bytes read of each."""
    found = {}
    for line in (line for trace in traces for line in trace.read_text(errors="replace").splitlines()):
        if re.search(r"mmap\(.*\.safetensors", line):
            sys.exit("the shards are mapped: their bytes cannot be counted")
        match = re.search(r"(?:read|pread64|preadv|readv)\(\d+<([^>]*)>.*= (\d+)$", line)
        if match:
            found[match[1]] = found.get(match[1], 0) + int(match[2])
    return found


def whole(options):
    folder = options.work / "whole_qwen2_5_vl_7b"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.safetensors.index.json").exists():
        write_whole(folder)
    edge = write_picture(folder, "qwen2_5_vl_3b", 504)
    total = sum(file.stat().st_size for file in folder.glob("*.safetensors"))
    print(f"a folder of {total / 1e9:.1f} GB\n| type | s | MiB | MB read of shards | shards opened |\n|---|---|---|---|---|")
    for dtype in ("float32", "bfloat16", "int8"):
        words = ["embed", "--model", folder, folder / f"pixels_{edge}.npy", "--features", "merged", "--dtype", dtype,
                 "--threads", options.threads, "--progress", "never", "--output", folder / "vit.safetensors"]
        (folder / "vit.safetensors").unlink(missing_ok=True)
        command = [options.vit, *map(str, words)]
        start = time.perf_counter()
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        if status != 0:
            sys.exit(f"vit failed: {command}")
        read = {}
        if shutil.which("strace"):
            (folder / "vit.safetensors").unlink(missing_ok=True)
            subprocess.run(["strace", "-ff", "-y", "-o", folder / "strace", "-e", "trace=read,pread64,readv,preadv,mmap",
                            *command], check=True)
            traces = list(folder.glob("strace.*"))
            read = {name: count for name, count in bytes_read(traces).items() if name.endswith(".safetensors")}
            for trace in traces:
                trace.unlink()
        print(f"| {dtype} | {seconds:.1f} | {usage.ru_maxrss >> 10} | {sum(read.values()) / 1e6:.0f} | {len(read)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder for weights and results")
    parser.add_argument("--towers", nargs="+", choices=TOWERS, default=list(TOWERS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[512, 1024], help="edges of the image in pixels")
    parser.add_argument("--blocks", type=int, default=0, help="of each tower; 0 = all; llama.cpp needs 8 of Qwen2.5-VL, of which one is global")
    parser.add_argument("--engines", nargs="+", choices=["vit", "torch", "llama.cpp"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="of each engine in a round, one pass at least; default: 3, with --windows 1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--llama-python", help="Python with llama-cpp-python and gguf")
    parser.add_argument("--llama-source", type=Path, help="vendor/llama.cpp of its source archive")
    parser.add_argument("--windows", nargs="*", type=int, metavar="N", help="edges in windows; default: 4 6 8 12")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="messages of the other engines")
    options = parser.parse_args()
    if options.seconds is None:
        options.seconds = 3.0 if options.windows is None else 1.0
    options.work.mkdir(parents=True, exist_ok=True)
    if bool(options.llama_python) != bool(options.llama_source):
        parser.error("--llama-python and --llama-source go together")
    (windows if options.windows is not None else whole if options.whole else compare)(options)


if __name__ == "__main__":
    main()
