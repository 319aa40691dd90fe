"""rope2d: equal to the C++ library bit for bit, and to the conformance vectors; conversions, torch, the export."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "apps/python/rope2d"))
import rope2d  # noqa: E402

VECTORS = ROOT / "data/positions"
RNG = np.random.default_rng(5)


def tensors_of(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    types = {"F64": np.float64, "I64": np.int64, "F32": np.float32}
    found = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        found[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], types[entry["dtype"]]).reshape(
            entry["shape"]
        )
    return found


def cases() -> list[Any]:
    found = []
    for path in sorted(VECTORS.glob("*.json")):
        facts = json.loads(path.read_text())
        found += [
            pytest.param(path.stem, title, case, id=f"{path.stem}-{title}")
            for title, case in facts.get("cases", {}).items()
        ]
    return found


def of_case(name: str, title: str, case: dict[str, Any]) -> tuple[rope2d.RopeTable, np.ndarray, dict[str, np.ndarray]]:
    """The table of a case by rope2d, the basis, and the tensors of the file."""
    tensors = {
        key[len(title) + 1 :]: x
        for key, x in tensors_of(VECTORS / f"{name}.safetensors").items()
        if key.startswith(title + ".")
    }
    basis = tensors.get("basis", np.eye(case["head_dim"]))
    if "length" in case:
        rates = rope2d.from_theta(8) if name == "rope-1d" else rope2d.exp_pi(8)
        angles = np.outer(rope2d.coords_1d(case["length"]), rates)
        return rope2d.RopeTable(angles, "neighbors" if name == "rope-1d" else "halves"), basis, tensors
    of = rope2d.convention(name, offset=case["offset"])
    learned = tensors["normal_form"] if of.kind == "mixed" else None
    grid_options: dict[str, Any] = {"frames": case["frames"], "window": case.get("window", 0)}
    if "reference" in case:
        grid_options["reference"] = tuple(case["reference"])
    table = of.table(tuple(case["grid"]), case["head_dim"], case["heads"], frequencies=learned,
                     class_angles=tensors.get("class_angles"), **grid_options)  # fmt: skip
    if "merge" in case:
        table = rope2d.RopeTable(of.angles(tuple(case["grid"]), case["head_dim"])[tensors["patches"]], of.layout)
    return table, basis, tensors


@pytest.mark.parametrize("name, title, case", cases())
def test_vectors(name: str, title: str, case: dict[str, Any]) -> None:
    table, basis, tensors = of_case(name, title, case)
    skipped = 1 if "class_angles" in tensors else 0
    # Angles of up to some 1e4 round by 1e-12; rotated channels are below 3.
    bound = 1e-14 * max(1.0, float(np.abs(tensors["angles"]).max()))
    assert np.abs(table.cos[..., skipped:, :] - tensors["cos"]).max() <= bound
    assert np.abs(table.sin[..., skipped:, :] - tensors["sin"]).max() <= bound
    assert np.array_equal(table.pairs, tensors["pairs"])
    for x in ("q", "k"):
        found = table.rotate(tensors[x] @ basis.T, case["prefix"] - skipped, case["suffix"]) @ basis
        assert np.abs(found - tensors[f"{x}_rotated"]).max() <= 10 * bound
    q, k = (table.rotate(tensors[x] @ basis.T, case["prefix"] - skipped, case["suffix"]) for x in ("q", "k"))
    assert np.abs(rope2d.scores(q, k) - tensors["scores"]).max() <= 100 * bound


def wrong(of: rope2d.Convention) -> list[tuple[str, rope2d.Convention]]:
    from dataclasses import replace

    other = {"x_then_y": "y_then_x", "y_then_x": "x_then_y"}[of.axis_order]
    layout = "halves" if of.layout == "neighbors" else "neighbors"
    found = [("layout", replace(of, layout=layout))]
    if of.kind == "axial":
        found += [("order", replace(of, axis_order=other)), ("theta", replace(of, theta=of.theta * 2))]
        found += [("scale", replace(of, angle_scale=-of.angle_scale)), ("shift", replace(of, second_axis_shift=0.25))]
    if of.coordinates in ("index", "centered", "scaled_to_reference"):
        found.append(("offset", replace(of, offset=of.offset + 1)))
    return found


@pytest.mark.parametrize(
    "name", [n for n in rope2d.conventions() if rope2d.convention(n).kind == "axial" and n != "rvt"]
)
def test_mistakes_are_found(name: str) -> None:
    facts = json.loads((VECTORS / f"{name}.json").read_text())
    for title, case in facts["cases"].items():
        if "merge" in case:
            continue
        tensors = {
            key[len(title) + 1 :]: x
            for key, x in tensors_of(VECTORS / f"{name}.safetensors").items()
            if key.startswith(title + ".")
        }
        for mistake, of in wrong(rope2d.convention(name, offset=case["offset"])):
            options = {"reference": tuple(case["reference"])} if "reference" in case else {}
            table = of.table(
                tuple(case["grid"]), case["head_dim"], frames=case["frames"], window=case.get("window", 0), **options
            )
            found = table.rotate(tensors["q"], case["prefix"], case["suffix"])
            right = tensors["q_rotated"]
            first = case["prefix"]
            assert np.abs(found[:, first:] - right[:, first:]).max() > 0.01, (title, mistake)


def test_rows() -> None:
    rows, shaw = tensors_of(VECTORS / "sinusoidal.safetensors"), tensors_of(VECTORS / "shaw.safetensors")
    for found, expected in (
        (rope2d.sinusoidal_1d(7, 16), rows["line"]),
        (rope2d.sinusoidal_2d((3, 5), 16), rows["grid"]),
        (rope2d.sinusoidal_2d_quarters((3, 5), 16), rows["quarters"]),
        (rope2d.nezha_table(2, 8), shaw["nezha"]),
    ):
        assert found.shape == expected.shape and np.abs(found - expected).max() < 1e-14
    out, weights = rope2d.relative_attention(shaw["q"], shaw["k"], shaw["v"], shaw["keys"], shaw["values"])
    assert np.abs(out - shaw["out"]).max() < 1e-14 and np.abs(weights - shaw["probabilities"]).max() < 1e-15
    assert np.array_equal(rope2d.relative_index(6, 2), shaw["index"])


GRIDS = [(1, 1), (3, 5), (14, 20), (37, 2)]


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("head_dim", [4, 16, 64, 80])
def test_equal_to_the_library_bit_for_bit(grid: tuple[int, int], head_dim: int) -> None:
    pytest.importorskip("vitcpp")
    from vitcpp.position import RopeTable, frequencies, grid_coordinates

    short = {"index": "index", "scaled_to_reference": "scaled", "centered": "centered"}
    for name in rope2d.conventions():
        of = rope2d.convention(name)
        if (
            of.kind != "axial"
            or of.second_axis_shift
            or of.per_window
            or of.coordinates not in short
            or of.layout not in ("neighbors", "halves")
        ):
            continue
        reference = of.reference or (0, 0)
        coords = of.coords(grid)
        t_x, t_y = grid_coordinates(grid, short[of.coordinates], of.offset, reference)
        assert np.array_equal(coords.t_x, t_x) and np.array_equal(coords.t_y, t_y)
        f = frequencies(head_dim // 4, a=of.theta) * of.angle_scale
        assert np.array_equal(rope2d.from_theta(head_dim // 4, of.theta, of.angle_scale), f)
        theirs = RopeTable.axial(grid, f, coordinates=short[of.coordinates], offset=of.offset, reference=reference,
                                 order=of.axis_order[0] + of.axis_order[-1], pairing=of.layout, dtype=np.float64)  # fmt: skip
        ours = of.table(grid, head_dim)
        assert np.array_equal(ours.cos, theirs.cos) and np.array_equal(ours.sin, theirs.sin)
        x = RNG.standard_normal((2, 1 + len(coords), 3, head_dim))
        assert np.array_equal(ours.rotate(x.swapaxes(1, 2), 1).swapaxes(1, 2), theirs.rotate(x, 1))


def test_learned_and_other_frequencies_bit_for_bit() -> None:
    pytest.importorskip("vitcpp")
    from vitcpp.position import RopeTable, frequencies, sinusoidal

    for count in (1, 4, 16, 20):
        assert np.array_equal(rope2d.exp_pi(count), frequencies(count, "exp_pi"))
        assert np.array_equal(rope2d.from_period_range(count, 0.5, 90.0), frequencies(count, "periods", 0.5, 90.0))
        assert np.array_equal(rope2d.pixel_bands(count, 16.0), frequencies(count, "pixels", 16.0))
    learned = RNG.standard_normal((2, 3, 4, 8))
    theirs = RopeTable.mixed((3, 5), learned, layer=1, dtype=np.float64)
    ours = rope2d.convention("rope-vit-mixed").table((3, 5), 16, 4, frequencies=rope2d.mixed(learned)[1])
    assert np.array_equal(ours.cos, theirs.cos) and np.array_equal(ours.sin, theirs.sin)
    assert np.array_equal(rope2d.sinusoidal_1d(9, 16), sinusoidal(9, 16, dtype=np.float64))
    assert np.array_equal(rope2d.sinusoidal_2d((3, 5), 16), sinusoidal((3, 5), 16, dtype=np.float64))
    assert np.array_equal(
        rope2d.sinusoidal_2d_quarters((3, 5), 16), sinusoidal((3, 5), 16, layout="quarters", dtype=np.float64)
    )


def program_rope(*arguments: Any, status: int = 0) -> str:
    """Output of `vit rope`."""
    program = os.environ.get("VITCPP_PROGRAM")
    if not program:
        pytest.skip("no program vit")
    done = subprocess.run([program, "rope", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return done.stdout


def test_tables_of_the_program_bit_for_bit(tmp_path: Path) -> None:
    names = [json.loads(line)["name"] for line in program_rope("--list", "--format", "json").splitlines()]
    assert sorted(names) == sorted(rope2d.conventions())
    for name in names:
        of = rope2d.convention(name)
        if of.kind == "mixed":  # learned numbers
            continue
        frames, heads = (2 if of.kind == "volume" else 1), (3 if of.kind == "directions" else 1)
        d, path = 20 if of.kind == "volume" else 16, tmp_path / f"{name}.safetensors"
        grid = (1, 9) if of.kind == "line" else (3, 5)
        more = ("--heads", heads) if name.startswith("golden-gate") else ()
        program_rope("--family", name, "--grid", "x".join(map(str, grid)), "--head-dim", d, "--frames", frames, *more, "--output", path)
        theirs = tensors_of(path)
        window = 24 if of.per_window else 0  # a window of the whole grid
        coords = of.coords(grid, frames=frames, window=window)
        table = of.table(grid, d, heads, frames=frames, window=window)
        angles = of.angles(grid, d, heads, frames=frames, window=window)
        order = np.arange(angles.shape[-1])
        if of.layout == "alternating":  # there in the order of the channels
            order = order.reshape(2, -1).T.ravel()
        assert np.array_equal(theirs["coords"][:, 0], coords.t_x) and np.array_equal(theirs["coords"][:, 1], coords.t_y)
        assert np.array_equal(theirs["angles"], angles[..., order]), name
        assert np.array_equal(theirs["cos"], table.cos[..., order]), name
        assert np.array_equal(theirs["sin"], table.sin[..., order]), name


def test_the_program_recognizes_the_vectors(tmp_path: Path) -> None:
    num_found = 0
    for name in (json.loads(line)["name"] for line in program_rope("--list", "--format", "json").splitlines()):
        facts = json.loads((VECTORS / f"{name}.json").read_text())
        for title, case in facts["cases"].items():
            if title in ("windows", "pointers") or (title == "frames" and rope2d.convention(name).kind == "axial"):
                continue  # other orders of patches, frames that are images of their own
            tensors = tensors_of(VECTORS / f"{name}.safetensors")
            path = tmp_path / f"{name}-{title}.safetensors"
            keys = ["q", "q_rotated"] + (["basis"] if f"{title}.basis" in tensors else [])
            rope2d.save_safetensors(path, {key: tensors[f"{title}.{key}"] for key in keys})
            rows, columns = case.get("grid", (1, case.get("length")))
            arguments = ("identify", path, "--grid", f"{rows}x{columns}", "--format", "json")
            others = {  # what is another convention, and what differs from the nearest one
                ("croco", "offset"): ("croco", ["offset"]),  # VGGT's
                ("sam3", "plain"): ("sam3", ["reference"]),  # windows that are not 24 wide
                ("sam3", "wide"): ("sam3", ["reference"]),
                ("perception-encoder-timm", "no_class"): ("sam3", ["reference"]),  # i / G * 32
            }
            if name == "sam3-windows":
                continue
            found = json.loads(program_rope(*arguments, status=int((name, title) in others)))
            if (name, title) in others:
                nearest, differs = others[name, title]
                assert found["convention"] is None and found["nearest"] == nearest and found["differs"] == differs, found
                continue
            same = {"llama4": "perception-encoder"}.get(name, name)
            if (name, title) in (("perception-encoder", "no_class"),):
                same = "sam2"
            assert found["convention"] == same or any(name in note for note in found["notes"]), (name, title, found)
            num_found += 1
    assert num_found >= 30


LAYOUTS = ("neighbors", "halves", "alternating", "halves_by_axis")


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_conversions_keep_the_scores(source: str, target: str) -> None:
    from dataclasses import replace

    heads, d, width, grid = 3, 16, 20, (3, 5)
    qwen = rope2d.convention("qwen2-vl")
    a, b = replace(qwen, layout=source), replace(qwen, layout=target, axis_order="x_then_y")
    weight, bias, gamma = (
        RNG.standard_normal((3 * heads * d, width)),
        RNG.standard_normal(3 * heads * d),
        RNG.standard_normal((2, d)),
    )

    def scores(of: rope2d.Convention, weight: np.ndarray, bias: np.ndarray, gamma: np.ndarray) -> np.ndarray:
        x = np.random.default_rng(1).standard_normal((15, width))
        q, k, v = (x @ weight.T + bias).reshape(15, 3, heads, d).transpose(1, 2, 0, 3)
        q, k = (part / np.sqrt((part**2).mean(-1, keepdims=True)) * g for part, g in zip((q, k), gamma))
        table = of.table(grid, d)
        return np.concatenate([rope2d.scores(table.rotate(q), table.rotate(k)), v @ v.swapaxes(1, 2)])

    expected = scores(a, weight, bias, gamma)
    converted = (
        rope2d.convert_qkv(weight, heads, a, b),
        rope2d.convert_qkv(bias, heads, a, b),
        rope2d.convert_channels(gamma, a, b),
    )
    assert np.abs(scores(b, *converted) - expected).max() < 1e-12
    if source != target:
        assert np.abs(scores(b, weight, bias, gamma) - expected).max() > 0.1
    assert np.array_equal(rope2d.convert_qkv(converted[0], heads, b, a), weight)


def test_conversions_that_do_not_exist() -> None:
    for source, target in (("dinov3", "qwen2-vl"), ("qwen2-vl", "croco"), ("qwen2-vl", "pixtral"), ("vjepa2", "vjepa2"),
                           ("rope-vit", "rope-vit-mixed"), ("perception-encoder", "sam2")):  # fmt: skip
        with pytest.raises(ValueError, match="differ|learned|no rotations"):
            rope2d.channel_order(source, target, 16)
    assert rope2d.channel_order("pixtral", "mistral", 16).tolist()[:4] == [0, 8, 1, 9]
    assert rope2d.channel_order("golden-gate", "neighbors", 8).tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert rope2d.channel_order("halves", "moonvit", 8).tolist() == [0, 4, 2, 6, 1, 5, 3, 7]
    assert rope2d.channel_order("minimax-m3", "minimax-m3", 20).tolist() == list(range(20))


def test_errors() -> None:
    of = rope2d.convention("EVA-02")
    assert of.name == "eva02" and rope2d.convention("qwen 2.5-vl").name == "qwen2-vl"
    for call in (
        lambda: rope2d.convention("nothing"),
        lambda: of.table((0, 3), 16),
        lambda: of.table((2, 3), 18),
        lambda: of.table((2, 3), 16).rotate(np.zeros((5, 16))),
        lambda: of.table((2, 3), 16).rotate(np.zeros((7, 16)), -1, 2),
        lambda: of.table((2, 3), 16, frequencies=np.zeros((8, 2))),
        lambda: of.table((2, 3), 16, class_angles=np.zeros(8)),
        lambda: rope2d.convention("rope-vit-mixed").table((2, 3), 16),
        lambda: rope2d.convention("sam3-windows").table((2, 3), 16),
        lambda: rope2d.convention("vjepa2.1").table((1, 3), 20),
        lambda: rope2d.grid_coords((2, 3), "scaled_to_reference"),
        lambda: rope2d.grid_coords((2, 3), "diagonal"),  # type: ignore[arg-type]
        lambda: rope2d.from_theta(4, -1.0),
        lambda: rope2d.from_theta(0),
        lambda: rope2d.from_periods([1.0, 0.0]),
        lambda: rope2d.spiral(20, 4),
        lambda: rope2d.RopeTable([[np.nan]]),
        lambda: rope2d.RopeTable([[1.0]], dtype=np.float16),
        lambda: rope2d.sinusoidal_2d((2, 2), 6),
        lambda: rope2d.convert_rows(np.zeros((7, 3)), 2, "neighbors", "halves"),
    ):
        with pytest.raises(ValueError):
            call()
    cos, sin = rope2d.convention("minimax-m3").table((1, 2), 20).per_channel()
    assert cos.shape == (2, 20) and (cos[:, 18:] == 1).all() and (sin[:, 18:] == 0).all()


def test_version() -> None:
    found = re.search(r"project\(vit VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    assert found and rope2d.__version__ == found.group(1)


def test_page() -> None:
    """The blocks of data/positions/README.md and of the package's page run."""
    page = (VECTORS / "README.md").read_text()
    numpy_block, torch_block = re.findall(r"```python\n(.*?)```", page, re.S)
    of = rope2d.convention("dinov3")

    def rotate(x: Any, grid: tuple[int, int]) -> Any:
        found = of.table(grid, x.shape[-1], dtype=np.float64).rotate(
            np.asarray(x, np.float64), x.shape[-2] - grid[0] * grid[1]
        )
        return found if isinstance(x, np.ndarray) else type(x)(found)

    blocks = []
    try:
        import safetensors.numpy  # noqa: F401

        blocks.append(numpy_block)
        import safetensors.torch  # noqa: F401

        blocks.append(torch_block)
    except ImportError:
        pass
    here = os.getcwd()
    try:
        os.chdir(ROOT)
        for block in blocks:
            exec(block, {"rotate": rotate})
            with pytest.raises(AssertionError):
                exec(block, {"rotate": lambda x, grid: x})
        names: dict[str, Any] = {"np": np}
        for block in re.findall(r"```python\n(.*?)```", (ROOT / "apps/python/rope2d/README.md").read_text(), re.S):
            if "torch" not in block or torch_block in blocks:
                exec(block, names)
    finally:
        os.chdir(here)


def test_page_in_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    block = re.search(r"```c\n(.*?)```", (VECTORS / "README.md").read_text(), re.S)
    assert block
    (tmp_path / "main.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        + block.group(1)
        + """
int main(int count, char** arguments) {
  FILE* stream = fopen(arguments[1], "rb");
  char* file = calloc(1 << 20, 1);
  if (count < 3 || !stream || fread(file, 1, (1 << 20) - 1, stream) == 0) return 1;
  for (int i = 0; i < 5; ++i) printf("%.17g\\n", vector_of(file, arguments[2])[i]);
  return 0;
}
"""
    )
    subprocess.run([compiler, "-Wall", "-Werror", "-o", tmp_path / "main", tmp_path / "main.c"], check=True)
    path = VECTORS / "dinov3.safetensors"
    for name, tensor in tensors_of(path).items():
        if tensor.dtype == np.float64:
            done = subprocess.run([tmp_path / "main", path, f'"{name}"'], capture_output=True, text=True, check=True)
            assert [float(line) for line in done.stdout.split()] == tensor.ravel()[:5].tolist()


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    from rope2d.torch import RotaryEmbedding

    for name in ("dinov3", "croco", "vjepa2", "minimax-m3"):
        of = rope2d.convention(name)
        module = RotaryEmbedding(name, 20 if of.kind == "volume" else 16)
        assert not module.state_dict()
        x = torch.randn(2, 3, 1 + 15, module.head_dim, dtype=torch.float64, requires_grad=True)
        y, again = module(x, x, (3, 5), 1)
        expected = of.table((3, 5), module.head_dim, dtype=np.float32).rotate(x.detach().numpy().astype(np.float32), 1)
        assert np.abs(y.detach().numpy() - expected).max() < 1e-6 and torch.equal(y, again)
        (y**2).sum().backward()
        if of.is_rotation:  # lengths are kept, so the gradient of the squares is that of x
            assert torch.allclose(x.grad, 2 * x, atol=1e-6)
        assert module(x.bfloat16(), x.bfloat16(), (3, 5), 1)[0].dtype == torch.bfloat16
    mixed = RotaryEmbedding("rope-vit-mixed", 8, 2).double()
    assert list(mixed.state_dict()) == ["frequencies"] and mixed.frequencies.shape == (2, 4, 2)
    x = torch.randn(1, 2, 6, 8, dtype=torch.float64)

    def total(frequencies: Any) -> Any:
        return torch.func.functional_call(mixed, {"frequencies": frequencies}, (x, x, (2, 3)))[0].sum()

    assert torch.autograd.gradcheck(total, mixed.frequencies.detach().clone().requires_grad_())
    ours = rope2d.convention("rope-vit-mixed").table((2, 3), 8, 2, frequencies=mixed.frequencies.detach().numpy())
    assert np.abs(mixed(x, x, (2, 3))[0].detach().numpy() - ours.rotate(x.numpy())).max() < 1e-14
    with pytest.raises(ValueError):
        mixed(x, x, (3, 3))


def test_export_permutes_what_the_program_does_not_compute(tmp_path: Path) -> None:
    tensors = {f"b.{i}.{part}.{kind}": RNG.standard_normal((8, 8) if kind == "weight" else 8).astype(np.float32)
               for i in range(2) for part in ("q", "k", "v") for kind in ("weight", "bias")}  # fmt: skip
    tensors["b.0.n.weight"] = tensors["b.1.n.weight"] = np.arange(8, dtype=np.float32)
    names = {"qkv": ["b.{block}.q.*", "b.{block}.k.*", "b.{block}.v.*"], "q_norm": "b.{block}.n.*"}
    weights, layout = rope2d.export_layout(
        tmp_path / "m", tensors, names, "gemma4", num_heads=1, config={"norm_eps": 1e-6}
    )
    written, text = tensors_of(weights), json.loads(layout.read_text())
    assert text["config"]["position"] == {
        "rope": "axial",
        "pairing": "halves",
        "coordinates": "index",
        "axis_order": "x_then_y",
        "theta": 100.0,
    }
    order = [0, 1, 4, 5, 2, 3, 6, 7]
    for i in range(2):
        for part, of in (("q", order), ("k", order), ("v", list(range(8)))):
            for kind in ("weight", "bias"):
                assert np.array_equal(written[f"b.{i}.{part}.{kind}"], tensors[f"b.{i}.{part}.{kind}"][of])
        assert np.array_equal(written[f"b.{i}.n.weight"], np.arange(8)[order])
    for wrong_names, rope in (
        (names, "vjepa2"),
        (names, "spiral"),
        (names, "mlcd"),
        ({"qkv": "x.*"}, "dinov3"),
        ({"q_norm": "b.{block}.n.*"}, "dinov3"),
    ):
        with pytest.raises(ValueError):
            rope2d.export_layout(tmp_path / "n", tensors, wrong_names, rope, num_heads=1, config={})
    assert not (tmp_path / "n.json").exists()


def test_training_example(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = os.environ.get("VITCPP_PROGRAM")
    if not program:
        pytest.skip("no program vit")
    script = ROOT / "apps/python/rope2d/examples/train_tiny.py"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "apps/python/rope2d")}
    for rope in ("dinov3", "rope-vit", "rope-vit-mixed", "gemma4"):
        done = subprocess.run([sys.executable, script, "--rope", rope, "--steps", "3", "--output", tmp_path / rope, "--vit", program],
                              capture_output=True, text=True, check=False, env=environment)  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        assert "agree" in done.stdout


def test_complex_numbers_are_refused() -> None:
    table = rope2d.convention("dinov3").table((2, 3), 8)
    x = np.ones((1, 6, 8))
    for call in (
        lambda: table.rotate(x * 1j),
        lambda: rope2d.RopeTable(np.ones((6, 4)) * 1j),
        lambda: rope2d.from_periods([1j]),
        lambda: rope2d.relative_attention(x * 1j, x, x, np.ones((3, 8)), np.ones((3, 8))),
    ):
        with pytest.raises(ValueError, match="real"):
            call()
    given = x.copy()
    assert table.rotate(given) is not given and np.array_equal(given, x)  # a new array
    assert np.array_equal(table.rotate(x.astype(">f8")), table.rotate(x))
