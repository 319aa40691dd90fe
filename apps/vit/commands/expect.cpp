#include "apps/vit/commands/expect.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/options/features.h"
#include "apps/vit/options/load_model.h"
#include "vit/base/check.h"
#include "vit/io/json.h"
#include "vit/model.h"
#include "vit/session.h"

namespace vit::app {
namespace {

/// The error of one feature; none if its shape is another.
struct FeatureError {
  std::string feature;
  double error = std::numeric_limits<double>::infinity();
};

/// What the person's script gave.
struct Expected {
  Tensor<float> pixels;   // (B, K, H, W)
  Tensor<float> outputs;  // (B, ...)
  double tolerance = 0.0;

  explicit Expected(const ExpectOptions& options) {
    const PixelFile file = of_file(options.pixels, [&] { return PixelFile(options.pixels); });
    outputs = of_file(options.outputs, [&] { return load_npy_floats(options.outputs); });
    const Tensor<float> first = file.load(0);
    VIT_CHECK(outputs.dim(0) == file.num_images() && outputs.shape().rank() >= 2, "expect",
              options.outputs.string(), ": expected outputs (", file.num_images(), ", ...) of the images in ",
              options.pixels.string(), ", found ", outputs.shape().to_string());
    pixels = Tensor<float>(Shape{file.num_images(), first.dim(0), first.dim(1), first.dim(2)});
    for (std::size_t i = 0; i < file.num_images(); ++i) {
      const Tensor<float> image = file.load(i);
      std::ranges::copy(image.flat(), pixels.data() + i * image.num_elements());
    }
    double largest = 0.0;
    for (const float value : outputs.flat())
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    // float32 in another order of sums differs by some 1e-6 of the largest value after tens of blocks.
    tolerance = 1e-4 * largest + 1e-7;
  }
};

/// The largest difference of a feature from the expected outputs, nothing if the shapes differ.
std::optional<double> difference(const ResultArray& array, std::size_t image, const Expected& expected) {
  const std::size_t count = expected.outputs.num_elements() / expected.outputs.dim(0);
  if (array.shape.num_elements() != count || array.shape.last() != expected.outputs.shape().last())
    return std::nullopt;
  const auto* const own = static_cast<const float*>(array.data);
  const float* const wanted = expected.outputs.data() + image * count;
  double largest = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const double found = std::abs(static_cast<double>(own[i]) - static_cast<double>(wanted[i]));
    if (!(found <= largest)) largest = std::isnan(found) ? std::numeric_limits<double>::infinity() : found;
  }
  return largest;
}

/// The features that the model has, or the one that was asked for.
std::vector<std::string> features_of(const ModelConfig& config, const std::string& wanted) {
  if (!wanted.empty()) return {wanted};
  std::vector<std::string> out;
  const auto add = [&](const char* name) {
    try {
      parse_output(name, config);
      out.emplace_back(name);
      return true;
    } catch (const Error&) {  // the model has no such output
      return false;
    }
  };
  add("logits");
  add("projected");
  if (!add("pooled")) add("cls");  // else a wrong pooling would be found to be right
  add("tokens");
  add("patches");
  return out;
}

/// The feature that agrees best. Throws Error as loading and running a model do.
FeatureError compare(const std::filesystem::path& model_file, const ModelOptions& options, int threads,
                     const Expected& expected, const std::string& wanted) {
  const std::shared_ptr<const Model> model = Model::load(model_file, options);
  Session session(model, {.threads = threads});
  FeatureError best;
  for (const std::string& name : features_of(model->config(), wanted)) {
    const FeatureList features = parse_features(name, *model);
    Outputs outputs;
    session.forward(expected.pixels, features.request, outputs);
    double error = 0.0;
    bool fits = true;
    for (std::size_t i = 0; fits && i < outputs.num_images(); ++i) {
      const std::optional<double> found = difference(features.arrays(outputs[i]).front(), i, expected);
      fits = found.has_value();
      if (fits) error = std::max(error, *found);
    }
    if (fits && error < best.error) best = {name, error};
  }
  return best;
}

/// A layout in a temporary file.
class LayoutFile {
 public:
  explicit LayoutFile(const JsonValue& layout)
      : path_(std::filesystem::temp_directory_path() / text("vit-layout-", ::getpid(), ".json")) {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file << layout.dump();
    file.close();
    VIT_CHECK(file.good(), "expect", "cannot write ", path_.string());
  }
  ~LayoutFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  LayoutFile(const LayoutFile&) = delete;
  LayoutFile& operator=(const LayoutFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// One or two changes and what they lead to.
struct Attempt {
  std::vector<const LayoutChange*> changes;
  FeatureError result;

  JsonValue changed(JsonValue layout) const {
    for (const LayoutChange* const change : changes) change->apply(layout);
    return layout;
  }
};

/// Tries the changes of a layout file, one by one, then in pairs until one agrees.
class Search {
 public:
  Search(std::filesystem::path model, const ModelOptions& options, int threads, const Expected& expected,
         std::string feature, const JsonValue& layout)
      : model_(std::move(model)),
        options_(options),
        threads_(threads),
        expected_(expected),
        feature_(std::move(feature)),
        layout_(layout),
        changes_(layout_changes(layout)) {}

  /// Best first. They point into this object.
  std::vector<Attempt> run() const {
    std::vector<Attempt> singles;
    for (const LayoutChange& change : changes_)
      if (std::optional<Attempt> attempt = attempted({&change})) singles.push_back(*std::move(attempt));
    sort(singles);
    std::vector<Attempt> all = singles;
    // A change that is right leaves the error of the other one: those that lower it most come first.
    for (std::size_t sum = 1; !agrees(all) && sum < 2 * singles.size() && !interrupted(); ++sum) {
      for (std::size_t i = 0; i < singles.size() && 2 * i < sum; ++i) {
        const std::size_t j = sum - i;
        if (j >= singles.size()) continue;
        const LayoutChange *const first = singles[i].changes[0], *const second = singles[j].changes[0];
        if (first->choice == second->choice) continue;
        if (std::optional<Attempt> attempt = attempted({first, second})) all.push_back(*std::move(attempt));
      }
    }
    sort(all);
    return all;
  }

 private:
  static void sort(std::vector<Attempt>& list) {
    std::ranges::stable_sort(list, {}, [](const Attempt& attempt) { return attempt.result.error; });
  }
  bool agrees(const std::vector<Attempt>& list) const {
    return std::ranges::any_of(
        list, [&](const Attempt& attempt) { return attempt.result.error <= expected_.tolerance; });
  }
  /// Nothing if the changed layout does not fit the file, or changes nothing.
  std::optional<Attempt> attempted(std::vector<const LayoutChange*> changes) const {
    Attempt attempt{std::move(changes), {}};
    const JsonValue layout = attempt.changed(layout_);
    if (layout == layout_) return std::nullopt;
    try {
      const LayoutFile file(layout);
      ModelOptions options = options_;
      options.layout = file.path();
      attempt.result = compare(model_, options, threads_, expected_, feature_);
    } catch (const Error&) {  // these choices do not fit the file, or each other
      return std::nullopt;
    } catch (const UsageError&) {  // the model has no such feature with them
      return std::nullopt;
    }
    if (attempt.result.feature.empty()) return std::nullopt;
    return attempt;
  }

  std::filesystem::path model_;
  const ModelOptions& options_;
  int threads_;
  const Expected& expected_;
  std::string feature_;
  const JsonValue& layout_;
  std::vector<LayoutChange> changes_;
};

JsonValue error_json(double error) {
  return std::isfinite(error) ? JsonValue(error) : JsonValue(nullptr);
}

JsonValue change_json(const Attempt& attempt) {
  JsonValue out = JsonValue::object();
  for (const LayoutChange* const change : attempt.changes) {
    if (change->value.is_object()) {
      out.update(change->value);
    } else {
      out[change->choice] = change->value;
    }
  }
  return out;
}

std::string expectation_text(const JsonValue& result) {
  std::string out = result["agrees"] == JsonValue(true) ? "agrees" : "does not agree";
  out += ": " + result["feature"].get<std::string>() + " differs by " + result["error"].dump() + "\n";
  for (const JsonValue& attempt : result["try"]) {
    out += "  ";
    bool is_first = true;
    for (const auto& [name, value] : attempt["change"].items()) {
      out += (is_first ? "" : ", ") + name + ": " +
             (value.is_string() ? value.get<std::string>() : value.dump());
      is_first = false;
    }
    out += "  ->  " + attempt["error"].dump() + "\n";
  }
  if (result["corrected"] == JsonValue(true))
    out += "corrected layout:\n" + result["layout"].dump(internal::JsonLayout::indented) + "\n";
  return out;
}

}  // namespace

int expect_outputs(const CommonOptions& common, const ExpectOptions& options) {
  constexpr std::size_t kShown = 10;
  const ModelOptions& loading = common.model_options;
  if (!loading.layout.empty() && !loading.overrides.empty())
    fail_usage(
        "--expect with --layout and --set: write the values into the layout file, whose choices they hide");
  const Expected expected(options);
  const std::filesystem::path model = model_path(common);
  const FeatureError base = compare(model, loading, common.session.threads, expected, options.feature);
  VIT_CHECK(!base.feature.empty(), "expect", options.outputs.string(),
            ": no output of the model has the shape ", expected.outputs.shape().to_string(),
            "; --feature NAME selects one of vit embed --features");
  const bool agrees = base.error <= expected.tolerance;
  JsonValue out = JsonValue::object();
  out["error"] = error_json(base.error);
  out["feature"] = base.feature;
  out["agrees"] = agrees;
  out["try"] = JsonValue::array();
  out["layout"] = nullptr;
  bool is_corrected = false;
  if (!loading.layout.empty()) {
    const JsonValue layout = JsonValue::from(internal::load_json(loading.layout));
    out["layout"] = layout;
    if (!agrees) {
      const Search search(model, loading, common.session.threads, expected, options.feature, layout);
      std::vector<Attempt> attempts = search.run();  // they point to its changes
      std::erase_if(attempts, [&](const Attempt& attempt) { return !(attempt.result.error < base.error); });
      for (std::size_t i = 0; i < std::min(attempts.size(), kShown); ++i) {
        JsonValue shown = JsonValue::object();
        shown["change"] = change_json(attempts[i]);
        shown["error"] = error_json(attempts[i].result.error);
        out["try"].push_back(shown);
      }
      if (!attempts.empty() && attempts.front().result.error <= expected.tolerance) {
        out["layout"] = attempts.front().changed(layout);
        is_corrected = true;
      }
    }
  }
  out["corrected"] = is_corrected;
  print_result(options.json ? out.dump() + "\n" : expectation_text(out));
  return agrees ? 0 : 1;
}

}  // namespace vit::app
