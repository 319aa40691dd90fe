// What config.json of SAM 3 says of its parts: done with the numbers of the library, or refused by name.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/rings/prompts/prompt_parts.h"

TEST_SUITE_BEGIN("prompts");

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// A text in a part of config.json and what takes its place.
struct Change {
  const char *whole, *part, *from, *to;
};

/// Writes the golden model with its configuration changed.
void write_changed(const Change& change, const test::TemporaryFolder& folder) {
  const fs::path golden = test::data_path("golden/prompts/sam3");
  for (const fs::directory_entry& file : fs::directory_iterator(golden)) {
    if (file.path().filename() != "config.json")
      fs::copy_file(file.path(), folder.path() / file.path().filename());
  }
  std::string config = test::read_text(golden / "config.json");
  std::size_t at = 0;
  for (const std::string& name :
       {text('"', change.whole, '"'), text('"', change.part, '"'), std::string(change.from)}) {
    at = config.find(name, at);
    REQUIRE(at != std::string::npos);
  }
  config.replace(at, std::string_view(change.from).size(), change.to);
  folder.write("config.json", config);
}

constexpr const char *kStable = "\"dynamic_multimask_via_stability\": true",
                     *kNotStable = "\"dynamic_multimask_via_stability\": false",
                     *kEps = "\"layer_norm_eps\": 1e-06", *kGelu = "\"hidden_act\": \"gelu\"",
                     *kRelu = "\"hidden_act\": \"relu\"";

TEST_CASE("prompts: the norms of a mask and the choice of one are the configuration's") {
  // of transformers 5.24 in float64, for the last prompt of the golden model
  struct Case {
    Change change;
    bool multimask;
    std::vector<double> scores;
    double first_logit;
  };
  const Case kCases[] = {
      {{"tracker_config", "mask_decoder_config", kStable, kStable}, false, {0.8037612}, 0.45804902},
      {{"tracker_config", "mask_decoder_config", kStable, "\"unused\": 0"}, false, {0.8037612}, 0.45804902},
      {{"tracker_config", "mask_decoder_config", kStable, kNotStable}, false, {0.69327945}, -0.76848501},
      {{"tracker_config", "mask_decoder_config", kStable, kNotStable},
       true,
       {0.8037612, 0.77792863, 0.36698557},
       0.45804902},
      {{"tracker_config", "prompt_encoder_config", kEps, "\"layer_norm_eps\": 0.1"},
       true,
       {0.80058521, 0.7728711, 0.36440272},
       0.44175318},
      {{"tracker_config", "prompt_encoder_config", kGelu, "\"hidden_act\": \"gelu_python\""},
       true,
       {0.8037612, 0.77792863, 0.36698557},
       0.45804902}};
  const test::FixtureTensors expected(test::data_path("golden/prompts/sam3/expected.safetensors"));
  const Tensor<float> mask = expected.floats("drawing.P3.input_masks");
  for (const Case& c : kCases) {
    CAPTURE(c.change.to);
    const test::TemporaryFolder folder;
    write_changed(c.change, folder);
    PromptSegmenter segmenter(PromptModel::load(folder.path()), {.threads = 1});
    const auto image =
        segmenter.encode(test::data_path("golden/prompts/images/drawing.png"), PromptUse::objects);
    const ObjectMasks found = segmenter.segment_object(*image, {.points = {{.x = 33, .y = 25}}, .mask = mask},
                                                       {.multimask = c.multimask});
    REQUIRE(found.scores.size() == c.scores.size());
    for (std::size_t i = 0; i < c.scores.size(); ++i)
      CHECK(std::abs(static_cast<double>(found.scores[i]) - c.scores[i]) < 1e-5);
    CHECK(std::abs(static_cast<double>(found.logits.data()[0]) - c.first_logit) < 1e-5);
  }
}

TEST_CASE("prompts: a mask that is not stable gives way to the best of the others, if that is asked for") {
  ClickOutput out{.masks = Tensor<float>(Shape{4, 2, 2}), .ious = {0.9f, 0.2f, 0.7f, 0.5f}, .object = 0};
  for (const char* const to : {kStable, kNotStable}) {
    CAPTURE(to);
    const test::TemporaryFolder folder;
    write_changed({"tracker_config", "mask_decoder_config", kStable, to}, folder);
    const auto model = PromptModel::load(folder.path());
    const ClickDecoder& decoder = *PromptParts::of(*model).clicks;
    for (std::size_t i = 0; i < 4; ++i) out.masks.data()[i] = i < 2 ? 5.0f : 0.01f;  // half are near 0
    CHECK(decoder.choose(out) == (to == kStable ? 2 : 0));
    for (std::size_t i = 0; i < 4; ++i) out.masks.data()[i] = i < 2 ? 5.0f : -5.0f;
    CHECK(decoder.choose(out) == 0);
  }
}

TEST_CASE("prompts: what a configuration of SAM 3 can say and is not implemented is named") {
  struct Refused {
    Change change;
    const char *where, *expected;
  };
  constexpr const char *kLevels =
                           "\"scale_factors\": [\n        4.0,\n        2.0,\n        1.0,\n        0.5",
                       *kLevelsKey = "vision_config.scale_factors",
                       *kAllLevels = "only [4, 2, 1, 0.5] is implemented";
  for (const Refused& refused :
       {Refused{{"detector_config", "geometry_encoder_config", kRelu, kGelu},
                "detector_config.geometry_encoder_config.hidden_act is \"gelu\"",
                "\"relu\" is"},
        Refused{{"detector_config", "detr_encoder_config", kRelu, "\"hidden_act\": \"silu\""},
                "detector_config.detr_encoder_config.hidden_act is \"silu\"",
                "\"relu\" is"},
        Refused{{"detector_config", "detr_decoder_config", kRelu, kGelu},
                "detector_config.detr_decoder_config.hidden_act is \"gelu\"",
                "\"relu\" is"},
        Refused{{"tracker_config", "prompt_encoder_config", kGelu, kRelu},
                "tracker_config.prompt_encoder_config.hidden_act is \"relu\"",
                "\"gelu\", \"gelu_python\" are"},
        Refused{{"detector_config", "vision_config", kLevels, "\"scale_factors\": [4.0, 2.0, 1.0"},
                kLevelsKey,
                kAllLevels},
        Refused{{"detector_config", "vision_config", kLevels, "\"scale_factors\": [2.0, 2.0, 1.0, 0.5"},
                "are [2, 2, 1, 0.5]",
                kAllLevels},
        Refused{{"detector_config", "vision_config", kLevels, "\"scale_factors\": [4, 2, 1, 0.5, 0.5"},
                kLevelsKey,
                kAllLevels}}) {
    CAPTURE(refused.where);
    const test::TemporaryFolder folder;
    write_changed(refused.change, folder);
    CHECK_ERROR(ErrorKind::unsupported, ("config.json", refused.where, refused.expected),
                PromptModel::load(folder.path()));
  }
  const test::TemporaryFolder folder;
  write_changed({"tracker_config", "prompt_encoder_config", kEps, "\"layer_norm_eps\": 2"}, folder);
  CHECK_ERROR(ErrorKind::format, ("config.json", "layer_norm_eps of the prompt encoder", "got 2"),
              PromptModel::load(folder.path()));
}

TEST_CASE(
    "prompts: a configuration of SAM 3 without activations and levels has the defaults of its classes") {
  for (const Change& change :
       {Change{"detector_config", "geometry_encoder_config", "\"hidden_act\"", "\"unused\""},
        Change{"detector_config", "detr_encoder_config", "\"hidden_act\"", "\"unused\""},
        Change{"detector_config", "detr_decoder_config", "\"hidden_act\"", "\"unused\""},
        Change{"tracker_config", "prompt_encoder_config", "\"hidden_act\"", "\"unused\""},
        Change{"detector_config", "vision_config", "\"scale_factors\"", "\"unused\""}}) {
    CAPTURE(change.part);
    const test::TemporaryFolder folder;
    write_changed(change, folder);
    CHECK(PromptModel::load(folder.path())->takes(PromptUse::both));
  }
}

}  // namespace
}  // namespace vit

TEST_SUITE_END();
