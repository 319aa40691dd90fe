#include "vit/rings/fit/memory.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/system.h"

namespace vit::internal {
namespace {

constexpr double kMebibyte = 1 << 20;

/// In double: products of three sizes may overflow integers.
double bytes_of(FitMethod method, double n, double C, double K) {
  switch (method) {
    case FitMethod::knn: return 4.0 * n * C;
    case FitMethod::centroid: return 12.0 * K * C;
    case FitMethod::logistic: break;
  }
  const double rows_at_work = std::max(128.0 * kMebibyte, 8.0 * 128.0 * K);
  return 8.0 * (30.0 * (C + 1.0) * K + 2.0 * C * C) + std::min(rows_at_work, 8.0 * n * (C + 1.0 + K));
}

}  // namespace

std::size_t fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                       std::size_t num_classes) noexcept {
  const double bytes = bytes_of(method, static_cast<double>(num_images), static_cast<double>(num_features),
                                static_cast<double>(num_classes));
  constexpr double kMost = 9e18;
  return static_cast<std::size_t>(std::min(bytes, kMost));
}

void check_fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                      std::size_t num_classes, std::size_t more) {
  const std::size_t bytes = fit_memory(method, num_images, num_features, num_classes);
  const std::size_t available = system::available_memory();
  const auto mebibytes = [](std::size_t number) { return number / (std::size_t{1} << 20); };
  VIT_CHECK(bytes <= available && more <= available - bytes, Where("fit", ErrorKind::io), to_string(method),
            " of ", num_images, " images, ", num_features, " features and ", num_classes, " classes takes ",
            mebibytes(bytes) + mebibytes(more) + 1, " MiB, but ", mebibytes(available), " MiB are available",
            method == FitMethod::logistic ? "; the centroid method takes less" : "");
}

}  // namespace vit::internal
