// Conventions of rotary positions in the C interface: tables and normal forms by name, and identification.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/c.h"
#include "vit/c/guard.h"
#include "vit/position/convention_tables.h"
#include "vit/position/normal_form.h"
#include "vit/position/rope.h"
#include "vit/position/rope_file.h"
#include "vit/position/rope_json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::position;

struct vit_rope_form {
  std::string name;  // of the convention
  RopeNormalForm form;
  Tensor<double> coordinates, angles, cos, sin, frequencies, phases;
  std::vector<int32_t> pairs;
};

struct vit_rope_identity {
  std::string json;
};

namespace {

constexpr std::size_t kMaxTableNumbers = std::size_t{1} << 26;

const RopeConvention& known_convention(const char* name) {
  const std::string wanted = text_or_empty(name);
  if (const RopeConvention* const found = find_rope_convention(wanted)) return *found;
  std::string names;
  for (const RopeConvention& each : rope_conventions()) names += (names.empty() ? "" : ", ") + each.name;
  fail(kCall, "no convention or family of rotary positions is named '", wanted, "'; there are ", names);
}

Tensor<double> coordinate_rows(const GridCoords& coords) {
  const std::size_t axes = coords.t_t.empty() ? 2 : 3;
  Tensor<double> out(Shape{coords.size(), axes});
  for (std::size_t i = 0; i < coords.size(); ++i) {
    double* const row = out.data() + i * axes;
    row[0] = coords.t_x[i];
    row[1] = coords.t_y[i];
    if (axes == 3) row[2] = coords.t_t[i];
  }
  return out;
}

Tensor<double> mapped(const Tensor<double>& values, double (*function)(double)) {
  Tensor<double> out(values.shape());
  std::ranges::transform(values.flat(), out.data(), function);
  return out;
}

/// The shape, after one of heads if they differ.
Shape per_head(std::size_t num_heads, std::size_t count, std::size_t columns) {
  if (columns == 0) return num_heads == 1 ? Shape{count} : Shape{num_heads, count};
  return num_heads == 1 ? Shape{count, columns} : Shape{num_heads, count, columns};
}

void fill_normal_form(vit_rope_form& out) {
  const FrequencyVectors& vectors = out.form.frequencies;
  const std::size_t heads = vectors.num_heads(), count = vectors.num_angles();
  out.frequencies = Tensor<double>(per_head(heads, count, 3));
  double* w = out.frequencies.data();
  for (std::size_t head = 0; head < heads; ++head) {
    for (const FrequencyVector& each : vectors.of(0, head)) {
      *w++ = each.x;
      *w++ = each.y;
      *w++ = each.t;
    }
  }
  out.phases = Tensor<double>(per_head(heads, count, 0));
  std::ranges::copy(out.form.phases, out.phases.data());
  for (const ChannelPair& pair : out.form.pairs) {
    out.pairs.push_back(static_cast<int32_t>(pair.p));
    out.pairs.push_back(static_cast<int32_t>(pair.q));
  }
}

vit_rope_form make_form(const char* name, const vit_rope_form_options& options) {
  RopeConvention c = known_convention(name);
  const GridSize grid{options.rows, options.columns};
  const std::size_t frames = std::max<std::size_t>(1, options.num_frames);
  const std::size_t heads = std::max<std::size_t>(1, options.num_heads);
  VIT_CHECK(options.rows > 0 && options.columns > 0, kCall, "a grid of ", options.rows, " x ",
            options.columns, " patches, expected at least one");
  const HeadSizes sizes = head_sizes(c);
  VIT_CHECK(sizes.contain(options.head_dim), kCall, "head_dim is ", options.head_dim,
            ", expected a multiple of ", sizes.step, " from ", sizes.smallest, " on");
  std::size_t room = kMaxTableNumbers;
  for (const std::size_t size : {options.rows, options.columns, options.head_dim, frames, heads})
    room /= size;
  VIT_CHECK(room > 0, kCall, "a table of more than ", kMaxTableNumbers, " numbers");
  VIT_CHECK(options.head_dim <= 4096 || c.basis_block == 0, kCall, "head_dim is ", options.head_dim,
            ", at most 4096 channels have a basis");
  if (options.reference_rows != 0 || options.reference_columns != 0) {
    VIT_CHECK(c.is_reference_native && options.reference_rows != 0 && options.reference_columns != 0, kCall,
              "a reference grid of ", options.reference_rows, " x ", options.reference_columns,
              ": expected none, but for perception-encoder-timm and vjepa2.1");
    c.reference = {options.reference_rows, options.reference_columns};
  }
  const GridCoords coords = coordinates(c, grid, frames);
  Tensor<double> angles = rope_angles(coords, frequency_vectors(c, options.head_dim, heads));
  Tensor<double> cos = mapped(angles, [](double angle) { return std::cos(angle); });
  Tensor<double> sin = mapped(angles, [](double angle) { return std::sin(angle); });
  vit_rope_form out{.name = c.name,
                    .form = normal_form(c, grid, options.head_dim, heads),
                    .coordinates = coordinate_rows(coords),
                    .angles = std::move(angles),
                    .cos = std::move(cos),
                    .sin = std::move(sin),
                    .frequencies = {},
                    .phases = {},
                    .pairs = {}};
  fill_normal_form(out);
  return out;
}

/// A tensor of the caller's memory.
TensorEntry entry_of(const char* name, const vit_array& array) {
  const std::string label = text_or_empty(name);
  VIT_CHECK(!label.empty(), kCall, "an array has no name");
  VIT_CHECK(array.dtype == VIT_FLOAT32 || array.dtype == VIT_FLOAT64, kCall, "array ", label, " has dtype ",
            array.dtype, ", expected VIT_FLOAT32 or VIT_FLOAT64");
  VIT_CHECK(array.ndim >= 1 && array.ndim <= 5, kCall, "array ", label, " has ", array.ndim,
            " dimensions, expected 1 to 5");
  const std::size_t bytes = array.dtype == VIT_FLOAT32 ? sizeof(float) : sizeof(double);
  TensorEntry out{.name = label,
                  .dtype = array.dtype == VIT_FLOAT32 ? Dtype::f32 : Dtype::f64,
                  .dtype_name = array.dtype == VIT_FLOAT32 ? "float32" : "float64",
                  .shape = {array.shape, array.shape + array.ndim},
                  .strides = {},
                  .bytes = {},
                  .file = {}};
  std::size_t room = kMaxTableNumbers;
  for (const std::size_t size : out.shape) {
    VIT_CHECK(size > 0 && size <= room, kCall, "array ", label, " is empty or has more than ",
              kMaxTableNumbers, " numbers");
    room /= size;
  }
  const std::span<const std::byte> memory(
      static_cast<const std::byte*>(
          &object_at(static_cast<const std::byte*>(array.data), "the data of an array")),
      out.num_elements() * bytes);
  out.bytes = StoredBytes(memory);
  return out;
}

vit_rope_identity* identified(const TensorFile& file, const vit_rope_identify_options& options) {
  IdentifyOptions known;
  VIT_CHECK((options.rows == 0) == (options.columns == 0), kCall, "a grid of ", options.rows, " x ",
            options.columns, " patches");
  VIT_CHECK(options.rows <= kMaxTableNumbers && options.columns <= kMaxTableNumbers, kCall, "a grid of ",
            options.rows, " x ", options.columns, " patches");
  VIT_CHECK(options.reserved == 0, kCall, "reserved is ", options.reserved, ", expected 0");
  if (options.rows != 0) known.grid = GridSize{options.rows, options.columns};
  if (options.has_prefix != 0) known.num_prefix = options.num_prefix_tokens;
  const RopeConvention* against = nullptr;
  if (options.against != nullptr) against = &known_convention(options.against);
  return new vit_rope_identity{to_json(identify_rope_file(file, known), against)};
}

}  // namespace

vit_status vit_rope_conventions(const char** json) {
  return guarded([&] {
    static const std::string kList = [] {
      std::string out = "[";
      for (const RopeConvention& each : rope_conventions()) out += (out == "[" ? "" : ",") + to_json(each);
      return out + "]";
    }();
    object_at(json, "json") = kList.c_str();
  });
}

vit_status vit_rope_form_create(const char* convention, const vit_rope_form_options* options,
                                vit_rope_form** form) {
  return guarded([&] {
    vit_rope_form*& out = object_at(form, "form");
    out = new vit_rope_form(
        make_form(&object_at(convention, "convention"), options_of(options, "vit_rope_form_options")));
  });
}

void vit_rope_form_free(vit_rope_form* form) {
  delete form;
}

vit_status vit_rope_form_get(const vit_rope_form* form, int32_t name, vit_array* array) {
  return guarded([&] {
    const vit_rope_form& known = object_at(form, "form");
    vit_array& out = object_at(array, "array");
    switch (name) {
      case VIT_ROPE_COORDINATES: out = array_of(known.coordinates.view()); break;
      case VIT_ROPE_ANGLES: out = array_of(known.angles.view()); break;
      case VIT_ROPE_COS: out = array_of(known.cos.view()); break;
      case VIT_ROPE_SIN: out = array_of(known.sin.view()); break;
      case VIT_ROPE_FREQUENCIES: out = array_of(known.frequencies.view()); break;
      case VIT_ROPE_PHASES: out = array_of(known.phases.view()); break;
      case VIT_ROPE_PAIRS: out = array_of(known.pairs.data(), VIT_INT32, {known.pairs.size() / 2, 2}); break;
      case VIT_ROPE_BASIS:
        VIT_CHECK(!known.form.basis.empty(), kCall, known.name, " has no basis of its own");
        out = array_of(known.form.basis.view());
        break;
      default: fail(kCall, "name is ", name, ", an undefined number");
    }
  });
}

vit_status vit_rope_form_rotate(const vit_rope_form* form, double* x, const size_t* shape, uint32_t ndim,
                                size_t num_prefix_tokens) {
  return guarded([&] {
    const vit_rope_form& known = object_at(form, "form");
    VIT_CHECK(ndim == 4, kCall, "x has ", ndim, " dimensions, expected (B, L, H, d)");
    const Shape sizes(std::span<const std::size_t>(span_of(shape, ndim, "shape")));
    VIT_CHECK(sizes.last() == known.form.head_dim, kCall, "x has ", sizes.last(), " channels, the form ",
              known.form.head_dim);
    const TensorView<double> view(&object_at(x, "x"), sizes);
    if (!known.form.basis.empty()) change_basis(view, known.form.basis, BasisChange::into, num_prefix_tokens);
    rotate_pairs(view, known.angles, known.form.pairs, known.form.angles, num_prefix_tokens);
    if (!known.form.basis.empty()) change_basis(view, known.form.basis, BasisChange::back, num_prefix_tokens);
  });
}

vit_status vit_rope_identify(const char* path, const vit_rope_identify_options* options,
                             vit_rope_identity** identity) {
  return guarded([&] {
    vit_rope_identity*& out = object_at(identity, "identity");
    out = identified(open_rope_file(std::string(&object_at(path, "path"))),
                     options_of(options, "vit_rope_identify_options"));
  });
}

vit_status vit_rope_identify_arrays(const char* const* names, const vit_array* arrays, size_t count,
                                    const vit_rope_identify_options* options, vit_rope_identity** identity) {
  return guarded([&] {
    vit_rope_identity*& out = object_at(identity, "identity");
    TensorFile::Contents contents;
    contents.path = "the arrays";
    const std::span<const char* const> labels = span_of(names, count, "names");
    const std::span<const vit_array> given = span_of(arrays, count, "arrays");
    for (std::size_t i = 0; i < count; ++i) contents.entries.push_back(entry_of(labels[i], given[i]));
    out = identified(TensorFile(std::move(contents)), options_of(options, "vit_rope_identify_options"));
  });
}

vit_status vit_rope_identity_json(const vit_rope_identity* identity, const char** json) {
  return guarded([&] { object_at(json, "json") = object_at(identity, "identity").json.c_str(); });
}

void vit_rope_identity_free(vit_rope_identity* identity) {
  delete identity;
}
