// Wrong calls of the C interface, made from right ones: each argument in turn becomes null, empty, zero,
// negative, huge or no number, and so does each member of its structs.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/c_positions.h"
#include "vit/c_prompts.h"

namespace vit::test {

/// The functions of vit/c.h and its companions with the names of their parameters, and the members of its
/// structs.
class CHeader {
 public:
  CHeader() {
    std::string text = read_text(data_path("../vit/c.h")) + read_text(data_path("../vit/c_prompts.h")) +
                       read_text(data_path("../vit/c_positions.h"));
    for (std::size_t at = text.find("/*"); at != text.npos; at = text.find("/*", at))
      text.erase(at, text.find("*/", at) + 2 - at);
    text = std::regex_replace(text, std::regex("#[^\n]*"), "");
    const std::regex function("VIT_API[^;(]*?(vit_\\w+)\\(([^)]*)\\);"), parameter("(\\w+)\\s*(?:,|$)");
    for (std::sregex_iterator it(text.begin(), text.end(), function), end; it != end; ++it)
      functions_[(*it)[1]] = matches((*it)[2], parameter);
    const std::regex structure("typedef struct vit_\\w+ \\{([^}]*)\\} (vit_\\w+);"),
        member("(\\w+)(?:\\[\\w+\\])?;");
    for (std::sregex_iterator it(text.begin(), text.end(), structure), end; it != end; ++it)
      structs_[(*it)[2]] = matches((*it)[1], member);
  }

  const std::map<std::string, std::vector<std::string>>& functions() const { return functions_; }
  const std::vector<std::string>& members(const std::string& name) const { return structs_.at(name); }

 private:
  static std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
    std::vector<std::string> out;
    for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
      out.push_back((*it)[1]);
    return out;
  }

  std::map<std::string, std::vector<std::string>> functions_, structs_;
};

/// Name of the struct and pointers to its members in the order of the header; none for other types.
template <typename Struct>
struct StructOf {
  static constexpr const char* name = nullptr;
  static constexpr std::tuple<> members{};
};

/// What can be wrong with a value: its kind, and the value.
template <typename T>
using Variants = std::vector<std::pair<std::string, T>>;

template <typename T>
Variants<T> wrong_numbers() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return {
        {"nan", Limits::quiet_NaN()}, {"infinite", Limits::infinity()}, {"negative", T(-1)}, {"zero", T(0)}};
  else if constexpr (std::is_same_v<T, std::size_t>)
    return {{"zero", 0}, {"huge", std::size_t{1} << 60}};
  else if constexpr (std::is_unsigned_v<T>)
    return {{"zero", 0}, {"huge", Limits::max()}};
  else
    return {{"negative", Limits::min()}, {"huge", Limits::max()}};
}

/// Pointers through which a call hands out an object.
template <typename T>
constexpr bool kIsHandle = false;
template <typename T>
constexpr bool kIsHandle<T**> = !std::is_const_v<T>;

/// Walks through the wrong forms of calls. VIT_ERROR_ARGUMENT is expected, but for what every function has
/// alike (usual_status()), and for what patterns of "function.parameter[.member] kind" list. Members of a
/// struct are walked in the first function that takes it, and in calls with a label.
class CWalk {
 public:
  using Others = std::vector<std::pair<std::string, vit_status>>;
  explicit CWalk(const Others& others) {
    for (const auto& [pattern, status] : others) others_.push_back({pattern, std::regex(pattern), status});
  }

  /// Makes the right call, all wrong forms of it, and the right one again. `label` is added to the function's
  /// name in the list of other statuses.
  template <typename... P>
  void calls(const std::string& function, const std::string& label, vit_status (*call)(P...),
             std::type_identity_t<P>... right) {
    walked_.insert(function);
    name_ = function + label;
    CAPTURE(name_);
    const std::tuple<P...> arguments(right...);
    expect_right(call, arguments);
    vary(header_.functions().at(function), call, arguments, std::index_sequence_for<P...>());
    expect_right(call, arguments);
  }

  /// A function without a status: its results for null and for undefined numbers are looked at by the caller.
  void seen(const std::string& function) { walked_.insert(function); }

  /// Functions of the header that were not walked, and statuses that no call had to give.
  std::vector<std::string> left() const {
    std::vector<std::string> out;
    for (const auto& [name, parameters] : header_.functions())
      if (!walked_.contains(name)) out.push_back(name + " is not walked");
    for (const Other& other : others_)
      if (!other.is_used) out.push_back(other.pattern + " is no wrong call");
    return out;
  }

 private:
  template <typename Call, typename Arguments>
  void expect_right(const Call& call, Arguments arguments) {
    const vit_status status = std::apply(call, arguments);
    CHECK_MESSAGE(status == VIT_OK, (name_ + ": " + vit_last_error()));
    release_all(arguments);
  }

  template <typename Call, typename Arguments, std::size_t... I>
  void vary(const std::vector<std::string>& names, const Call& call, const Arguments& arguments,
            std::index_sequence<I...>) {
    REQUIRE(names.size() == sizeof...(I));
    (vary_one<I>(names[I], call, arguments), ...);
  }

  template <std::size_t I, typename Call, typename Arguments>
  void vary_one(const std::string& name, const Call& call, const Arguments& arguments) {
    using T = std::tuple_element_t<I, Arguments>;
    for (const auto& [kind, value] : variants<T>(std::get<I>(arguments))) {
      Arguments changed = arguments;
      std::get<I>(changed) = value;
      const bool is_member = kind.starts_with('.');
      expect_wrong(name_ + "." + name + (is_member ? "" : " ") + kind, call, changed);
    }
  }

  template <typename Call, typename Arguments>
  void expect_wrong(const std::string& what, const Call& call, const Arguments& arguments) {
    CAPTURE(what);
    const vit_status expected = expected_status(what);
    const vit_status status = std::apply(call, arguments);
    const std::string found =
        std::string(vit_status_name(status)) + (status == VIT_OK ? "" : std::string(": ") + vit_last_error());
    CHECK_MESSAGE(status == expected,
                  (what + ": expected " + vit_status_name(expected) + ", found " + found));
    if (status != VIT_OK) std::apply([&](const auto&... each) { (expect_unchanged(each), ...); }, arguments);
    release_all(arguments);
  }

  struct Other {
    std::string pattern;
    std::regex expression;
    vit_status status;
    bool is_used = false;
  };
  vit_status expected_status(const std::string& what) {
    for (Other& other : others_) {
      if (!std::regex_match(what, other.expression)) continue;
      other.is_used = true;
      return other.status;
    }
    return usual_status(what);
  }

  /// NULL options are the defaults, and so are zeros in their members; a path to nothing is a missing file;
  /// index 0 is the first one; no inputs are no error.
  static vit_status usual_status(const std::string& what) {
    static const std::regex fine(
        "[^.]*\\.\\w*(options|size|request) null|[^.]*\\.(index|num_inputs) zero|"
        "[^.]*\\.(\\w*options|size|request|prompt)\\.(?!struct_size)\\w+ (null|empty|zero)");
    static const std::regex missing("[^.]*\\.path empty");
    if (std::regex_match(what, fine)) return VIT_OK;
    return std::regex_match(what, missing) ? VIT_ERROR_IO : VIT_ERROR_ARGUMENT;
  }

  /// Results are stored through pointers to pointers, which a failed call leaves as they were.
  template <typename T>
  static void expect_unchanged(const T& argument) {
    if constexpr (kIsHandle<T>) CHECK((argument == nullptr || *argument == nullptr));
  }

  template <typename Arguments>
  static void release_all(const Arguments& arguments) {
    std::apply([](const auto&... each) { (release(each), ...); }, arguments);
  }
  template <typename T>
  static void release(const T& argument) {
    if constexpr (kIsHandle<T>) {
      if (argument == nullptr) return;
      free_handle(*argument);
      *argument = nullptr;
    }
  }
  static void free_handle(vit_results* x) { vit_results_free(x); }
  static void free_handle(vit_model* x) { vit_model_free(x); }
  static void free_handle(vit_preprocessor* x) { vit_preprocessor_free(x); }
  static void free_handle(vit_text_tower* x) { vit_text_tower_free(x); }
  static void free_handle(vit_text_encoder* x) { vit_text_encoder_free(x); }
  static void free_handle(vit_tokenizer* x) { vit_tokenizer_free(x); }
  static void free_handle(vit_session* x) { vit_session_free(x); }
  static void free_handle(vit_classifier* x) { vit_classifier_free(x); }
  static void free_handle(vit_anomaly* x) { vit_anomaly_free(x); }
  static void free_handle(vit_pixels* x) { vit_pixels_free(x); }
  static void free_handle(vit_detector* x) { vit_detector_free(x); }
  static void free_handle(vit_prompt_model* x) { vit_prompt_model_free(x); }
  static void free_handle(vit_prompt_segmenter* x) { vit_prompt_segmenter_free(x); }
  static void free_handle(vit_prompt_image* x) { vit_prompt_image_free(x); }
  static void free_handle(vit_rope_table* x) { vit_rope_table_free(x); }
  static void free_handle(vit_rope_form* x) { vit_rope_form_free(x); }
  static void free_handle(vit_rope_identity* x) { vit_rope_identity_free(x); }

  template <typename T>
  Variants<T> variants(const T& right) {
    if constexpr (std::is_same_v<T, const char*>) {
      return {{"null", nullptr}, {"empty", ""}};
    } else if constexpr (std::is_pointer_v<T>) {
      Variants<T> out{{"null", nullptr}};
      using Struct = std::remove_const_t<std::remove_pointer_t<T>>;
      if constexpr (StructOf<Struct>::name != nullptr && std::is_const_v<std::remove_pointer_t<T>>) {
        const bool is_first = structs_.insert(StructOf<Struct>::name).second || name_.ends_with(')');
        if (right != nullptr && is_first) add_members<Struct>(*right, out);
      }
      return out;
    } else {
      return wrong_numbers<T>();
    }
  }

  /// Copies of a struct, each with one wrong member.
  template <typename Struct, typename T>
  void add_members(const Struct& right, Variants<T>& out) {
    static std::deque<Struct> copies;
    const std::vector<std::string>& names = header_.members(StructOf<Struct>::name);
    constexpr auto kMembers = StructOf<Struct>::members;
    REQUIRE_MESSAGE(names.size() == std::tuple_size_v<decltype(kMembers)>, StructOf<Struct>::name);
    std::size_t i = 0;
    const auto add = [&](auto member) {
      using Member = std::remove_reference_t<decltype(right.*member)>;
      using Value = std::remove_const_t<Member>;
      const std::string& name = names[i++];
      if constexpr (!std::is_array_v<Value>) {
        for (const auto& [kind, value] : variants<Value>(right.*member)) {
          copies.push_back(right);
          copies.back().*member = value;
          out.emplace_back("." + name + " " + kind, &copies.back());
        }
      }
    };
    std::apply([&](auto... each) { (add(each), ...); }, kMembers);
  }

  CHeader header_;
  std::vector<Other> others_;
  std::set<std::string> walked_, structs_;
  std::string name_;
};

}  // namespace vit::test
