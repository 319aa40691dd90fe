// Text formatting of results: numbers that round-trip exactly, JSON and CSV strings, names that are safe on a
// terminal.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "vit/image/preprocess.h"
#include "vit/io/json_writer.h"

namespace vit::app {

using internal::append_json_float;
using internal::json_string;
using internal::JsonWriter;

/// Numbers as floats.
JsonWriter& write_edges(JsonWriter& json, const std::array<double, 4>& edges);
/// [x0, y0, x1, y1].
JsonWriter& write_box(JsonWriter& json, const Box& box);
/// The quoted string at the start of `text`, with its quotes; empty if there is none.
std::string_view leading_json_string(std::string_view text);
/// A field of RFC 4180: quoted if it contains a comma, a quote or a line break.
std::string csv_field(std::string_view value);
/// `value` with control characters, those that break lines or change the writing direction, and bytes
/// that are not UTF-8 shown as \n, \t, \xNN, so that a file name cannot break a line or control the terminal.
std::string printable(std::string_view value);
/// UTF-8 to code points; each byte that is not UTF-8 becomes U+FFFD.
std::u32string decode_utf8(std::string_view value);
/// 1234567 -> "1,234,567".
std::string with_thousands(unsigned long long value);
/// 86567656 -> "86.6 M"; units k, M, G, T.
std::string with_unit(double value);

}  // namespace vit::app
