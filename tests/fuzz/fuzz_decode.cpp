// Decodes images of every format that is read, upright, as stored and as rows.
#include "tests/fuzz/fuzz_decode.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/image/image.h"
#include "vit/image/row_source.h"

namespace vit::fuzz {

void run_decode(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  constexpr std::size_t kMaxPixels = 1u << 20;  // a mutated size must not fill the memory of the test machine
  decode_bytes(bytes, {.max_pixels = kMaxPixels}, "input");
  decode_bytes(bytes, {.orientation = Orientation::apply, .alpha = Alpha::on_white, .max_pixels = kMaxPixels},
               "input");
}

/// What decoders give row by row, of the middle of the image, is what the whole image has there.
void run_decode_rows(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  constexpr DecodeOptions kOptions{.max_pixels = std::size_t{1} << 20};
  Image whole;
  std::string failure;
  try {
    whole = decode_bytes(bytes, kOptions, "input");
  } catch (const Error& error) {
    failure = error.what();
  }
  std::string rows_failure;
  try {
    const auto rows = internal::open_rows(bytes, kOptions, "input");
    if (rows == nullptr) return;
    const ImageSize size = rows->size();
    const internal::ColumnRange wanted{size.width / 3, size.width - size.width / 3};
    const internal::ColumnRange held = rows->start(wanted);
    std::vector<std::uint8_t> row(3 * held.count());
    const std::size_t first = size.height / 4;
    const std::size_t end = size.height - size.height / 4;
    rows->skip(first);
    for (std::size_t y = first; y < end; ++y) {
      rows->read(row.data(), 1);
      if (whole.empty()) continue;
      const std::uint8_t* const expected = whole.row(y) + 3 * wanted.begin;
      if (!std::equal(expected, expected + 3 * wanted.count(), row.data() + 3 * (wanted.begin - held.begin)))
        throw std::logic_error("rows differ from the whole image");
    }
    rows->finish();
  } catch (const Error& error) {
    rows_failure = error.what();
  }
  if (rows_failure != failure)
    throw std::logic_error("rows say \"" + rows_failure + "\", the whole image \"" + failure + "\"");
  if (!failure.empty()) fail("decode", failure);
}

std::vector<std::string> decode_seeds() {
  std::vector<std::string> seeds;
  const auto folder = std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden" / "preprocess" / "decode";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    seeds.push_back(test::read_text(entry.path()));
    try {
      run_decode(seeds.back());
    } catch (const Error& error) {  // of a library that this build does without
      if (error.kind() != ErrorKind::unsupported) throw;
      seeds.pop_back();
    }
  }
  return seeds;
}

}  // namespace vit::fuzz
