// Prints the results of the readers for files, for comparison with other readers (tests/fuzz/differential).
// Standard input holds lines "KIND PATH", standard output one JSON object for each:
//   image PATH              {"width": 2, "height": 1, "crc": 1234}       of the RGB bytes
//   safetensors|pickle PATH {"tensors": [["name", "F32", [2, 3], 1234]]} crc of the numbers as float64
//   json PATH               {"value": ...}                               the value, numbers with 17 digits
//   tokenizer PATH          {}                                           loads it for the lines that follow
//   text PATH               {"ids": [1, 2]}                              of the whole file
//   error                   {"error": "why"}
#include <zlib.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/image/image.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/text/tokenizer.h"

namespace {
using namespace vit;
using namespace vit::internal;

std::string crc(const void* data, std::size_t bytes) {
  return std::to_string(::crc32_z(0, static_cast<const Bytef*>(data), bytes));
}

std::string image(const std::filesystem::path& path) {
  const Image image = decode_file(path, {.max_pixels = 1u << 20});
  return "{\"width\": " + std::to_string(image.width()) + ", \"height\": " + std::to_string(image.height()) +
         ", \"crc\": " + crc(image.data(), image.width() * image.height() * 3) + "}";
}

std::string tensors(const TensorFile& file) {
  std::string out = "{\"tensors\": [";
  for (const TensorEntry& entry : file.entries()) {
    if (out.back() == ']') out += ", ";
    out += "[" + json_string(entry.name) + ", " + json_string(entry.dtype_name) + ", [";
    for (const std::size_t size : entry.shape) out += (out.back() == '[' ? "" : ", ") + std::to_string(size);
    const std::vector<double> numbers = is_floating(entry.dtype) ? to_double(entry) : std::vector<double>();
    out += "], " + crc(numbers.data(), numbers.size() * sizeof(double)) + "]";
  }
  return out + "]}";
}

void write(const Json& value, std::string& out) {
  switch (value.kind()) {
    case Json::Kind::null: out += "null"; break;
    case Json::Kind::boolean: out += value.as_bool() ? "true" : "false"; break;
    case Json::Kind::string: out += json_string(value.as_string()); break;
    case Json::Kind::number: {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.17g", value.as_double());
      try {
        std::snprintf(digits, sizeof digits, "%" PRId64, value.as_integer());
      } catch (const Error&) {
      }
      out += digits;
      break;
    }
    case Json::Kind::array:
    case Json::Kind::object: {
      out += value.is_array() ? '[' : '{';
      for (std::size_t i = 0; i < value.size(); ++i) {
        if (i > 0) out += ", ";
        if (value.is_object()) out += json_string(value[i].key()) + ": ";
        write(value[i], out);
      }
      out += value.is_array() ? ']' : '}';
    }
  }
}

std::string json(const std::filesystem::path& path) {
  std::string out = "{\"value\": ";
  write(load_json(path), out);
  return out + "}";
}

std::string ids(const Tokenizer& tokenizer, const std::filesystem::path& path) {
  std::string out = "{\"ids\": [";
  for (const std::int32_t id : tokenizer.encode(test::read_text(path)))
    out += (out.back() == '[' ? "" : ", ") + std::to_string(id);
  return out + "]}";
}

}  // namespace

int main() {
  std::optional<Tokenizer> tokenizer;
  const std::map<std::string, std::function<std::string(const std::string&)>> kinds = {
      {"image", image},
      {"safetensors", [](const std::string& path) { return tensors(open_safetensors(path)); }},
      {"pickle", [](const std::string& path) { return tensors(open_pickle(path)); }},
      {"json", json},
      {"tokenizer",
       [&](const std::string& path) {
         tokenizer = Tokenizer::load(path);
         return std::string("{}");
       }},
      {"text", [&](const std::string& path) { return ids(tokenizer.value(), path); }}};
  for (std::string line; std::getline(std::cin, line);) {
    const std::size_t blank = line.find(' ');
    std::string answer;
    try {
      answer = kinds.at(line.substr(0, blank))(line.substr(blank + 1));
    } catch (const Error& error) {
      answer = "{\"error\": \"";
      for (const char c : std::string_view(error.what()))
        answer += c >= ' ' && c <= '~' && c != '"' && c != '\\' ? c : '?';
      answer += "\"}";
    }
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
  }
}
