// Where the tensors of a dense head lie in a file, as data. Reading them is for checkpoint/tensor_matcher.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/dense_config.h"
#include "vit/image/preprocess.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

/// Tensors of the project's names and those of the file. {} is a number, which is step * number +
/// first in the file; * at the end for what follows: "weight", "bias", "running_mean", ...
struct HeadRow {
  std::string_view name{};
  std::string_view source{};
  std::int8_t step = 1, first = 0;
  Place place = Place::outside;
  Share from{};  // the rows of the file's tensor that are taken
};

/// The rows of one branch, and what precedes the names of both.
struct HeadTable {
  std::string branch{};  // "depth." or nothing
  std::string source{};
  std::span<const HeadRow> rows{};
};

/// A name in a file, and where.
struct HeadSource {
  std::string name;
  Place place = Place::outside;
  Share from{};
};

/// Where the tensor of that name lies; nothing if no row has it. Of rows that fit the last counts.
std::optional<HeadSource> find_source(std::span<const HeadTable> tables, const std::string& name);

/// A dense head as its family reads it.
struct DenseReading {
  DenseConfig config;  // not yet validated
  std::vector<HeadTable> tables;
  /// Where no file says how images are preprocessed, or DenseOptions::resize_rule asks for other rules than
  /// the file's; the size is that of the file where it has one.
  std::optional<PreprocessConfig> preprocess{};
};

}  // namespace vit::internal
