// Vision towers of language models, as files of their own and inside whole models, compared tensor by tensor
// with float64 results of the library that defines them: tokens and visual tokens, from the pixels that its
// processor gives and from images.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/golden_models.h"
#include "tests/support/numbers.h"
#include "tests/support/shared_data.h"
#include "vit/checkpoint.h"
#include "vit/config/output_table.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/session.h"

namespace vit {
using namespace internal;
namespace {

namespace fs = std::filesystem;

/// (row, column) of every patch in the order of the library's tokens.
/// Numbers of any type that the reference data have: positions are integers in some.
std::vector<double> numbers_of(const TensorEntry& entry) {
  if (entry.dtype_name != "I64") return to_double(entry);
  std::vector<std::int64_t> integers(entry.num_elements());
  entry.bytes.read(0, std::as_writable_bytes(std::span(integers)));
  return {integers.begin(), integers.end()};
}

std::vector<GridSize> positions_of(const TensorFile& expected, const std::string& input) {
  const std::vector<double> numbers = numbers_of(expected.at(input + ".positions"));
  std::vector<GridSize> out;
  for (std::size_t i = 0; i < numbers.size(); i += 2)
    out.push_back({static_cast<std::size_t>(numbers[i]), static_cast<std::size_t>(numbers[i + 1])});
  return out;
}

GridSize grid_of(const std::vector<GridSize>& positions) {
  GridSize grid;
  for (const GridSize& p : positions)
    grid = {std::max(grid.rows, p.rows + 1), std::max(grid.columns, p.columns + 1)};
  return grid;
}

/// The library's pixels as planes (1, 3, H, W): images as they are; patches (channel, frame, y, x) or (y, x,
/// channel) at their places.
Tensor<float> pixels_of(const TensorFile& expected, const std::string& input, std::size_t patch) {
  const TensorEntry& entry = expected.at(input + ".pixels");
  const std::vector<std::size_t>& shape = entry.shape;
  const std::vector<double> numbers = numbers_of(entry);
  if (shape.size() >= 4 && shape[0] == 1) {  // (1, channels, H, W), or (1, frames, channels, H, W) of a clip
    const std::size_t num_planes = shape.size() == 5 ? shape[1] * shape[2] : shape[1];
    Tensor<float> planes(Shape{1, num_planes, shape[shape.size() - 2], shape.back()});
    std::ranges::transform(numbers, planes.data(), [](double x) { return static_cast<float>(x); });
    return planes;
  }
  const std::vector<GridSize> positions = positions_of(expected, input);
  const GridSize grid = grid_of(positions);
  const std::size_t height = grid.rows * patch, width = grid.columns * patch, area = patch * patch;
  const std::size_t per_patch = numbers.size() / positions.size();
  const bool channel_last = shape.size() == 3;
  Tensor<float> planes(Shape{1, 3, height, width});
  for (std::size_t k = 0; k < positions.size(); ++k) {
    for (std::size_t i = 0; i < 3 * area; ++i) {
      const std::size_t channel = i / area, y = i % area / patch, x = i % patch;
      const std::size_t at = channel_last ? i % area * 3 + channel : channel * (per_patch / 3) + i % area;
      planes.data()[(channel * height + positions[k].rows * patch + y) * width +
                    positions[k].columns * patch + x] = static_cast<float>(numbers[k * per_patch + at]);
    }
  }
  return planes;
}

/// The place of each of the library's tokens in ours: row by row, the class token first. Tokens of cells lie
/// row by row in either.
std::vector<std::size_t> places_of(const TensorFile& expected, const std::string& input,
                                   std::size_t num_tokens) {
  const std::vector<GridSize> positions = positions_of(expected, input);
  const std::size_t columns = grid_of(positions).columns;
  std::vector<std::size_t> places(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) places[i] = i;
  if (num_tokens == positions.size()) {
    std::vector<std::size_t> patch_of(num_tokens);  // in the order of the pixels
    for (std::size_t i = 0; i < num_tokens; ++i)
      patch_of[i] = positions[i].rows * columns + positions[i].columns;
    places = patch_of;
    if (const TensorEntry* const windows = expected.find(input + ".window_index")) {
      const std::vector<double> groups = numbers_of(*windows);
      const std::size_t size = num_tokens / groups.size();
      for (std::size_t i = 0; i < num_tokens; ++i)
        places[i] = patch_of[static_cast<std::size_t>(groups[i / size]) * size + i % size];
    }
  }
  return places;
}

struct Named {
  std::string name;
  std::span<const float> found;
};

/// The largest error of a tensor of the reference, relative to its largest value.
double error_of(const TensorFile& expected, const std::string& input, const Named& result, bool class_last) {
  const TensorEntry* entry = expected.find(input + "." + result.name + ".f64");
  if (entry == nullptr) entry = expected.find(input + "." + result.name);
  if (entry == nullptr) return 0.0;
  const std::vector<double> numbers = numbers_of(*entry);
  REQUIRE(numbers.size() == result.found.size());
  const std::size_t width = entry->shape.back(), num_tokens = numbers.size() / width;
  std::vector<std::size_t> places(num_tokens);
  for (std::size_t i = 0; i < num_tokens; ++i) places[i] = i;
  if (result.name == "tokens" || result.name.starts_with("block")) {
    if (expected.find(input + ".positions") != nullptr) places = places_of(expected, input, num_tokens);
    const std::size_t num_patches =
        expected.find(input + ".positions") != nullptr ? positions_of(expected, input).size() : num_tokens;
    if (class_last && num_tokens == num_patches + 1)
      for (std::size_t i = 0; i < num_tokens; ++i) places[i] = i + 1 == num_tokens ? 0 : i + 1;
  }
  double largest = 0.0, error = 0.0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    largest = std::max(largest, std::abs(numbers[i]));
    const float found = result.found[places[i / width] * width + i % width];
    error = std::max(error, std::abs(static_cast<double>(found) - numbers[i]));
  }
  return error / largest;
}

/// Everything that the model has.
Request request_of(const ModelConfig& config) {
  Request request{Output::tokens};
  if (config.head.pooling != Pooling::none) request.add(Output::pooled);
  if (config.merger) request.add(Output::merged);
  for (std::size_t i = 0; i < config.encoder.depth; ++i) request.add({Output::block, i});
  for (std::size_t i = 0; config.merger && i < config.merger->deepstack.size(); ++i)
    request.add({Output::deepstack, i});
  return request;
}

std::vector<Named> results_of(Outputs& outputs) {
  std::vector<Named> results;
  for (const OutputTensor& output : internal::OutputWriter(outputs).tensors())
    results.push_back({to_string(output.key), output.values.flat()});
  return results;
}

constexpr double kTolerance = 5e-6;       // of the largest value, against float64
constexpr double kBlockTolerance = 2e-5;  // of single blocks, against float32

void check_results(const TensorFile& expected, const std::string& input, Outputs& outputs, bool class_last) {
  for (const Named& result : results_of(outputs)) {
    if (result.found.empty()) continue;
    CAPTURE(result.name);
    const double limit = result.name.starts_with("block") ? kBlockTolerance : kTolerance;
    CHECK(error_of(expected, input, result, class_last) <= limit);
  }
}

fs::path model_of(const fs::path& folder) {
  if (fs::exists(folder / "config.json") || fs::exists(folder / "params.json")) return folder;
  const fs::path bare = folder / "model.safetensors";
  return fs::exists(bare) ? bare : folder / "model.pth";
}

void check_tower(const fs::path& folder) {
  CAPTURE(folder.filename().string());
  const TensorFile expected = open_safetensors(folder / "expected.safetensors");
  const Json facts = load_json(folder / "case.json");
  const auto model = Model::load(model_of(folder));
  const bool class_last = model->config().family == "llama4";
  Session session(model, {.threads = 2});
  const Request request = request_of(model->config());
  const Json inputs = facts.at("inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string input(inputs[i].at("name").as_string());
    CAPTURE(input);
    Outputs outputs;
    const TensorEntry& pixels = expected.at(input + ".pixels");
    const bool is_clip = pixels.shape.size() == 5 && pixels.shape[1] > 1;  // of which there is no image
    session.forward(pixels_of(expected, input, model->config().patch.size), request, outputs);
    check_results(expected, input, outputs, class_last);
    const auto file = inputs[i].find("file");
    const bool is_by_hand = model->config().family == "gemma4";  // images scaled to few patches
    if (!file || !model->has_preprocess_config() || is_by_hand || is_clip) continue;
    session.run(folder / file->as_string(), request, outputs);
    if (model->config().library != "timm") check_results(expected, input, outputs, class_last);
  }
}

}  // namespace

TEST_CASE("towers: reference towers give the reference's tokens and visual tokens, from pixels and images") {
  SKIP_WITHOUT_SHARED("fixtures/towers");
  for (const fs::path& folder : test::folders_in(test::shared_path("fixtures/towers"))) {
    if (!fs::exists(folder / "case.json")) continue;
    SUBCASE(folder.filename().string().c_str()) {
      check_tower(folder);
    }
  }
}

TEST_CASE("towers: the golden towers give what their formulas give") {
  for (const fs::path& folder : test::folders_in(test::data_path("golden/towers")))
    SUBCASE(folder.filename().string().c_str()) {
      check_tower(folder);
    }
}

TEST_CASE("towers: images of several sizes, batches and threads give the same bits") {
  for (const fs::path& folder : test::folders_in(test::data_path("golden/towers"))) {
    CAPTURE(folder.filename().string());
    const auto model = Model::load(folder);
    const Request request = request_of(model->config());
    const TensorFile expected = open_safetensors(folder / "expected.safetensors");
    const Tensor<float> a = to_float(expected.at("a.pixels")), b = to_float(expected.at("b.pixels"));
    std::vector<TensorView<const float>> pixels;
    for (const Tensor<float>* image : {&a, &b, &a, &a, &b, &b, &a}) pixels.push_back(image->view()[0]);
    Session one(model, {.threads = 1, .batch = 1}), many(model, {.threads = 3, .batch = 4});
    BatchOutputs alone, together;
    one.run_pixels(pixels, request, alone);
    many.run_pixels(pixels, request, together);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      std::vector<OutputKey> keys(request.indexed().begin(), request.indexed().end());
      for (const Output output : {Output::tokens, Output::pooled, Output::merged})
        if (request.has(output)) keys.push_back(output);
      for (const OutputKey& key : keys)
        CHECK(std::ranges::equal(alone[i][key].flat(), together[i][key].flat()));
    }
  }
}

/// Bytes that this process has read from files so far.
std::size_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::size_t bytes = 0;
  io >> name >> bytes;
  return bytes;
}

TEST_CASE("towers: of a large file the bytes of the tower are read and no others") {
  const fs::path golden = test::data_path("golden/towers/mistral3");
  const test::ScratchFolder folder("tower-in-a-large-file");
  const fs::path file = folder.path() / "model.safetensors";
  fs::copy(golden / "config.json", folder.path() / "config.json");
  // another tensor of 4 GiB after those of the tower: a hole in the file
  std::ifstream in(golden / "model.safetensors", std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof(header_size));
  std::string header = bytes.substr(8, header_size);
  const std::size_t data_size = bytes.size() - 8 - header_size, hole = std::size_t{1} << 32;
  header.resize(header.rfind('}'));
  header +=
      ", \"language_model.layers.0.mlp.weight\": {\"dtype\": \"F32\", \"shape\": [1024, 1048576], "
      "\"data_offsets\": [" +
      std::to_string(data_size) + ", " + std::to_string(data_size + hole) + "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  header_size = header.size();
  {
    std::ofstream out(file, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header_size), sizeof(header_size));
    out << header << bytes.substr(bytes.size() - data_size);
  }
  fs::resize_file(file, 8 + header.size() + data_size + hole);
  const std::size_t before = bytes_read();
  const auto model = Model::load(folder.path());
  const std::size_t read = bytes_read() - before;
  if (before != 0) CHECK(read < 3 * bytes.size());
  const auto& notes = model->report().notes;
  CHECK(std::ranges::any_of(notes, [](const std::string& note) {
    return test::contains(note, "(Mistral3ForConditionalGeneration); 1 other tensors, 4294 MB, are not read");
  }));
}

TEST_CASE("towers: a folder with Mistral's own files gives what that of transformers gives") {
  const fs::path golden = test::data_path("golden/towers/mistral3");
  test::FileCopy copy(golden);
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"vision_tower.", "vision_encoder."},
      {"attention.q_proj", "attention.wq"},
      {"attention.k_proj", "attention.wk"},
      {"attention.v_proj", "attention.wv"},
      {"attention.o_proj", "attention.wo"},
      {"feed_forward.gate_proj", "feed_forward.w1"},
      {"feed_forward.down_proj", "feed_forward.w2"},
      {"feed_forward.up_proj", "feed_forward.w3"},
      {"multi_modal_projector.norm", "pre_mm_projector_norm"},
      {"multi_modal_projector.patch_merger", "patch_merger"},
      {"multi_modal_projector.linear_1", "vision_language_adapter.w_in"},
      {"multi_modal_projector.linear_2", "vision_language_adapter.w_out"}};
  std::vector<TensorToWrite> tensors;
  for (test::FileCopy::Entry& entry : copy.entries()) {
    for (const auto& [from, to] : kNames) {
      const std::size_t at = entry.name.find(from);
      if (at != std::string::npos) entry.name.replace(at, std::string(from).size(), to);
    }
    if (entry.name.find(".wq.") != std::string::npos || entry.name.find(".wk.") != std::string::npos) {
      const std::size_t rows = entry.shape[0], row = entry.bytes.size() / rows, head = rows / 2;
      const std::vector<std::byte> halves = entry.bytes;
      for (std::size_t i = 0; i < rows; ++i) {  // pairs of halves become neighbors
        const std::size_t from = i / head * head + i % 2 * (head / 2) + i % head / 2;
        std::copy_n(halves.data() + from * row, row, entry.bytes.data() + i * row);
      }
    }
    tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  const test::ScratchFolder folder("mistral");
  write_safetensors(folder.path() / "consolidated.safetensors", tensors);
  std::ofstream(folder.path() / "params.json")
      << R"({"dim": 20, "norm_eps": 1e-5, "vision_encoder": {"hidden_size": 40, "num_channels": 3, "image_size": 32,
             "patch_size": 4, "rope_theta": 10000.0, "intermediate_size": 28, "num_hidden_layers": 2,
             "num_attention_heads": 2, "adapter_bias": false, "mm_projector_id": "patch_merge",
             "spatial_merge_size": 2}})";
  // a file of the same model that is not about these weights
  fs::copy(golden / "config.json", folder.path() / "config.json");
  const auto model = Model::load(folder.path()), reference = Model::load(golden);
  CHECK(model->config().library == "Mistral");
  CHECK(Preprocessor(model->preprocess_config()).output_size({64, 20}) == ImageSize{32, 16});
  const Tensor<float> pixels = to_float(open_safetensors(golden / "expected.safetensors").at("a.pixels"));
  Outputs found, expected;
  Session(model, {.threads = 1}).forward(pixels, Output::merged, found);
  Session(reference, {.threads = 1}).forward(pixels, Output::merged, expected);
  const auto a = found[0][Output::merged].flat(), b = expected[0][Output::merged].flat();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-5f);
}

TEST_CASE("towers: steps of a clip are computed as clips of their own, equal frames as an image") {
  for (const char* const name : {"qwen2.5-vl-shards", "qwen3-vl"}) {
    CAPTURE(name);
    const auto model = Model::load(test::data_path("golden/towers") / name);
    const TensorFile expected =
        open_safetensors(test::data_path("golden/towers") / name / "expected.safetensors");
    const Tensor<float> image = to_float(expected.at("a.pixels"));
    const std::size_t height = image.dim(2), width = image.dim(3), size = image.num_elements();
    Tensor<float> clip(Shape{1, 12, height, width});
    for (std::size_t frame = 0; frame < 4; ++frame) {
      for (std::size_t i = 0; i < size; ++i)  // two equal frames, then two others
        clip.data()[frame * size + i] =
            image.data()[i] * (frame < 2 ? 1.0f : 1.0f / static_cast<float>(frame));
    }
    const Request request = request_of(model->config());
    Session session(model, {.threads = 2});
    Outputs of_image, of_clip, of_step;
    session.forward(image, request, of_image);
    session.forward(clip, request, of_clip);
    CHECK(of_clip.num_images() == 1);
    CHECK(of_clip.num_steps() == 2);
    const auto merged = of_clip[0][Output::merged];
    REQUIRE(merged.rank() == 4);
    CHECK(of_clip[0].patches().shape() == Shape{2, height / 4, width / 4, model->config().embed_dim});
    for (std::size_t step = 0; step < 2; ++step) {
      const TensorView<const float> pixels(clip.data() + step * 2 * size, Shape{1, 6, height, width});
      session.forward(pixels, request, of_step);
      CHECK(std::ranges::equal(merged[step].flat(), of_step[0][Output::merged].flat()));
    }
    for (std::size_t i = 0; i < merged[0].num_elements(); ++i)
      CHECK(std::abs(merged[0].flat()[i] - of_image[0][Output::merged].flat()[i]) < 1e-4f);
    const Tensor<float> odd(Shape{1, 9, height, width});
    CHECK(test::contains(test::message_of([&] { session.forward(odd, request, of_clip); }),
                         "a clip of 3 frames, which must be a multiple of the 2 of a patch"));
  }
  const auto images_only = Model::load(test::data_path("golden/towers/mistral3"));
  CHECK(test::contains(test::message_of([&] { images_only->steps_for(6); }), "takes 3 planes"));
  CHECK(test::contains(
      test::message_of([&] { Model::load(test::data_path("golden/towers/mistral3"), {.clip_frames = 4}); }),
      "takes images and no clips"));
}

TEST_CASE("towers: shards without a tensor of the tower may be missing, others may not") {
  const fs::path whole = test::data_path("golden/towers/qwen2.5-vl-shards");  // its third shard is not there
  const auto described = vit::Checkpoint(whole).describe();
  const auto& notes = described.report.notes;
  CHECK(std::ranges::any_of(notes, [](const std::string& note) {
    return test::contains(note, "1 lie in shards that are not opened");
  }));
  const auto is_left = [](const TensorUse& use) { return use.name == "model.embed_tokens.weight"; };
  const auto left = std::ranges::find_if(described.report.tensors, is_left);
  REQUIRE(left != described.report.tensors.end());
  CHECK(test::contains(left->ignored_because, "not read"));
  const fs::path folder = fs::temp_directory_path() / "vit-tower-shards";
  fs::remove_all(folder);
  fs::copy(whole, folder);
  fs::remove(folder / "model-00002-of-00003.safetensors");
  CHECK(test::contains(test::message_of([&] { Model::load(folder); }), "model-00002-of-00003.safetensors"));
  fs::remove_all(folder);
}

TEST_CASE("towers: Kimi's files as transformers saves them give what those published give") {
  SKIP_WITHOUT_SHARED("fixtures/towers");
  const fs::path published = test::shared_path("fixtures/towers/hf-kimi-k2.5-full");
  test::FileCopy copy(published);
  std::vector<TensorToWrite> tensors;
  for (test::FileCopy::Entry& entry : copy.entries()) {
    for (const auto& [from, to] :
         {std::pair<std::string, std::string>{"vision_tower.patch_embed.proj",
                                              "vision_tower.encoder.patch_embed.proj"},
          {"mm_projector.pre_norm", "model.mm_projector.pre_norm"}}) {
      if (entry.name.starts_with(from)) entry.name.replace(0, from.size(), to);
    }
    tensors.push_back({entry.name, entry.dtype, entry.shape, entry.bytes});
  }
  const test::ScratchFolder folder("kimi-saved");
  write_safetensors(folder.path() / "model.safetensors", tensors);
  fs::copy(published / "config.json", folder.path() / "config.json");
  const TensorFile expected = open_safetensors(published / "expected.safetensors");
  Outputs of_published, of_saved;
  const auto model = Model::load(published);
  const Tensor<float> pixels = pixels_of(expected, "b", model->config().patch.size);
  Session(model, {.threads = 1}).forward(pixels, Output::merged, of_published);
  Session(Model::load(folder.path()), {.threads = 1}).forward(pixels, Output::merged, of_saved);
  CHECK(std::ranges::equal(of_published[0][Output::merged].flat(), of_saved[0][Output::merged].flat()));
}

TEST_CASE("towers: timm's classifier on an encoder is found next to it") {
  SKIP_WITHOUT_SHARED("fixtures/towers");
  test::FileCopy copy(test::shared_path("fixtures/towers/timm-qwen3-vit-enc"));
  std::erase_if(copy.entries(), [](const auto& entry) { return entry.name.starts_with("merger."); });
  for (test::FileCopy::Entry& entry : copy.entries()) entry.name.insert(0, "encoder.");
  copy.add("head.weight", {7, 48}).add("head.bias", {7});
  copy.set_config(R"({"architecture": "qwen3_vit_88m", "num_classes": 7, "model_args": {"img_size": [64, 64],
      "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 3, "mlp_ratio": 1.5, "pos_embed_grid_size": 6}})");
  const test::ScratchFolder folder("timm-classifier");
  copy.write_to(folder.path());
  const auto model = Model::load(folder.path());
  CHECK(model->config().head.num_classes == 7);
  CHECK(model->config().head.pooling == Pooling::patch_mean);
}

TEST_CASE("towers: an image that cannot be cut into cells is refused") {
  const auto model = Model::load(test::data_path("golden/towers/qwen3-vl"));
  CHECK(test::contains(test::message_of([&] { model->grid_for(20, 16); }), "cells of 2 x 2"));
  CHECK(model->grid_for(24, 16) == GridSize{6, 4});
}

}  // namespace vit
