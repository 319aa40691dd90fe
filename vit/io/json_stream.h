// The JSON reader: one value at a time, without a document. class Json is built from it; files of tokenizers,
// with a million strings of which only the bytes are wanted, are read with it directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {

/// Reads forwards only. Every function throws Error, with the byte position, where the text is not JSON (RFC
/// 8259) or the next value is of another kind. The text must outlive the reader and what it returns.
class JsonStream {
 public:
  JsonStream(std::string_view text, std::string name, const Where& where, std::size_t max_depth = 64)
      : text_(text), name_(std::move(name)), where_(where), max_depth_(max_depth) {}

  /// '{', '[', '"', '0' for a number, 't', 'f' or 'n': what the next value starts with.
  char peek();

  void enter_object();
  /// Moves to the next member's value; false after the last one, which leaves the object.
  bool next_member(std::string& key);
  void enter_array();
  bool next_element();

  /// A string without its escapes; valid until the next call.
  std::string_view string();
  /// A number as it is written.
  std::string_view number_text();
  /// The double next to such a text. Throws Error if it is infinite.
  double to_double(std::string_view number) const;
  double number() { return to_double(number_text()); }
  std::uint32_t index();  // an integer from 0 to 2^32 - 1
  bool boolean();
  void null();
  /// NaN, Infinity and -Infinity, as Python writes them; false if the next value is something else.
  bool skip_nonfinite();
  /// The text of the next value, whatever it is.
  std::string_view skip();

  /// Throws Error unless only white space follows.
  void finish();

  std::size_t position() const { return at_; }
  [[noreturn]] void fail_here(std::string_view what) const;

 private:
  void skip_space();
  char take();
  void enter(char open, std::string_view wanted);
  bool next_item(char close);
  void expect_word(std::string_view word);
  void append_escape();
  char32_t hexadecimal();

  std::string_view text_;
  std::string name_;
  Where where_;
  std::size_t max_depth_;
  std::size_t at_ = 0;
  std::vector<bool> first_;  // per open container: nothing has been read of it
  std::string buffer_;
};

}  // namespace vit::internal
