"""Rotary position embeddings of vision models, with numpy alone.

    import rope2d

    dinov3 = rope2d.convention("dinov3")
    table = dinov3.table((14, 20), head_dim=64)             # cosines and sines, (280, 32)
    q = table.rotate(q, num_prefix_tokens=5)                # (B, H, 5 + 280, 64)

Names are those of the C++ library vit::position; float64 tables are equal to its tables bit for bit.
Letters: d = channels of a head, F = d / 4 frequencies of an axis, A = angles of a head (d / 2, with an angle per channel d),
N = patches of a grid (rows, columns) in row-major order, T = tokens, H = heads, C = channels of a model.
"""

from .conventions import Convention, convention, conventions
from .conversion import channel_order, convert_channels, convert_qkv, convert_rows
from .coordinates import (
    GridCoords,
    clip_coords,
    coords_1d,
    grid_coords,
    num_patches,
    reordered,
    window_coords,
    window_order,
)
from .export import export_layout, save_safetensors
from .frequencies import (
    axial,
    exp_pi,
    from_period_range,
    from_periods,
    from_theta,
    golden_gate,
    golden_gate_nd,
    mixed,
    num_axial_frequencies,
    num_frequencies_1d,
    num_volume_frequencies,
    pixel_bands,
    spiral,
    volume,
)
from .rows import nezha_table, relative_attention, relative_index, sinusoidal_1d, sinusoidal_2d, sinusoidal_2d_quarters
from .table import RopeTable, rope_angles, scores

__version__ = "0.3.0"  # of the project in CMakeLists.txt

__all__ = [
    "Convention",
    "GridCoords",
    "RopeTable",
    "__version__",
    "axial",
    "channel_order",
    "clip_coords",
    "convention",
    "conventions",
    "convert_channels",
    "convert_qkv",
    "convert_rows",
    "coords_1d",
    "exp_pi",
    "export_layout",
    "from_period_range",
    "from_periods",
    "from_theta",
    "golden_gate",
    "golden_gate_nd",
    "grid_coords",
    "mixed",
    "nezha_table",
    "num_axial_frequencies",
    "num_frequencies_1d",
    "num_patches",
    "num_volume_frequencies",
    "pixel_bands",
    "relative_attention",
    "relative_index",
    "reordered",
    "rope_angles",
    "save_safetensors",
    "scores",
    "sinusoidal_1d",
    "sinusoidal_2d",
    "sinusoidal_2d_quarters",
    "spiral",
    "volume",
    "window_coords",
    "window_order",
]
