// Replaces unicode.cpp in builds without ICU (-DVIT_TEXT=OFF): whatever needs Unicode says so.
#include "vit/text/unicode.h"
#include "vit/base/check.h"

namespace vit::internal {
namespace {

[[noreturn]] void refuse_texts() {
  fail(Where{"text", ErrorKind::unsupported},
       "vit was built without texts (-DVIT_TEXT=OFF); vectors of texts that were saved can still be used");
}

}  // namespace

void check_utf8(std::string_view) {
  refuse_texts();
}

char32_t next_code_point(std::string_view, std::size_t&) {
  refuse_texts();
}

bool is_ascii(std::string_view) {
  refuse_texts();
}

std::string normalize_nfc(std::string_view) {
  refuse_texts();
}

std::string normalize_nfkc(std::string_view) {
  refuse_texts();
}

std::string lower_text(std::string_view) {
  refuse_texts();
}

std::string lower_letters(std::string_view) {
  refuse_texts();
}

std::string upper_text(std::string_view) {
  refuse_texts();
}

bool is_letter(char32_t) {
  refuse_texts();
}

bool is_number(char32_t) {
  refuse_texts();
}

bool is_decimal_digit(char32_t) {
  refuse_texts();
}

bool is_white_space(char32_t) {
  refuse_texts();
}

bool is_python_space(char32_t) {
  refuse_texts();
}

std::string join_words(std::string_view) {
  refuse_texts();
}

std::string_view strip_python(std::string_view) {
  refuse_texts();
}

std::string_view strip_left(std::string_view) {
  refuse_texts();
}

std::string_view strip_right(std::string_view) {
  refuse_texts();
}

std::vector<std::size_t> cluster_ends(std::string_view) {
  refuse_texts();
}

std::string replace_all(std::string_view, std::string_view, std::string_view) {
  refuse_texts();
}

}  // namespace vit::internal
