// From good images to a bank: collects patches, chooses the coreset, holds out each image in turn.
#include <algorithm>
#include <cmath>
#include <utility>

#include "vit/analysis/features.h"
#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/config.h"
#include "vit/io/in_quotes.h"
#include "vit/rings/anomaly/coreset.h"
#include "vit/rings/anomaly/search.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"anomaly", ErrorKind::argument};
constexpr std::size_t kMaxNeighborhood = 31;
constexpr double kLargestThreshold = 1e9;

void check_options(const AnomalyOptions& options, const Model& model) {
  for (const std::size_t layer : options.layers)
    VIT_CHECK(layer < model.config().encoder.depth, kWhere, "layer ", layer, ": the model has blocks 0 to ",
              model.config().encoder.depth - 1);
  check_choice(kWhere, "score", options.score, AnomalyScore::reweighted);
  VIT_CHECK(options.neighborhood % 2 == 1 && options.neighborhood <= kMaxNeighborhood, kWhere,
            "the neighborhood must be odd and at most ", kMaxNeighborhood, ", got ", options.neighborhood);
  VIT_CHECK(options.coreset.fraction > 0 && options.coreset.fraction <= 1, kWhere,
            "the coreset must be a fraction above 0 and at most 1, got ", options.coreset.fraction);
  VIT_CHECK(options.quantile > 0 && options.quantile < 1, kWhere,
            "the quantile must be between 0 and 1, got ", options.quantile);
  VIT_CHECK(options.max_patches > 0, kWhere, "max_patches must be positive");
}

/// The probability that at most `successes` of `n` trials succeed, each with probability p.
double binomial_cdf(std::size_t successes, std::size_t n, double p) {
  double sum = 0;
  const auto count = static_cast<double>(n);
  for (std::size_t i = 0; i <= successes; ++i) {
    const auto k = static_cast<double>(i);
    sum += std::exp(std::lgamma(count + 1) - std::lgamma(k + 1) - std::lgamma(count - k + 1) +
                    k * std::log(p) + (count - k) * std::log1p(-p));
  }
  return std::min(sum, 1.0);
}

}  // namespace

/// The order statistic that covers the quantile, and how sure that is whatever the scores' distribution.
void AnomalyModel::set_quantile() {
  if (is_threshold_given_) return;
  threshold_.reset();
  confidence_ = 0;
  if (held_out_.empty()) return;
  std::vector<float> sorted = held_out_;
  std::ranges::sort(sorted);
  const auto count = static_cast<double>(sorted.size());
  const auto place = std::clamp<std::size_t>(static_cast<std::size_t>(std::ceil(options_.quantile * count)),
                                             1, sorted.size());
  threshold_ = sorted[place - 1];
  confidence_ = binomial_cdf(place - 1, sorted.size(), options_.quantile);
}

struct AnomalyBuilder::State {
  AnomalyModel bank;
  std::vector<float> rows;              // (n, C) patches of this part, image after image
  std::vector<std::uint32_t> of_image;  // (n)
  std::size_t columns = 0;

  /// The first view of each image of this part, which is scored.
  struct View {
    std::uint32_t image = 0;
    std::size_t first_row = 0;  // of rows
    GridSize grid;
  };
  std::vector<View> views;
  std::vector<double> middle;  // (C) sum of the patches in the middle of the images
  double num_middle = 0;

  int threads() const { return bank.options_.threads; }
  /// Adds a view of the image `name`, or of the last one again.
  void insert(const Tensor<float>& features, GridSize grid, const std::string* name);
  void find_background();
  void add_part();
  void score_part();
};

AnomalyModel AnomalyModel::with_threshold(std::optional<float> threshold) && {
  VIT_CHECK(!threshold || (*threshold >= 0 && static_cast<double>(*threshold) <= kLargestThreshold), kWhere,
            "a threshold is a number from 0 to ", kLargestThreshold, ", got ", *threshold);
  threshold_ = threshold;
  is_threshold_given_ = threshold.has_value();
  confidence_ = 0;
  return std::move(*this);
}

AnomalyModel AnomalyModel::with_source(std::string source) && {
  source_ = std::move(source);
  return std::move(*this);
}

AnomalyBuilder::AnomalyBuilder(const Session& session, AnomalyOptions options)
    : state_(std::make_unique<State>()) {
  const Model& model = session.model();
  check_options(options, model);
  AnomalyModel& bank = state_->bank;
  bank.options_ = std::move(options);
  bank.input_size_ = session.options().input_size;
  bank.model_ = model.name();
  bank.fingerprint_ = model.report().fingerprint;
}

AnomalyBuilder::AnomalyBuilder(std::unique_ptr<State> state) : state_(std::move(state)) {}

AnomalyBuilder AnomalyBuilder::resume(const Session& session, AnomalyModel bank, int threads) {
  bank.request(session.model());  // of this model
  const InputSize& input_size = session.options().input_size;
  VIT_CHECK(bank.input_size_.kind == input_size.kind && bank.input_size_.height == input_size.height &&
                bank.input_size_.width == input_size.width,
            kWhere.with(ErrorKind::mismatch), "the bank was built with images of another size");
  auto state = std::make_unique<State>();
  state->bank = std::move(bank);
  state->bank.options_.threads = threads;
  return AnomalyBuilder(std::move(state));
}

AnomalyBuilder::~AnomalyBuilder() = default;
AnomalyBuilder::AnomalyBuilder(AnomalyBuilder&&) noexcept = default;
AnomalyBuilder& AnomalyBuilder::operator=(AnomalyBuilder&&) noexcept = default;

Request AnomalyBuilder::request() const {
  return anomaly_request(parts_of(state_, kWhere).bank.options_);
}
std::size_t AnomalyBuilder::num_images() const noexcept {
  return state_ ? state_->bank.names_.size() : 0;
}

void AnomalyBuilder::add(const ImageOutputs& outputs, const std::string& name) {
  State& s = parts_of(state_, kWhere);
  AnomalyModel& bank = s.bank;
  const Tensor<float> features = anomaly_features(outputs, bank.options_, s.threads());
  const bool is_new = bank.names_.empty() || bank.names_.back() != name;
  // An image stays in one part, so that all of it can be held out.
  if (is_new && !s.of_image.empty() && s.of_image.size() + features.dim(0) > bank.options_.max_patches)
    s.add_part();
  s.columns = features.dim(1);
  const GridSize grid = outputs.grid();
  s.middle.resize(s.columns);
  s.insert(features, grid, is_new ? &name : nullptr);
  for (std::size_t y = grid.rows / 4; y < grid.rows - grid.rows / 4; ++y) {
    for (std::size_t x = grid.columns / 4; x < grid.columns - grid.columns / 4; ++x) {
      const float* const row = features.view().row(y * grid.columns + x);
      for (std::size_t c = 0; c < s.columns; ++c) s.middle[c] += static_cast<double>(row[c]);
      s.num_middle += 1;
    }
  }
}

/// All of the view or, where there is no memory for it, nothing.
void AnomalyBuilder::State::insert(const Tensor<float>& features, GridSize grid, const std::string* name) {
  const std::size_t num_rows = of_image.size(), num_numbers = rows.size(), num_views = views.size();
  const auto image = static_cast<std::uint32_t>(bank.names_.size() - (name != nullptr ? 0 : 1));
  try {
    rows.insert(rows.end(), features.flat().begin(), features.flat().end());
    of_image.insert(of_image.end(), features.dim(0), image);
    if (name == nullptr) return;
    views.push_back({.image = image, .first_row = num_rows, .grid = grid});
    bank.names_.push_back(*name);
  } catch (...) {
    rows.resize(num_numbers);
    of_image.resize(num_rows);
    views.resize(num_views);
    throw;
  }
}

/// The first principal component, towards the middle of the images.
void AnomalyBuilder::State::find_background() {
  PcaAccumulator pca;
  pca.add({rows.data(), Shape{of_image.size(), columns}});
  const PrincipalComponents found = pca.fit(1);
  double side = 0;
  for (std::size_t c = 0; c < columns; ++c)
    side += (middle[c] / num_middle - static_cast<double>(found.mean.data()[c])) *
            static_cast<double>(found.components.data()[c]);
  bank.background_ = Tensor<float>(Shape{2, columns});
  for (std::size_t c = 0; c < columns; ++c) {
    bank.background_.data()[c] = found.mean.data()[c];
    bank.background_.data()[columns + c] =
        side < 0 ? -found.components.data()[c] : found.components.data()[c];
  }
}

/// Adds the rows collected so far to the bank and reduces it to its size.
void AnomalyBuilder::State::add_part() {
  if (of_image.empty()) return;
  if (bank.options_.foreground && bank.background_.empty()) find_background();
  const std::size_t num_before = bank.of_image_.size();
  std::vector<std::uint32_t> owners = bank.of_image_;
  std::vector<std::size_t> added;  // rows
  for (std::size_t i = 0; i < of_image.size(); ++i) {
    if (!is_foreground({rows.data() + i * columns, columns}, bank.background_)) continue;
    added.push_back(i);
    owners.push_back(of_image[i]);
  }
  VIT_CHECK(!owners.empty(), kWhere, "no patch of the good images is foreground");
  bank.num_seen_ += of_image.size();
  Tensor<float> all(Shape{owners.size(), columns});
  if (num_before != 0) std::ranges::copy(bank.patches_.flat(), all.data());
  for (std::size_t i = 0; i < added.size(); ++i)
    std::copy_n(rows.data() + added[i] * columns, columns, all.view().row(num_before + i));
  const CoresetSize& size = bank.options_.coreset;
  const std::size_t wanted =
      size.count != 0
          ? size.count
          : static_cast<std::size_t>(std::ceil(size.fraction * static_cast<double>(bank.num_seen_)));
  const std::vector<std::size_t> chosen =
      choose_coreset(all, std::clamp<std::size_t>(wanted, 1, owners.size()), threads());
  bank.patches_ = Tensor<float>(Shape{chosen.size(), columns});
  bank.of_image_.resize(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::copy_n(all.view().row(chosen[i]), columns, bank.patches_.view().row(i));
    bank.of_image_[i] = owners[chosen[i]];
  }
  all = {};
  bank.prepare();
  score_part();
  rows.clear();
  of_image.clear();
  views.clear();
}

/// Each image of this part by the patches of all others.
void AnomalyBuilder::State::score_part() {
  for (const View& view : views) {
    const auto own = std::equal_range(bank.of_image_.begin(), bank.of_image_.end(), view.image);
    const auto begin = static_cast<std::size_t>(own.first - bank.of_image_.begin());
    const auto end = static_cast<std::size_t>(own.second - bank.of_image_.begin());
    if (end - begin == bank.of_image_.size()) continue;  // no patch of another
    const TensorView<const float> features(rows.data() + view.first_row * columns,
                                           Shape{view.grid.rows * view.grid.columns, columns});
    bank.held_out_.push_back(bank.judge(features, view.grid, begin, end, threads()).score);
  }
}

AnomalyModel AnomalyBuilder::build() {
  VIT_CHECK(!parts_of(state_, kWhere).bank.names_.empty(), kWhere, "no good image was added");
  state_->add_part();
  state_->bank.set_quantile();
  AnomalyModel bank = std::move(state_->bank);
  state_.reset();
  return bank;
}

}  // namespace vit
