// The options of C++, C and Python have a member for each other: one that is added to one of them and
// forgotten in another is named here.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/shared_data.h"

namespace vit {
namespace {

using Names = std::vector<std::string>;

std::string source(const std::string& path) {
  return std::regex_replace(test::read_text(test::data_path("../" + path)),
                            std::regex("//[^\n]*|/\\*[^*]*\\*/"), "");
}

/// The text between two others, which must be there.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t first = text.find(begin);
  REQUIRE(first != text.npos);
  const std::size_t last = text.find(end, first);
  REQUIRE(last != text.npos);
  return text.substr(first + begin.size(), last - first - begin.size());
}

Names all_matches(const std::string& text, const std::regex& pattern) {
  Names out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
    out.push_back((*it)[1]);
  return out;
}

/// Members of a struct of C++, each with its default.
Names cpp_members(const std::string& path, const std::string& name) {
  return all_matches(between(source(path), "struct " + name + " {", "\n};"),
                     std::regex("(\\w+)\\s*(?:\\{[^;]*\\}|=[^;]*);"));
}

Names c_members(const std::string& name) {
  return all_matches(between(source("vit/c.h"), "typedef struct " + name + " {", "}"),
                     std::regex("(\\w+)(?:\\[\\w+\\])?;"));
}

Names python_members(const std::string& name) {
  const std::string text = test::read_text(test::data_path("../apps/python/vitcpp/_library.py"));
  return all_matches(between(text, "class " + name + "(", "\n\n\n"), std::regex("\\(\"(\\w+)\", "));
}

bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

TEST_CASE("c: every option of a model has its member in C") {
  const std::map<std::string, Names> others{{"overrides", {"overrides", "num_overrides"}},
                                            {"square_pad_color", {"pads_to_square", "pad_color"}},
                                            {"area_limits", {"min_area", "max_area"}},
                                            {"dense",
                                             {"dense_head", "dense_taps", "dense_depth_range",
                                              "dense_max_depth", "dense_resize_rule", "dense_expert"}},
                                            {"mean", {"mean", "num_means", "std", "num_stds"}}};
  const Names c = c_members("vit_model_options"),
              cpp = cpp_members("vit/config/load_options.h", "ModelOptions");
  CHECK(has(cpp, "architecture"));
  CHECK(has(cpp, "precision"));
  CHECK(cpp.size() > 10);
  for (const std::string& member : cpp) {
    const auto found = others.find(member);
    for (const std::string& name : found != others.end() ? found->second : Names{member}) {
      CAPTURE(name);
      CHECK(has(c, name));
    }
  }
}

TEST_CASE("c: every option of segments has its member in C") {
  for (const std::string& member : cpp_members("vit/dense.h", "SegmentOptions")) {
    if (member == "labels") continue;  // results in C hold indices of classes
    CAPTURE(member);
    CHECK(has(c_members("vit_segment_options"), member));
  }
}

TEST_CASE("c: the structs of Python are those of the header") {
  for (const auto& both : {std::pair<std::string, std::string>{"ModelOptions", "vit_model_options"},
                           {"ModelInfo", "vit_model_info"},
                           {"Input", "vit_input"},
                           {"SizeOptions", "vit_size_options"},
                           {"SessionOptions", "vit_session_options"},
                           {"Request", "vit_request"},
                           {"TextOptions", "vit_text_options"},
                           {"RopeOptions", "vit_rope_options"},
                           {"RopeFormOptions", "vit_rope_form_options"},
                           {"RopeIdentifyOptions", "vit_rope_identify_options"},
                           {"AttentionOptions", "vit_attention_options"},
                           {"SegmentOptions", "vit_segment_options"},
                           {"Prediction", "vit_prediction"},
                           {"PixelOptions", "vit_pixel_options"},
                           {"Array", "vit_array"}}) {
    CAPTURE(both.second);  // clang 14 captures no names of a structured binding
    CHECK(python_members(both.first) == c_members(both.second));
  }
}

TEST_CASE("c: Python passes on every option of a model") {
  const std::string text = test::read_text(test::data_path("../apps/python/vitcpp/_model.py"));
  const Names passed = all_matches(between(text, "options = lib.ModelOptions(\n", "\n        )\n"),
                                   std::regex("\n? {12}(\\w+)="));
  for (const std::string& member : c_members("vit_model_options")) {
    CAPTURE(member);
    CHECK((member == "struct_size" || has(passed, member)));
  }
}

}  // namespace vit
