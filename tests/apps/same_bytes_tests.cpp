// One input and one option through the program, the C++ interface and the C interface: the same bytes. Python
// passes its options to the C interface.
#include <doctest/doctest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/c.h"
#include "vit/position/rope.h"
#include "vit/text_encoder.h"
#include "vit/vit.h"

using namespace vit::test;

namespace {

template <typename T, void (*Free)(T*)>
struct Release {
  void operator()(T* handle) const { Free(handle); }
};
template <typename T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Release<T, Free>>;

/// What one comparison requests of the three interfaces.
struct Options {
  vit::ModelOptions model{};
  vit::SessionOptions session{};
  vit_model_options c_model{};
  vit_session_options c_session{};
  bool normalize = false;

  Options() {
    c_model.struct_size = sizeof c_model;
    c_session.struct_size = sizeof c_session;
  }
};

struct SharedOption {
  std::vector<std::string> arguments;
  std::function<void(Options&)> set;
};

std::vector<SharedOption> shared_options() {
  return {
      {{}, [](Options&) {}},
      {{"--normalize"}, [](Options& o) { o.normalize = true; }},
      {{"--threads", "3"}, [](Options& o) { o.session.threads = o.c_session.threads = 3; }},
      {{"--batch", "1"}, [](Options& o) { o.session.batch = o.c_session.batch = 1; }},
      {{"--size", "48x32"},
       [](Options& o) {
         o.session.input_size = {vit::InputSize::Kind::fixed, 48, 32};
         o.c_session.size_kind = VIT_SIZE_FIXED;
         o.c_session.height = 48;
         o.c_session.width = 32;
       }},
      {{"--size", "native"},
       [](Options& o) {
         o.session.input_size = {vit::InputSize::Kind::native};
         o.c_session.size_kind = VIT_SIZE_NATIVE;
       }},
      {{"--dtype", "bfloat16"},
       [](Options& o) {
         o.model.precision = vit::Precision::bfloat16;
         o.c_model.precision = VIT_PRECISION_BFLOAT16;
       }},
      {{"--dtype", "int8"},
       [](Options& o) {
         o.model.precision = vit::Precision::int8;
         o.c_model.precision = VIT_PRECISION_INT8;
       }},
      {{"--kernels", "reference"}, [](Options& o) { o.model.kernels = o.c_model.kernels = "reference"; }},
      {{"--resampler", "torchvision"},
       [](Options& o) {
         o.model.resampler = vit::ResamplerChoice::torchvision;
         o.c_model.resampler = VIT_RESAMPLER_TORCHVISION;
       }},
      {{"--pillow", "12.1"},
       [](Options& o) {
         o.model.pillow = vit::PillowRelease::up_to_12_1;
         o.c_model.pillow = VIT_PILLOW_12_1;
       }},
      {{"--exif", "ignore"},
       [](Options& o) {
         o.model.exif = vit::ExifChoice::ignore;
         o.c_model.exif = VIT_EXIF_IGNORE;
       }},
      {{"--channels", "bgr"},
       [](Options& o) {
         o.model.channels = vit::ChannelOrder::bgr;
         o.c_model.channels = VIT_CHANNELS_BGR;
       }},
      {{"--pad", "1,2,3"},
       [](Options& o) {
         o.model.square_pad_color = {1, 2, 3};
         o.c_model.pads_to_square = 1;
         o.c_model.pad_color[0] = 1;
         o.c_model.pad_color[1] = 2;
         o.c_model.pad_color[2] = 3;
       }},
      {{"--rope-scaling", "linear", "--size", "64"},
       [](Options& o) {
         o.model.rope_scaling = vit::position::parse_rope_scaling("linear");
         o.c_model.rope_scaling = "linear";
         o.session.input_size = {vit::InputSize::Kind::fixed, 64, 64};
         o.c_session.size_kind = VIT_SIZE_FIXED;
         o.c_session.height = o.c_session.width = 64;
       }},
  };
}

std::vector<float> by_program(const std::vector<std::string>& arguments) {
  const TestFolder folder;
  std::vector<std::string> all = arguments;
  all.insert(all.end(), {"--output", folder / "x.npy"});
  const RunResult result = run_vit(all);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  return parse_npy(read_text(folder / "x.npy")).floats();
}

std::vector<float> by_session(const std::string& model, const std::vector<std::string>& images,
                              const Options& options) {
  vit::Session session(vit::Model::load(model, options.model), options.session);
  std::vector<float> out;
  for (const std::string& image : images) {
    vit::Outputs outputs;
    session.run(std::filesystem::path(image), vit::Output::pooled, outputs);
    const std::span<const float> pooled = outputs[vit::Output::pooled].flat();
    std::vector<float> vector(pooled.begin(), pooled.end());
    if (options.normalize) vit::normalize_vector(vector);
    out.insert(out.end(), vector.begin(), vector.end());
  }
  return out;
}

std::vector<float> numbers_of(const vit_results* results, std::uint32_t name) {
  vit_array array{};
  REQUIRE(vit_results_all(results, name, 0, &array) == VIT_OK);
  std::size_t count = 1;
  for (std::uint32_t i = 0; i < array.ndim; ++i) count *= array.shape[i];
  const auto* const data = static_cast<const float*>(array.data);
  return {data, data + count};
}

std::vector<float> by_c(const std::string& path, const std::vector<std::string>& images,
                        const Options& options) {
  vit_model* model = nullptr;
  REQUIRE(vit_model_load(path.c_str(), &options.c_model, &model) == VIT_OK);
  const Handle<vit_model, vit_model_free> model_owner(model);
  vit_session* session = nullptr;
  REQUIRE(vit_session_create(model, &options.c_session, &session) == VIT_OK);
  const Handle<vit_session, vit_session_free> session_owner(session);
  vit_results* results = nullptr;
  REQUIRE(vit_results_create(&results) == VIT_OK);
  const Handle<vit_results, vit_results_free> results_owner(results);
  std::vector<vit_input> inputs;
  for (const std::string& image : images) {
    vit_input input{};
    input.struct_size = sizeof input;
    input.path = image.c_str();
    inputs.push_back(input);
  }
  vit_request request{};
  request.struct_size = sizeof request;
  request.features = VIT_POOLED;
  request.normalize = options.normalize ? 1 : 0;
  REQUIRE(vit_session_run(session, inputs.data(), inputs.size(), &request, results) == VIT_OK);
  return numbers_of(results, VIT_POOLED);
}

void check_same_bytes(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  CHECK(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

std::vector<float> texts_by_c(const std::string& path, const std::vector<std::string>& texts,
                              bool normalize) {
  vit_text_tower* tower = nullptr;
  REQUIRE(vit_text_tower_load(path.c_str(), nullptr, &tower) == VIT_OK);
  const Handle<vit_text_tower, vit_text_tower_free> tower_owner(tower);
  vit_text_encoder* encoder = nullptr;
  REQUIRE(vit_text_encoder_create(tower, 0, &encoder) == VIT_OK);
  const Handle<vit_text_encoder, vit_text_encoder_free> encoder_owner(encoder);
  vit_results* results = nullptr;
  REQUIRE(vit_results_create(&results) == VIT_OK);
  const Handle<vit_results, vit_results_free> results_owner(results);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  REQUIRE(vit_text_encoder_run(encoder, pointers.data(), nullptr, pointers.size(), normalize ? 1 : 0, results,
                               nullptr) == VIT_OK);
  return numbers_of(results, VIT_TEXT);
}

}  // namespace

TEST_CASE("same bytes: images, by program, C++ and C, with every option that they share") {
  const std::string model = golden_model("hf-dinov3");
  const std::vector<std::string> images{data_path("images/cat_tabby.jpg").string(),
                                        data_path("images/deer_fawn.png").string()};
  for (const SharedOption& option : shared_options()) {
    std::vector<std::string> arguments{"embed", "--model", model, "--features", "pooled"};
    arguments.insert(arguments.end(), images.begin(), images.end());
    arguments.insert(arguments.end(), option.arguments.begin(), option.arguments.end());
    CAPTURE(arguments.back());
    Options options;
    option.set(options);
    const std::vector<float> numbers = by_program(arguments);
    check_same_bytes(numbers, by_session(model, images, options));
    check_same_bytes(numbers, by_c(model, images, options));
  }
}

TEST_CASE("same bytes: texts, by program, C++ and C, one of them without tokens") {
  for (const char* name : {"hf-tipsv2", "hf-siglip", "hf-clip"}) {
    CAPTURE(name);
    const std::string model = data_path(std::string("golden/text/") + name).string();
    const std::vector<std::string> texts{"", "a cat"};
    for (const bool normalize : {false, true}) {
      std::vector<std::string> arguments{"embed", "--model", model, "--text", texts[0], "--text", texts[1]};
      if (normalize) arguments.push_back("--normalize");
      const std::vector<float> numbers = by_program(arguments);
      vit::TextEncoder encoder(model);
      std::vector<float> expected;
      for (const std::string& text : texts) {
        const vit::Tensor<float> vector = encoder.encode(text);
        std::vector<float> copy(vector.flat().begin(), vector.flat().end());
        if (normalize) vit::normalize_vector(copy);
        expected.insert(expected.end(), copy.begin(), copy.end());
      }
      check_same_bytes(numbers, expected);
      check_same_bytes(numbers, texts_by_c(model, texts, normalize));
    }
  }
}
