// A JSON text read value by value, without a document: tokenizer files hold a million strings of which only
// the bytes are wanted. Small parts are handed to the parser of vit/io/json.h.
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
  JsonStream(std::string_view text, std::string name, const Where& where)
      : text_(text), name_(std::move(name)), where_(where) {}

  /// '{', '[', '"', '0' for a number, 't', 'f' or 'n': what the next value starts with.
  char peek();

  void enter_object();
  /// Moves to the next member's value; false behind the last one, which leaves the object.
  bool next_member(std::string& key);
  void enter_array();
  bool next_element();

  /// A string without its escapes; valid until the next call.
  std::string_view string();
  double number();
  std::uint32_t index();  // an integer from 0 to 2^32 - 1
  bool boolean();
  /// The text of the next value, whatever it is.
  std::string_view skip();

  /// Throws Error unless only white space follows.
  void finish();

  std::size_t position() const { return at_; }
  [[noreturn]] void fail_here(std::string_view what) const;

 private:
  static constexpr std::size_t kMaxDepth = 32;
  void skip_space();
  char take();
  bool next_item(char close);
  std::string_view number_text();
  void append_escape();
  char32_t hexadecimal();

  std::string_view text_;
  std::string name_;
  Where where_;
  std::size_t at_ = 0;
  std::vector<bool> first_;  // per open container: nothing has been read of it
  std::string buffer_;
};

}  // namespace vit::internal
