#include "apps/vit/commands/index/index_file_reader.h"

#include <utility>

#include "apps/vit/outputs/text_format.h"

namespace vit::app {

namespace {

constexpr Where kWhere{"index", ErrorKind::format};

}  // namespace

std::string IndexFileReader::letters(std::string_view name) {
  std::array<char, 4> letters{};
  check_left(name, letters.size(), 1);
  take(std::as_writable_bytes(std::span(letters)));
  return {letters.begin(), letters.end()};
}

std::size_t IndexFileReader::length(std::string_view name, std::size_t item_bytes) {
  const auto count = static_cast<std::size_t>(number<std::uint64_t>(name));
  check_left(name, count, item_bytes);
  return count;
}

void IndexFileReader::expect_length(std::string_view name, std::size_t item_bytes, std::size_t expected) {
  const auto count = static_cast<std::size_t>(number<std::uint64_t>(name));
  expect(count == expected, name, text(count, " entries"), expected);
  check_left(name, count, item_bytes);
}

void IndexFileReader::skip(std::string_view name, std::size_t count, std::size_t item_bytes) {
  check_left(name, count, item_bytes);
  position_ += count * item_bytes;
}

void IndexFileReader::take(std::span<std::byte> out) {
  file_.read(position_, out);
  position_ += out.size();
}

void IndexFileReader::check_left(std::string_view name, std::size_t count, std::size_t item_bytes) const {
  expect(count <= bytes_left() / item_bytes, name,
         text("announces ", count, " entries of ", item_bytes, " bytes"), "no more than the ", bytes_left(),
         " bytes left in the file");
}

void IndexFileReader::refuse(std::string_view name, std::string_view expected, std::string_view found) const {
  fail(kWhere, path(), ": ", printable(part_), ": ", name, " before byte ", position_, ": expected ",
       expected, ", found ", found, "; truncated or damaged");
}

}  // namespace vit::app
