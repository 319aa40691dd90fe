#include "vit/position/rope_file.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/npz.h"
#include "vit/io/safetensors.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kRopeFile{"identify_rope", ErrorKind::format};
constexpr std::size_t kMaxTableNumbers = std::size_t{1} << 26;
constexpr std::size_t kMaxHeadDim = 1024;  // of a basis, which is multiplied with itself

/// Two tensors that belong together.
struct NamePair {
  std::string_view first, second;
};
constexpr NamePair kTables[] = {
    {"cos", "sin"}, {"freqs_cos", "freqs_sin"}, {"rope.cos", "rope.sin"}, {"cos_cached", "sin_cached"}};
constexpr NamePair kVectors[] = {{"q", "q_rotated"}, {"k", "k_rotated"}};

RopeNumbers numbers_of(const TensorFile& file, std::string_view name) {
  const TensorEntry& entry = file.at(name);
  VIT_CHECK(is_floating(entry.dtype), kRopeFile, entry.describe(), " has type ", entry.dtype_name,
            ", expected float16, bfloat16, float32 or float64");
  VIT_CHECK(entry.shape.size() <= 4 && entry.num_elements() <= kMaxTableNumbers, kRopeFile, entry.describe(),
            ": at most 4 dimensions and ", kMaxTableNumbers, " numbers are read");
  RopeNumbers out{.values = Tensor<double>(Shape(std::span<const std::size_t>(entry.shape)))};
  VIT_CHECK(!out.values.empty() && out.values.shape().rank() >= 2, kRopeFile, entry.describe(),
            " has no rows and columns");
  convert(entry, out.values.flat());
  const auto bad =
      std::ranges::find_if(out.values.flat(), [](double value) { return !std::isfinite(value); });
  VIT_CHECK(bad == out.values.flat().end(), kRopeFile, entry.describe(), " has the number ", *bad,
            "; damaged file?");
  out.precision = precision_of(out.values.flat());
  return out;
}

/// Vectors (T, d) and (T, H, d) with the dimensions that they lack.
RopeNumbers with_images(RopeNumbers numbers) {
  const Shape shape = numbers.values.shape();
  if (shape.rank() == 4) return numbers;
  const Shape whole =
      shape.rank() == 2 ? Shape{1, shape[0], 1, shape[1]} : Shape{1, shape[0], shape[1], shape[2]};
  RopeNumbers out{.values = Tensor<double>(whole), .precision = numbers.precision};
  std::ranges::copy(numbers.values.flat(), out.values.data());
  return out;
}

/// Cosines and sines of one array.
struct FactorNumbers {
  RopeNumbers cos, sin;
};

/// Cosines and sines in the first or the last dimension of two numbers, or nothing if their squares do not
/// sum to 1.
std::optional<FactorNumbers> factors_in(const RopeNumbers& array, bool is_first) {
  const Shape& shape = array.values.shape();
  if (shape.rank() < 3 || (is_first ? shape[0] : shape.last()) != 2) return std::nullopt;
  std::vector<std::size_t> sizes;
  for (std::size_t i = is_first ? 1 : 0; i + (is_first ? 0 : 1) < shape.rank(); ++i)
    sizes.push_back(shape[i]);
  const std::size_t count = array.values.num_elements() / 2;
  FactorNumbers out{{Tensor<double>(Shape(sizes)), array.precision},
                    {Tensor<double>(Shape(sizes)), array.precision}};
  for (std::size_t i = 0; i < count; ++i) {
    const double cos = array.values.data()[is_first ? i : 2 * i];
    const double sin = array.values.data()[is_first ? count + i : 2 * i + 1];
    if (!(std::abs(cos * cos + sin * sin - 1.0) <= 0.04)) return std::nullopt;  // of bfloat16
    out.cos.values.data()[i] = cos;
    out.sin.values.data()[i] = sin;
  }
  return out;
}

bool is_complex(const TensorEntry& entry) {
  return entry.dtype_name == "<c8" || entry.dtype_name == "<c16";
}

/// The readings of an array without a name for what it is.
std::vector<RopeReading> read_array(const TensorFile& file, std::string_view name) {
  const RopeNumbers array = numbers_of(file, name);
  const bool must_be_factors = is_complex(file.at(name)) || name != "array";
  for (const bool is_first : {false, true}) {
    if (is_first && must_be_factors) continue;
    if (const std::optional<FactorNumbers> found = factors_in(array, is_first))
      return read_factors(found->cos, found->sin);
  }
  VIT_CHECK(
      !must_be_factors, kRopeFile.with(ErrorKind::mismatch), file.at(name).describe(),
      " has numbers that are no factors cos + i sin: their lengths are not 1, or it is not complex and its "
      "last dimension is not 2");
  return read_angles(array);
}

/// The orthogonal basis (d, d) of q and k, or nothing if the file has none.
std::optional<Tensor<double>> basis_in(const TensorFile& file) {
  if (file.find("basis") == nullptr) return std::nullopt;
  RopeNumbers basis = numbers_of(file, "basis");
  const Shape& shape = basis.values.shape();
  VIT_CHECK(shape.rank() == 2 && shape[0] == shape[1] && shape[0] <= kMaxHeadDim, kRopeFile,
            file.path().string(), ": basis has shape ", shape.to_string(), ", expected (d, d)");
  const std::size_t d = shape[0];
  const double slack = basis.precision == Dtype::f64 ? 1e-12 : 1e-2;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::size_t c = 0; c < d; ++c)
        sum += basis.values.data()[i * d + c] * basis.values.data()[j * d + c];
      VIT_CHECK(std::abs(sum - (i == j ? 1.0 : 0.0)) <= slack, kRopeFile.with(ErrorKind::mismatch),
                file.path().string(), ": basis is not orthogonal: the product of its rows ", j, " and ", i,
                " is ", sum);
    }
  }
  return std::move(basis.values);
}

/// The numbers in the basis, whose sums of d products have errors of their own.
void enter_basis(RopeNumbers& numbers, const Tensor<double>& basis) {
  change_basis(numbers.values, basis, BasisChange::into);
  if (numbers.precision == Dtype::f64) numbers.precision = Dtype::f32;
}

std::vector<RopeIdentity> identities_in(const TensorFile& file, IdentifyOptions options) {
  std::vector<RopeIdentity> out;
  const std::optional<Tensor<double>> basis = basis_in(file);
  options.has_basis = basis.has_value();
  for (const auto& [before_name, after_name] : kVectors) {
    if (file.find(before_name) == nullptr || file.find(after_name) == nullptr) continue;
    RopeNumbers before = with_images(numbers_of(file, before_name));
    RopeNumbers after = with_images(numbers_of(file, after_name));
    if (basis) enter_basis(before, *basis);
    if (basis) enter_basis(after, *basis);
    out.push_back(identify_rope(read_rotated(before, after), {&before, &after}, options));
  }
  for (const auto& [cos, sin] : kTables) {
    if (file.find(cos) == nullptr || file.find(sin) == nullptr) continue;
    // A table may lack the prefix that vectors have.
    const IdentifyOptions own =
        out.empty() ? options : IdentifyOptions{.grid = options.grid, .has_basis = options.has_basis};
    out.push_back(identify_rope(read_factors(numbers_of(file, cos), numbers_of(file, sin)), {}, own));
  }
  for (const std::string_view name : {"freqs_cis", "array"}) {
    if (file.find(name) == nullptr) continue;
    const IdentifyOptions own =
        out.empty() ? options : IdentifyOptions{.grid = options.grid, .has_basis = options.has_basis};
    out.push_back(identify_rope(read_array(file, name), {}, own));
  }
  if (file.find("angles") != nullptr) {
    const IdentifyOptions own =
        out.empty() ? options : IdentifyOptions{.grid = options.grid, .has_basis = options.has_basis};
    out.push_back(identify_rope(read_angles(numbers_of(file, "angles")), {}, own));
  }
  return out;
}

std::string names_in(const TensorFile& file) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(file.entries().size(), 8); ++i)
    names += (names.empty() ? "" : ", ") + file.entries()[i].name;
  return names.empty() ? "none" : names;
}

}  // namespace

TensorFile open_rope_file(const std::filesystem::path& path) {
  const std::filesystem::path extension = path.extension();
  if (extension == ".npz") return open_npz(path, ComplexNumbers::as_pairs);
  if (extension == ".npy") return open_npy(path, ComplexNumbers::as_pairs);
  VIT_CHECK(extension == ".safetensors", kRopeFile.with(ErrorKind::argument), path.string(),
            ": expected a .npz, .npy or .safetensors file");
  return open_safetensors(path);
}

RopeIdentity identify_rope_file(const TensorFile& file, const IdentifyOptions& options) {
  std::vector<RopeIdentity> found = identities_in(file, options);
  VIT_CHECK(!found.empty(), kRopeFile, file.path().string(),
            ": no tensors cos and sin, angles, freqs_cis, or q and q_rotated, found ", names_in(file));
  RopeIdentity out = std::move(found.front());  // vectors know the pairing
  for (std::size_t i = 1; i < found.size(); ++i) {
    const RopeIdentity& other = found[i];
    std::erase_if(out.agreeing, [&](const RopeConvention* convention) {
      return std::ranges::find(other.agreeing, convention) == other.agreeing.end();
    });
    if (!other.choices) out.choices.reset();
    if (out.error && other.error) out.error = std::max(*out.error, *other.error);
    if (out.convention != other.convention && out.agreeing.empty())
      out.notes.push_back("tensors of this file follow different conventions");
  }
  const auto stated = file.metadata().find("convention");
  choose_convention(out, stated == file.metadata().end() ? nullptr : find_rope_convention(stated->second));
  if (out.convention != nullptr && out.choices) {
    const RopeConvention measured = *out.choices;
    out.choices = *out.convention;
    if (out.known.pairing) out.choices->channels = measured.channels;  // as stored or as loaded
    if (out.convention->is_reference_native && measured.coordinates == out.convention->coordinates)
      out.choices->reference = measured.reference;
    out.nearest = out.convention;
  }
  return out;
}

}  // namespace vit::internal
