"""Writes data/golden/rope_scaling/expected.json: frequencies of scaled rotary positions and the factor on queries and keys, as the
published code of FiT and transformers computes them, in float64.

    python3 tests/golden/make_rope_scaling_golden.py FIT

FIT is a copy of FiT's repository, or its file fit/model/rope.py. Needs torch, einops and transformers.
"""

import importlib.util
import json
import pathlib
import sys

import torch

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/golden/rope_scaling/expected.json"
# Frequencies of an axis, base of the ladder, trained patches of an axis, and grids of as many patches or more, rows first:
# FiT scales nothing down.
LADDERS = ((8, 100.0, 10), (16, 10000.0, 16), (4, 100.0, 14), (16, 10000.0, 256), (2, 10000.0, 64))
GRIDS = ((1, 1), (2, 2), (1, 1.5), (3, 1), (4, 2.5))


def in_double(function):
    """What `function` returns where float and float32 mean double."""
    kept = torch.float, torch.float32, torch.Tensor.float, torch.get_default_dtype()
    torch.float = torch.float32 = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        return function()
    finally:
        torch.float, torch.float32, torch.Tensor.float = kept[:3]
        torch.set_default_dtype(kept[3])


def published_fit(path):
    file = path if path.is_file() else path / "fit/model/rope.py"
    spec = importlib.util.spec_from_file_location("fit_rope", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.VisionRotaryEmbedding


def fit_cases(embedding):
    for count, theta, trained in LADDERS:
        for rows, columns in ((round(trained * y), round(trained * x)) for y, x in GRIDS):
            for published, rule in (("linear", "linear"), ("ntk-aware", "ntk"), ("yarn", "yarn,truncate=true")):
                for axes in ("each", "common"):
                    rope = in_double(lambda: embedding(
                        4 * count, published, int(theta), max_pe_len_h=rows, max_pe_len_w=columns,
                        decouple=axes == "each", ori_max_pe_len=trained))
                    yield {"by": "FiT", "rule": rule + (",axes=common" if axes == "common" else ""), "theta": theta,
                           "trained": trained, "rows": rows, "columns": columns,
                           "x": rope.freqs_w.double().tolist(), "y": rope.freqs_h.double().tolist(),
                           "attention_factor": float(rope.mscale) if published == "yarn" else 1.0}


def transformers_cases():
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    for count, theta, trained in LADDERS:
        for factor in (1.5, 4.0):
            for kind, rule, extra in (("linear", "linear", {}), ("dynamic", "ntk", {}), ("yarn", "yarn,truncate=true", {}),
                                      ("yarn", "yarn,beta_fast=4,beta_slow=0.5,truncate=true",
                                       {"beta_fast": 4, "beta_slow": 0.5})):
                length = round(trained * factor)
                parameters = {"rope_type": kind, "rope_theta": theta, "factor": length / trained,
                              "original_max_position_embeddings": trained, **extra}
                if kind == "dynamic":  # what it is without a factor of its own
                    parameters["factor"] = 1.0
                config = LlamaConfig(hidden_size=2 * count, num_attention_heads=1, head_dim=2 * count,
                                     max_position_embeddings=trained, rope_parameters=parameters)
                frequencies, attention = in_double(lambda: ROPE_INIT_FUNCTIONS[kind](config, None, seq_len=length))
                yield {"by": "transformers", "rule": rule, "theta": theta, "trained": trained, "rows": length,
                       "columns": length, "x": frequencies.tolist(), "y": frequencies.tolist(),
                       "attention_factor": float(attention)}


def main():
    cases = [*fit_cases(published_fit(pathlib.Path(sys.argv[1]))), *transformers_cases()]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
