// A file of FAISS, read once from its first byte to its last. Every number is there before it is taken, and
// every announced length is compared with the bytes that are left before anything is made of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {

/// Throws Error (format) that names the file, the part, what was expected and what was found.
class IndexFileReader {
 public:
  /// `file` must outlive this.
  explicit IndexFileReader(const internal::SourceFile& file) : file_(file) {}

  std::size_t file_size() const { return file_.size(); }
  std::size_t bytes_left() const { return file_.size() - position_; }
  std::string path() const { return file_.path().string(); }

  /// Names what is read from here on in messages: "index 'IxFI'".
  void enter(std::string part) { part_ = std::move(part); }
  const std::string& part() const { return part_; }

  template <typename T>
  T number(std::string_view name) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value{};
    expect(bytes_left() >= sizeof value, name, text("the end of the file"), sizeof value, " bytes");
    take(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  /// A number within [lowest, highest].
  template <typename T>
  T number(std::string_view name, T lowest, T highest) {
    const T value = number<T>(name);
    expect(value >= lowest && value <= highest, name, +value, +lowest, " to ", +highest);  // a NaN is not
    return value;
  }
  template <typename T>
  void expect_number(std::string_view name, T expected) {
    const T value = number<T>(name);
    expect(value == expected, name, +value, +expected);
  }
  bool flag(std::string_view name) { return number<std::uint8_t>(name, 0, 1) != 0; }
  /// The four letters of a type.
  std::string letters(std::string_view name);

  /// The length of an array of `item_bytes` each, all of which are there.
  std::size_t length(std::string_view name, std::size_t item_bytes);
  void expect_length(std::string_view name, std::size_t item_bytes, std::size_t expected);
  /// Passes over items; throws unless all of them are there.
  void skip(std::string_view name, std::size_t count, std::size_t item_bytes);
  /// An array with its length in front.
  template <typename T>
  std::vector<T> array(std::string_view name) {
    std::vector<T> items(length(name, sizeof(T)));
    take(std::as_writable_bytes(std::span(items)));
    return items;
  }
  /// Calls use(value) for `count` items, of which a block is held at a time.
  template <typename T, typename Use>
  void for_each(std::string_view name, std::size_t count, Use use) {
    check_left(name, count, sizeof(T));
    std::vector<T> block(std::min(count, kBlockItems));
    for (std::size_t done = 0; done < count; done += block.size()) {
      block.resize(std::min(kBlockItems, count - done));
      take(std::as_writable_bytes(std::span(block)));
      for (const T value : block) use(value);
    }
  }

  /// Throws unless `holds`.
  template <typename Found, typename... Expected>
  void expect(bool holds, std::string_view name, const Found& found, const Expected&... expected) const {
    if (!holds) refuse(name, text(expected...), text(found));
  }

 private:
  static constexpr std::size_t kBlockItems = 8192;

  void take(std::span<std::byte> out);
  void check_left(std::string_view name, std::size_t count, std::size_t item_bytes) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view expected, std::string_view found) const;

  const internal::SourceFile& file_;
  std::size_t position_ = 0;
  std::string part_;
};

}  // namespace vit::app
