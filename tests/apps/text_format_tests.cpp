#include "apps/vit/ground/text_format.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>

using namespace vit::app;

namespace {

std::string json_float(float value) {
  std::string out;
  append_json_float(out, value);
  return out;
}

}  // namespace

TEST_CASE("apps: floats in JSON read back as the same bits and look like real numbers") {
  CHECK(json_float(8.0f) == "8.0");
  CHECK(json_float(-0.0f) == "-0.0");
  CHECK(json_float(1e-5f) == "1e-05");
  CHECK(json_float(std::numeric_limits<float>::infinity()) == "null");
  CHECK(json_float(std::nanf("")) == "null");
  for (std::uint32_t bits = 1; bits < 0x7F800000u; bits += 0x10301u) {
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const float value = std::bit_cast<float>(bits | sign);
      const std::string written = json_float(value);
      REQUIRE(std::strtof(written.c_str(), nullptr) == value);
      // JSON readers parse to double first; the detour must not change the float
      REQUIRE(static_cast<float>(std::strtod(written.c_str(), nullptr)) == value);
    }
  }
}

TEST_CASE("apps: JSON strings are valid whatever a file name holds") {
  CHECK(json_string("a\"b\\c") == "\"a\\\"b\\\\c\"");
  CHECK(json_string("line\nbreak\x01") == "\"line\\u000abreak\\u0001\"");
  CHECK(json_string("gr\xC3\xBC\xC3\x9F") == "\"gr\xC3\xBC\xC3\x9F\"");
  CHECK(json_string("\xFF") == "\"\xEF\xBF\xBD\"");
  CHECK(json_string("\xC0\x80") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");      // overlong
  CHECK(json_string("\xED\xA0\x80").find('\xED') == std::string::npos);  // surrogate
  CHECK(json_string("\xF0\x9F\x90\xB1") == "\"\xF0\x9F\x90\xB1\"");
  CHECK(json_string("\xE2\x82") == "\"\xEF\xBF\xBD\xEF\xBF\xBD\"");  // cut short
}

TEST_CASE("apps: CSV fields are quoted where RFC 4180 requires it") {
  CHECK(csv_field("tench") == "tench");
  CHECK(csv_field("tench, Tinca tinca") == "\"tench, Tinca tinca\"");
  CHECK(csv_field("a \"b\"") == "\"a \"\"b\"\"\"");
  CHECK(csv_field("a\nb") == "\"a\nb\"");
}

TEST_CASE("apps: printed names stay on one line and cannot steer a terminal") {
  CHECK(printable("a\nb\t\x1b[31m") == "a\\nb\\t\\x1b[31m");
  CHECK(printable("gr\xC3\xBC\xC3\x9F") == "gr\xC3\xBC\xC3\x9F");
  CHECK(printable("a\xFF") == "a\\xff");
  CHECK(printable("\x9B"
                  "31m") == "\\x9b31m");  // CSI of 8-bit terminals
  CHECK(printable("\xC2\x9B"
                  "31m") == "\\xc2\\x9b31m");  // the same control in UTF-8
  CHECK(printable("\xEF\xBF\xBD") == "\xEF\xBF\xBD");
  CHECK(printable("a\u202Egnp.exe") == "a\\xe2\\x80\\xaegnp.exe");
  for (const char* const turning :
       {"\u061C", "\u200E", "\u200F", "\u2028", "\u2029", "\u202A", "\u2066", "\u2069"}) {
    CHECK(printable(turning).starts_with("\\x"));
  }
  CHECK(printable("\u05D0\u2027\u202F\u2065") == "\u05D0\u2027\u202F\u2065");
}

TEST_CASE("apps: numbers for people") {
  CHECK(with_thousands(0) == "0");
  CHECK(with_thousands(999) == "999");
  CHECK(with_thousands(1234567) == "1,234,567");
  CHECK(with_unit(86567656) == "86.6 M");
  CHECK(with_unit(999960) == "1.00 M");
  CHECK(with_unit(17) == "17");
}

TEST_CASE("apps: UTF-8 to code points") {
  CHECK(decode_utf8("a\xC3\xBC\xF0\x9F\x90\xB1") == U"a\u00FC\U0001F431");
  CHECK(decode_utf8("\xFF z") == U"\uFFFD z");
}
