// Heads on features, compared with scikit-learn's (data/golden/fit) and with the plain definition.
#include "vit/fit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/base/check.h"
#include "vit/io/safetensors.h"
#include "vit/rings/fit/folds.h"
#include "vit/rings/fit/logistic.h"
#include "vit/rings/fit/memory.h"
#include "vit/rings/fit/standardize.h"

TEST_SUITE_BEGIN("fit");

namespace vit {

using namespace internal;

namespace {

using Classes = std::vector<std::uint32_t>;

constexpr const char* kCases[]{"four", "two", "rare"};

/// One case of the golden file.
class Golden {
 public:
  explicit Golden(std::string name)
      : file_(open_safetensors(test::data_path("golden/fit/fit.safetensors"))), name_(std::move(name)) {}

  Tensor<float> floats(const std::string& key) const { return to_float(entry(key)); }
  std::vector<double> doubles(const std::string& key) const { return to_double(entry(key)); }
  template <typename T>
  std::vector<T> integers(const std::string& key) const {
    const std::vector<std::byte> bytes = entry(key).bytes.copy();
    std::vector<T> out;
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(std::int32_t)) {
      std::int32_t value = 0;
      std::memcpy(&value, bytes.data() + i, sizeof value);
      out.push_back(static_cast<T>(value));
    }
    return out;
  }
  Classes classes() const { return integers<std::uint32_t>("classes"); }

 private:
  const TensorEntry& entry(const std::string& key) const { return file_.at(name_ + "." + key); }

  TensorFile file_;
  std::string name_;
};

std::size_t count_of(const Classes& classes) {
  return *std::ranges::max_element(classes) + std::size_t{1};
}

/// Coefficients and intercept of function k, as scikit-learn has them: of two classes the difference.
std::vector<double> function_of(const ClassifierHead& head, std::size_t k) {
  std::vector<double> out;
  const bool is_binary = head.labels.size() == 2;
  for (std::size_t c = 0; c <= head.num_features(); ++c) {
    const auto number = [&](std::size_t row) {
      return static_cast<double>(c < head.num_features() ? head.coefficients.view().row(row)[c]
                                                         : head.intercepts.data()[row]);
    };
    out.push_back(is_binary ? number(1) - number(0) : number(k));
  }
  return out;
}

std::vector<float> values_of(const ClassifierHead& head, std::span<const float> x) {
  std::vector<float> values(head.labels.size());
  head.apply(x, values);
  return values;
}

std::size_t best_of(const std::vector<float>& values) {
  return static_cast<std::size_t>(std::ranges::max_element(values) - values.begin());
}

std::span<const float> row_of(const Tensor<float>& matrix, std::size_t row) {
  return {matrix.view().row(row), matrix.dim(1)};
}

/// Largest element of the gradient of mean loss + |W|^2 / (2 n strength), from the definition.
double largest_slope(const ClassifierHead& head, const Tensor<float>& features, const Classes& classes) {
  const std::size_t num_classes = head.labels.size(), columns = head.num_features();
  const internal::Standardization standard = internal::standardization_of(features);
  const double count = static_cast<double>(classes.size());
  std::vector<double> slope(num_classes * (columns + 1)), row(columns), values(num_classes);
  for (std::size_t i = 0; i < classes.size(); ++i) {
    standard.apply(features.view().row(i), row.data());
    double sum = 0;
    for (std::size_t k = 0; k < num_classes; ++k) {
      values[k] = static_cast<double>(head.intercepts.data()[k]);
      for (std::size_t c = 0; c < columns; ++c)
        values[k] += row[c] * static_cast<double>(head.coefficients.view().row(k)[c]);
      sum += values[k] = std::exp(values[k]);
    }
    for (std::size_t k = 0; k < num_classes; ++k) {
      const double residual = (values[k] / sum - (k == classes[i] ? 1.0 : 0.0)) / count;
      for (std::size_t c = 0; c < columns; ++c) slope[k * (columns + 1) + c] += residual * row[c];
      slope[k * (columns + 1) + columns] += residual;
    }
  }
  const double penalty = 1.0 / (count * head.strength.value());
  double largest = 0;
  for (std::size_t k = 0; k < num_classes; ++k) {
    for (std::size_t c = 0; c <= columns; ++c) {
      const double weight = c < columns ? static_cast<double>(head.coefficients.view().row(k)[c]) : 0.0;
      largest = std::max(largest, std::abs(slope[k * (columns + 1) + c] + penalty * weight));
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("fit: folds and standardization are scikit-learn's") {
  for (const char* name : kCases) {
    CAPTURE(name);
    const Golden golden(name);
    const Classes classes = golden.classes();
    CHECK(internal::stratified_folds(classes, count_of(classes), 5) == golden.integers<std::size_t>("folds"));
    const internal::Standardization found = internal::standardization_of(golden.floats("features"));
    const std::vector<double> mean = golden.doubles("mean"), scale = golden.doubles("scale");
    for (std::size_t c = 0; c < mean.size(); ++c) {
      CHECK(found.mean[c] == doctest::Approx(mean[c]).epsilon(1e-12));
      CHECK(found.scale[c] == doctest::Approx(scale[c]).epsilon(1e-12));
    }
  }
}

TEST_CASE("fit: logistic regression finds scikit-learn's optimum") {
  for (const char* name : kCases) {
    const Golden golden(name);
    for (const double strength : {0.01, 1.0, 1000.0}) {
      CAPTURE(name);
      CAPTURE(strength);
      const ClassifierHead head =
          fit_linear(golden.floats("features"), golden.classes(), {.strength = strength, .num_folds = 0});
      const std::vector<double> optimum = golden.doubles(text("optimum.", strength));
      const double largest =
          std::abs(*std::ranges::max_element(optimum, {}, [](double x) { return std::abs(x); }));
      const std::size_t width = head.num_features() + 1;
      for (std::size_t k = 0; k < optimum.size() / width; ++k) {
        const std::vector<double> found = function_of(head, k);
        for (std::size_t c = 0; c < width; ++c)
          CHECK(std::abs(found[c] - optimum[k * width + c]) <= 2e-6 * largest);
      }
    }
  }
}

TEST_CASE("fit: cross-validation chooses as scikit-learn's LogisticRegressionCV") {
  for (const char* name : kCases) {
    CAPTURE(name);
    const Golden golden(name);
    const ClassifierHead head = fit_linear(golden.floats("features"), golden.classes());
    const std::vector<double> chosen = golden.doubles("chosen");
    CHECK(head.strength.value() == doctest::Approx(chosen[0]).epsilon(1e-12));
    CHECK(head.cross_validated_top1.value() == doctest::Approx(chosen[1]).epsilon(1e-12));
    CHECK(head.num_folds == 5);
  }
}

TEST_CASE("fit: neighbors vote as in DINO, centroids are scikit-learn's") {
  for (const char* name : kCases) {
    CAPTURE(name);
    const Golden golden(name);
    const Tensor<float> features = golden.floats("features"), queries = golden.floats("queries");
    const ClassifierHead voters = fit_knn(features, golden.classes());
    const ClassifierHead centroids = fit_centroid(features, golden.classes());
    const std::vector<double> votes = golden.doubles("votes");
    const auto labels = golden.integers<std::size_t>("centroid_labels");
    for (std::size_t i = 0; i < queries.dim(0); ++i) {
      const std::vector<float> values = values_of(voters, row_of(queries, i));
      for (std::size_t k = 0; k < values.size(); ++k) {
        const double vote = votes[i * values.size() + k];
        if (vote == 0)
          CHECK(values[k] == ClassifierHead::kNoVotes);
        else
          CHECK(values[k] == doctest::Approx(std::log(vote)).epsilon(2e-6));
      }
      CHECK(best_of(values_of(centroids, row_of(queries, i))) == labels[i]);
    }
    CHECK(voters.cross_validated_top1.value() > 0.4);
    CHECK(centroids.cross_validated_top1.value() > 0.4);
  }
}

TEST_CASE("fit: the optimum of many classes, in several parts, has the same bits for any number of threads") {
  constexpr std::size_t kClasses = 2000, kImages = 4500, kColumns = 3;
  test::Rng random(7);
  const Tensor<float> features = random.tensor(Shape{kImages, kColumns});
  Classes classes;
  for (std::size_t i = 0; i < kImages; ++i) classes.push_back(static_cast<std::uint32_t>(i % kClasses));
  const auto fit = [&](int threads) {
    return fit_linear(features, classes, {.strength = 0.1, .num_folds = 0, .threads = threads});
  };
  const ClassifierHead one = fit(1), three = fit(3);
  CHECK(largest_slope(one, features, classes) < 1e-9);
  CHECK(std::ranges::equal(one.coefficients.flat(), three.coefficients.flat()));
  CHECK(std::ranges::equal(one.intercepts.flat(), three.intercepts.flat()));
}

TEST_CASE("fit: fewer rows than features have the optimum, too") {
  constexpr std::size_t kRows = 11, kColumns = 37;
  Tensor<float> features(Shape{kRows, kColumns});
  test::Rng rng(3);
  for (float& x : features.flat()) x = rng.uniform(-1.0f, 2.0f);
  std::copy_n(features.view().row(2), kColumns, features.view().row(9));  // the rank is not full
  for (const std::size_t num_classes : {2u, 4u}) {
    std::vector<std::uint32_t> classes(kRows);
    for (std::size_t i = 0; i < kRows; ++i) classes[i] = static_cast<std::uint32_t>(i % num_classes);
    const double strength = 0.7;
    const ClassifierHead head = fit_linear(features, classes, {.strength = strength, .num_folds = 0});
    const internal::Standardization standard = internal::standardization_of(features);
    // the gradient of the objective that the header states, at the head's coefficients: zero
    Tensor<double> slope(Shape{num_classes, kColumns + 1});
    const double penalty = (num_classes == 2 ? 2.0 : 1.0) / strength;
    for (std::size_t i = 0; i < kRows; ++i) {
      std::vector<double> row(kColumns), values(num_classes);
      standard.apply(features.view().row(i), row.data());
      for (std::size_t k = 0; k < num_classes; ++k) {
        values[k] = static_cast<double>(head.intercepts.data()[k]);
        for (std::size_t c = 0; c < kColumns; ++c)
          values[k] += static_cast<double>(head.coefficients.view().row(k)[c]) * row[c];
      }
      double sum = 0;
      for (double& value : values) sum += value = std::exp(value);
      for (std::size_t k = 0; k < num_classes; ++k) {
        const double residual = values[k] / sum - (classes[i] == k ? 1.0 : 0.0);
        for (std::size_t c = 0; c < kColumns; ++c) slope.view().row(k)[c] += residual * row[c];
        slope.view().row(k)[kColumns] += residual;
      }
    }
    for (std::size_t k = 0; k < num_classes; ++k) {
      for (std::size_t c = 0; c <= kColumns; ++c) {
        const double of_penalty =
            c < kColumns ? penalty * static_cast<double>(head.coefficients.view().row(k)[c]) : 0.0;
        // coefficients below 1 are stored in float32, each of 11 rows adds their error times its features
        CHECK(std::abs(slope.view().row(k)[c] + of_penalty) < 2e-5);
      }
    }
    const ClassifierHead early =
        fit_linear(features, classes, {.strength = strength, .num_folds = 0, .max_gradient = 1e-2});
    CHECK_FALSE(std::ranges::equal(early.coefficients.flat(), head.coefficients.flat()));
  }
}

TEST_CASE("fit: balanced classes are rows as often as those of the largest class") {
  Tensor<float> features(Shape{5, 3}), repeated(Shape{8, 3});
  test::Rng rng(4);
  for (float& x : features.flat()) x = rng.uniform(-1.0f, 1.0f);
  const std::vector<std::uint32_t> classes{0, 0, 0, 0, 1};
  std::vector<std::uint32_t> more{0, 0, 0, 0, 1, 1, 1, 1};
  for (std::size_t i = 0; i < 8; ++i)
    std::copy_n(features.view().row(std::min<std::size_t>(i, 4)), 3, repeated.view().row(i));
  // weights 5/8 and 5/2: those of the repeated rows times 5/8
  const ClassifierHead balanced = fit_linear(
      features, classes, {.strength = 8.0, .num_folds = 0, .standardize = false, .balanced = true});
  const ClassifierHead plain =
      fit_linear(repeated, more, {.strength = 5.0, .num_folds = 0, .standardize = false});
  for (std::size_t i = 0; i < 6; ++i)
    CHECK(balanced.coefficients.data()[i] == doctest::Approx(plain.coefficients.data()[i]).epsilon(1e-6));
  CHECK(balanced.intercepts.data()[1] == doctest::Approx(plain.intercepts.data()[1]).epsilon(1e-6));
}

TEST_CASE("fit: folds without a class, and labels of one image") {
  test::Rng random(8);
  const Tensor<float> features = random.tensor(Shape{6, 4});
  const ClassifierHead few = fit_linear(features, Classes{0, 0, 0, 1, 1, 2});
  CHECK(few.num_folds == 3);  // as many as the largest class has images
  CHECK(few.cross_validated_top1.has_value());
  const ClassifierHead lonely = fit_linear(features, Classes{0, 1, 2, 3, 4, 5});
  CHECK(lonely.num_folds == 0);
  CHECK(!lonely.cross_validated_top1.has_value());
  CHECK(lonely.strength.value() == 1.0);
  const ClassifierHead alone = fit_linear(features, Classes{0, 0, 0, 0, 0, 1});
  CHECK(alone.num_folds == 5);  // one of them learns one class only, and is right never
  CHECK(fit_knn(features, Classes{0, 1, 2, 3, 4, 5}).num_folds == 0);
  CHECK(best_of(values_of(fit_knn(features, Classes{0, 1, 2, 3, 4, 5}), row_of(features, 4))) == 4);
}

TEST_CASE("fit: iterations that do not suffice are reported, and can be continued") {
  const Golden golden("four");
  const Tensor<float> features = golden.floats("features");
  const Classes classes = golden.classes();
  std::vector<std::size_t> rows(classes.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  const internal::Standardization standard = internal::standardization_of(features);
  internal::LogisticRegression regression({features, classes, rows}, standard, count_of(classes), 1);
  CHECK(!regression.fit(1e4, {.max_iterations = 2}));
  CHECK(std::ranges::any_of(regression.functions().numbers, [](double x) { return x != 0; }));
  CHECK(regression.fit(1e4, {}));
}

TEST_CASE("fit: what cannot be fitted") {
  const auto refusal = [](const Tensor<float>& features, const Classes& classes,
                          const FitOptions& options = {}) {
    const auto error = test::error_of([&] { fit_linear(features, classes, options); });
    REQUIRE(error);
    CHECK(error->kind() == ErrorKind::argument);
    return std::string(error->message());
  };
  Tensor<float> features = test::Rng(9).tensor(Shape{4, 3});
  CHECK(test::contains(refusal(features, {0, 1, 0}), "(4, 3)"));
  CHECK(test::contains(refusal(features, {0, 0, 0, 0}), "one class"));
  CHECK(test::contains(refusal(features, {0, 2, 0, 2}), "class 1 has no image"));
  CHECK(test::contains(refusal(features, {0, 1, 0, 4000000000}), "4 images"));
  CHECK(test::contains(refusal(features, {0, 1, 0, 1}, {.strength = 0.0}), "above 0"));
  features.data()[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(test::contains(refusal(features, {0, 1, 0, 1}), "image 2"));
}

TEST_CASE("fit: memory that the system does not have is refused before it is taken") {
  const Tensor<float> features(Shape{2, std::size_t{1} << 22});  // with a covariance of 128 TiB
  const Classes classes{0, 1};
  CHECK_ERROR(ErrorKind::io, ("4194304 features and 2 classes", "MiB are available"),
              fit_linear(features, classes));
  CHECK(fit_centroid(features, classes).num_images == 2);
  // many thousands of classes are what the formula says, and sizes beyond all integers are no small ones
  CHECK(internal::fit_memory(FitMethod::logistic, 20000, 160, 10000) ==
        8 * (30 * 161 * 10000ull + 2 * 160 * 160) + (128 << 20));
  CHECK(internal::fit_memory(FitMethod::knn, 100000, 768, 10) == 4ull * 100000 * 768);
  constexpr std::size_t kHuge = std::size_t{1} << 62;
  CHECK(internal::fit_memory(FitMethod::centroid, kHuge, kHuge, kHuge) > kHuge);
}

TEST_CASE("fit: heads are read as they were written") {
  const test::TemporaryFolder folder;
  const Golden golden("four");
  const Tensor<float> features = golden.floats("features"), queries = golden.floats("queries");
  std::vector<ClassifierHead> heads;
  heads.push_back(fit_linear(features, golden.classes(), {.strength = 1.0}));
  heads.push_back(fit_knn(features, golden.classes()));
  heads.push_back(fit_centroid(features, golden.classes()));
  for (ClassifierHead& head : heads) {
    CAPTURE(to_string(head.method));
    head.labels = {"cat", "\"quoted\"", "\xC3\xA9t\xC3\xA9", "a b"};
    head.features = "pooled";
    head.model = "a model";
    head.fingerprint = "0123456789abcdef";
    save_head(folder / "head.safetensors", head);
    const ClassifierHead read = load_head(folder / "head.safetensors");
    CHECK(read.method == head.method);
    CHECK(read.labels == head.labels);
    CHECK(read.features == head.features);
    CHECK(read.fingerprint == head.fingerprint);
    CHECK(read.strength == head.strength);
    CHECK(read.cross_validated_top1 == head.cross_validated_top1);
    CHECK(values_of(read, row_of(queries, 1)) == values_of(head, row_of(queries, 1)));
  }
}

}  // namespace vit
