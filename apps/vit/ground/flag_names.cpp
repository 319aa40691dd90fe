#include "apps/vit/ground/flag_names.h"

#include <string_view>

namespace vit::app {
namespace {

constexpr std::string_view kOverride = "overrides[\"";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

}  // namespace

std::string with_flag_names(std::string text) {
  constexpr std::string_view kValue = "\"] = \"";
  for (std::size_t at = text.find(kOverride); at != std::string::npos; at = text.find(kOverride, at)) {
    const std::size_t end = text.find("\"]", at + kOverride.size());
    if (end == std::string::npos) break;
    std::string flag = "--set " + text.substr(at + kOverride.size(), end - at - kOverride.size());
    std::size_t last = end + 2;
    if (text.compare(end, kValue.size(), kValue) == 0) {
      const std::size_t close = text.find('"', end + kValue.size());
      if (close != std::string::npos) {
        flag += "=" + text.substr(end + kValue.size(), close - end - kValue.size());
        last = close + 1;
      }
    }
    text.replace(at, last - at, flag);
    at += flag.size();
  }
  replace_all(text, "ModelOptions::architecture", "--architecture");
  replace_all(text, "ModelOptions::layout", "--layout");
  replace_all(text, "ModelOptions::mean and std", "--mean and --std");
  replace_all(text, "ModelOptions::dense.taps", "--taps");
  replace_all(text, "ModelOptions::dense.depth_range", "--depth-range");
  replace_all(text, "ModelOptions::dense.max_depth", "--max-depth");
  replace_all(text, "ModelOptions::dense.head", "--head");
  replace_all(text, "ModelOptions::prefix", "--prefix");
  replace_all(text, "ModelOptions::adapter", "--adapter");
  replace_all(text, " as the tokenizer", " with --tokenizer");
  return text;
}

bool is_about_override(const Error& error) {
  return error.kind() == ErrorKind::argument && error.message().starts_with(kOverride);
}

}  // namespace vit::app
