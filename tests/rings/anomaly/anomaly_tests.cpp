// Banks of good patches: scores against their definition, files, maps against scipy.
#include "vit/anomaly.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/rng.h"
#include "tests/support/shared_data.h"
#include "vit/config/output_table.h"
#include "vit/session.h"

TEST_SUITE_BEGIN("anomaly");

namespace vit {
namespace {

const std::shared_ptr<const Model>& tiny_model() {
  static const auto model = Model::random(
      "vit_tiny_patch16_224",
      {.overrides = {{"embed_dim", "24"}, {"num_heads", "2"}, {"depth", "2"}, {"img_size", "80"}}});
  return model;
}

/// Pixels (1, 3, 80, 80) of a part that is alike in every image, with a defect or without.
Tensor<float> part(unsigned seed, bool is_defective = false) {
  test::Rng rng(11);
  Tensor<float> pixels = rng.tensor(Shape{1, 3, 80, 80});
  test::Rng noise(seed);
  for (float& value : pixels.flat()) value += noise.uniform(-0.05f, 0.05f);
  if (is_defective) {
    for (std::size_t y = 32; y < 48; ++y) std::fill_n(pixels.data() + 80 * y + 16, 16, 3.0f);
  }
  return pixels;
}

Session make_session() {
  return Session(tiny_model(), {.threads = 1});
}

void add_parts(AnomalyBuilder& builder, unsigned first, unsigned count) {
  Session session = make_session();
  Outputs outputs;
  for (unsigned i = first; i < first + count; ++i) {
    session.forward(part(i), builder.request(), outputs);
    builder.add(outputs[0], "good/" + std::to_string(i));
  }
}

AnomalyModel build(AnomalyOptions options, unsigned count = 6) {
  options.threads = 1;
  AnomalyBuilder builder(make_session(), std::move(options));
  add_parts(builder, 0, count);
  return builder.build();
}

AnomalyResult judge(const AnomalyModel& bank, const Tensor<float>& pixels, int threads = 1) {
  Session session = make_session();
  Outputs outputs;
  session.forward(pixels, bank.request(*tiny_model()), outputs);
  return bank.score(outputs[0], threads);
}

bool same(const AnomalyResult& a, const AnomalyResult& b) {
  return a.score == b.score && a.threshold == b.threshold &&
         std::ranges::equal(a.distances.flat(), b.distances.flat());
}

}  // namespace

TEST_CASE("anomaly: a defect is found where it is, and a good part is good") {
  for (const AnomalyScore score :
       {AnomalyScore::top_percent, AnomalyScore::maximum, AnomalyScore::reweighted}) {
    CAPTURE(to_string(score));
    const AnomalyModel bank = build({.score = score});
    CHECK(bank.num_patches() == 6 * 25);
    REQUIRE(bank.held_out_scores().size() == 6);
    CHECK(bank.threshold() == *std::ranges::max_element(bank.held_out_scores()));  // ceil(0.95 x 6) = 6
    CHECK(bank.confidence() == doctest::Approx(1 - std::pow(0.95, 6)).epsilon(1e-12));
    const AnomalyResult bad = judge(bank, part(99, true));
    CHECK(bad.is_anomalous() == true);
    CHECK(std::ranges::max_element(bad.distances.flat()) - bad.distances.flat().begin() == 2 * 5 + 1);
    CHECK(bad.score > 2 * judge(bank, part(98)).score);
    CHECK(judge(bank, part(3)).score < 1e-3f);  // it is in the bank; a root of rounding errors if Euclidean
  }
}

TEST_CASE("anomaly: held-out scores are those of banks without the image") {
  for (const AnomalyScore score : {AnomalyScore::top_percent, AnomalyScore::reweighted}) {
    AnomalyBuilder others(make_session(), {.score = score, .threads = 1});
    add_parts(others, 1, 5);
    CHECK(build({.score = score}).held_out_scores()[0] == judge(others.build(), part(0)).score);
  }
}

TEST_CASE("anomaly: results have the same bits for any number of threads, and after a file") {
  const AnomalyModel bank =
      build({.layers = {0, 1}, .neighborhood = 3, .coreset = {.fraction = 0.3}, .foreground = true});
  CHECK(bank.num_features() == 48);
  CHECK(bank.num_patches() <= 45);
  const AnomalyResult once = judge(bank, part(99, true));
  CHECK(same(once, judge(bank, part(99, true), 3)));
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "bank.safetensors";
  bank.save(path);
  const AnomalyModel loaded = AnomalyModel::load(path);
  CHECK(same(once, judge(loaded, part(99, true))));
  CHECK(loaded.num_patches_seen() == 150);
  CHECK(std::ranges::equal(loaded.images(), bank.images()));
  CHECK(loaded.confidence() == bank.confidence());
}

TEST_CASE("anomaly: images are added to a bank, and parts of a large one are joined") {
  SUBCASE("adding gives the bank of all images") {
    AnomalyBuilder more = AnomalyBuilder::resume(make_session(), build({}, 4), 1);
    add_parts(more, 4, 2);
    const AnomalyModel bank = more.build();
    CHECK(bank.num_patches() == 150);
    CHECK(bank.held_out_scores().size() == 6);
    CHECK(same(judge(bank, part(99, true)), judge(build({}), part(99, true))) == false);  // thresholds differ
    CHECK(judge(bank, part(99, true)).score == judge(build({}), part(99, true)).score);
  }
  SUBCASE("a bound of rows at a time") {
    const AnomalyModel bank = build({.coreset = {.count = 40}, .max_patches = 60});
    CHECK(bank.num_patches() == 40);
    CHECK(bank.num_patches_seen() == 150);
    CHECK(judge(bank, part(99, true)).score > 2 * judge(bank, part(98)).score);
  }
  SUBCASE("a threshold of the caller") {
    for (const float wrong : {std::nanf(""), -1.0f, std::numeric_limits<float>::infinity()})
      CHECK_ERROR(ErrorKind::argument, ("threshold"), build({}).with_threshold(wrong));
    CHECK_ERROR(ErrorKind::argument, ("score"), build({.score = static_cast<AnomalyScore>(3)}));
    const AnomalyModel bank = build({}).with_threshold(0.25f).with_source("by hand");
    CHECK(bank.threshold() == 0.25f);
    CHECK(bank.confidence() == 0);
    CHECK(bank.source() == "by hand");
    CHECK(bank.held_out_scores().size() == 6);
  }
  SUBCASE("one image has no threshold") {
    const AnomalyModel bank = build({}, 1);
    CHECK_FALSE(bank.threshold().has_value());
    CHECK_FALSE(judge(bank, part(99, true)).is_anomalous().has_value());
  }
  SUBCASE("views of one image are held out together") {
    AnomalyBuilder builder(make_session(), {.threads = 1});
    Session session = make_session();
    Outputs outputs;
    for (const char* name : {"a", "a", "b"}) {
      session.forward(part(1), builder.request(), outputs);
      builder.add(outputs[0], name);
    }
    CHECK(builder.build().held_out_scores().size() == 2);
  }
}

TEST_CASE("anomaly: a threshold that was given stays when images are added, also from a file") {
  const test::TemporaryFolder folder;
  const auto path = folder.path() / "bank.safetensors";
  build({}).with_threshold(0.125f).save(path);
  AnomalyBuilder builder = AnomalyBuilder::resume(make_session(), AnomalyModel::load(path), 1);
  add_parts(builder, 6, 2);
  const AnomalyModel bank = builder.build();
  CHECK(bank.threshold() == 0.125f);
  CHECK(bank.confidence() == 0);
  CHECK(bank.held_out_scores().size() == 8);
  AnomalyBuilder other = AnomalyBuilder::resume(make_session(), build({}).with_threshold(std::nullopt), 1);
  add_parts(other, 6, 2);
  CHECK(other.build().confidence() > 0);  // the quantile again
  // a bank of before says only that its threshold has no confidence
  std::string bytes = test::read_text(path);
  const std::string_view member = "\\\"threshold_given\\\": true, ";
  const std::size_t at = bytes.find(member);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, member.size(), member.size(), ' ');
  test::write_text(path, bytes);
  CHECK(AnomalyModel::load(path).is_threshold_given());
}

TEST_CASE("anomaly: what cannot be is refused by name") {
  CHECK_ERROR(ErrorKind::argument, ("layer 2", "0 to 1"), AnomalyBuilder(make_session(), {.layers = {2}}));
  CHECK_ERROR(ErrorKind::argument, ("odd"), AnomalyBuilder(make_session(), {.neighborhood = 2}));
  CHECK_ERROR(ErrorKind::argument, ("fraction"),
              AnomalyBuilder(make_session(), {.coreset = {.fraction = 0}}));
  CHECK_ERROR(ErrorKind::argument, ("quantile"), AnomalyBuilder(make_session(), {.quantile = 1}));
  CHECK_ERROR(ErrorKind::argument, ("no good image"), AnomalyBuilder(make_session()).build());
  for (const float threshold : {std::nanf(""), std::numeric_limits<float>::infinity(), -0.5f})
    CHECK_ERROR(ErrorKind::argument, ("a threshold is"), build({}).with_threshold(threshold));
  const AnomalyModel bank = build({});
  CHECK_ERROR(
      ErrorKind::mismatch, ("another size"),
      AnomalyBuilder::resume(
          Session(tiny_model(), {.input_size = InputSize{.kind = InputSize::Kind::native}}), build({})));
  SUBCASE("another model") {
    const auto shipped = Model::load(test::data_path("model"));
    Session session(shipped);
    AnomalyBuilder builder(session);
    Outputs outputs;
    const Image black(32, 32);
    session.run(black, builder.request(), outputs);
    builder.add(outputs[0], "black");
    CHECK_ERROR(ErrorKind::mismatch, (shipped->report().fingerprint, "vit_tiny_patch16_224"),
                builder.build().request(*tiny_model()));
  }
  SUBCASE("features that are not finite") {
    AnomalyBuilder builder(make_session());
    Session session = make_session();
    Outputs outputs;
    session.forward(part(0), builder.request(), outputs);
    internal::OutputWriter(outputs).find(Output::tokens).data()[40] = std::nanf("");
    CHECK_ERROR(ErrorKind::argument, ("finite"), builder.add(outputs[0], "a"));
  }
  SUBCASE("damaged files") {
    const test::TemporaryFolder folder;
    const auto path = folder.path() / "bank.safetensors";
    bank.save(path);
    const std::string good = test::read_text(path);
    const auto with = [&](std::string_view from, std::string_view to) {
      test::write_text(path, test::replaced(good, from, to));
      return test::error_of([&] { AnomalyModel::load(path); });
    };
    CHECK(with("vit_anomaly", "vit_anomalx").value().kind() == ErrorKind::format);
    CHECK(with("\\\"size\\\": \\\"model\\\"", "\\\"size\\\": \\\"modem\\\"").value().kind() ==
          ErrorKind::format);
    for (const auto& [from, to] : {std::pair("coreset_fraction\\\": 1", "coreset_fraction\\\": 2"),
                                   {"quantile\\\": 0.95", "quantile\\\": 1.95"},
                                   {"confidence\\\": 0", "confidence\\\": 7"}})
      CHECK(with(from, to).value().kind() == ErrorKind::format);
    CHECK(with("top-percent", "top-permill").value().kind() == ErrorKind::unsupported);
    CHECK(with("\\\"format\\\": 1", "\\\"format\\\": 2").value().kind() == ErrorKind::unsupported);
    std::string truncated = good;
    truncated.pop_back();
    test::write_text(path, truncated);
    CHECK_ERROR(ErrorKind::format, ("bank.safetensors"), AnomalyModel::load(path));
  }
}

TEST_CASE("anomaly: maps are bilinear between patch centers, and smoothed as by scipy") {
  Tensor<float> distances(Shape{3, 4});
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 4; ++c)
      distances.data()[4 * r + c] = static_cast<float>(static_cast<double>((3 * r + 5 * c) % 7) / 7);
  }
  const SourceMap map{.left = 2.0, .top = -1.5, .x_step = 0.5, .y_step = 0.75};
  struct Row {
    double sigma;
    double values[4];  // at (0, 0), (7, 13), (29, 25), (15, 3)
  };
  for (const Row& row :
       {Row{0, {0.0, 0.5204081754295193, 0.04081632835524421, 0.47959184149901074}},
        Row{4, {0.05969648935868854, 0.467317212589504, 0.17105155638727496, 0.4591883196101922}},
        Row{1.3, {0.00010181995649256458, 0.5144301642550511, 0.06685308175257428, 0.47851793843835255}}}) {
    CAPTURE(row.sigma);
    const Tensor<float> result = anomaly_map(distances, {.height = 30, .width = 26}, map, 14, row.sigma);
    const auto at = [&](std::size_t y, std::size_t x) {
      return static_cast<double>(result.view().row(y)[x]);
    };
    CHECK(std::abs(at(0, 0) - row.values[0]) < 2e-7);
    CHECK(std::abs(at(7, 13) - row.values[1]) < 2e-7);
    CHECK(std::abs(at(29, 25) - row.values[2]) < 2e-7);
    CHECK(std::abs(at(15, 3) - row.values[3]) < 2e-7);
  }
}

}  // namespace vit
