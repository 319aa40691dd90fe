#include "vit/position/rope_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "vit/base/check.h"

namespace vit::internal {
using namespace position;

namespace {

constexpr Where kRopeFile{"identify_rope", ErrorKind::format};
constexpr std::size_t kMaxTableNumbers = std::size_t{1} << 26;

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

std::vector<RopeIdentity> identities_in(const TensorFile& file, const IdentifyOptions& options) {
  std::vector<RopeIdentity> out;
  for (const auto& [before_name, after_name] : kVectors) {
    if (file.find(before_name) == nullptr || file.find(after_name) == nullptr) continue;
    const RopeNumbers before = with_images(numbers_of(file, before_name));
    const RopeNumbers after = with_images(numbers_of(file, after_name));
    out.push_back(identify_rope(read_rotated(before, after), {&before, &after}, options));
  }
  for (const auto& [cos, sin] : kTables) {
    if (file.find(cos) == nullptr || file.find(sin) == nullptr) continue;
    // A table may lack the prefix that vectors have.
    const IdentifyOptions own = out.empty() ? options : IdentifyOptions{.grid = options.grid};
    out.push_back(identify_rope(read_factors(numbers_of(file, cos), numbers_of(file, sin)), {}, own));
  }
  if (file.find("angles") != nullptr) {
    const IdentifyOptions own = out.empty() ? options : IdentifyOptions{.grid = options.grid};
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

RopeIdentity identify_rope_file(const TensorFile& file, const IdentifyOptions& options) {
  std::vector<RopeIdentity> found = identities_in(file, options);
  VIT_CHECK(!found.empty(), kRopeFile, file.path().string(),
            ": no tensors cos and sin, angles, or q and q_rotated, found ", names_in(file));
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
    if (out.convention->is_reference_native && measured.coordinates == CoordinateRule::scaled_to_reference)
      out.choices->reference = measured.reference;
    out.nearest = out.convention;
  }
  return out;
}

}  // namespace vit::internal
