// Every function of vit/c.h with every argument and every member of its structs wrong: null, empty, zero,
// negative, huge, no number. No call crashes; each returns the status that the header states, leaves results
// as they were, and the next right call works. A function that is not walked fails the test.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/c_handles.h"
#include "tests/support/c_walk.h"
#include "tests/support/files.h"
#include "vit/classifier_head.h"

namespace vit {
namespace test {

#define VIT_MEMBERS(Struct, ...)                      \
  template <>                                         \
  struct StructOf<Struct> {                           \
    using S = Struct;                                 \
    static constexpr const char* name = #Struct;      \
    static constexpr std::tuple members{__VA_ARGS__}; \
  }

VIT_MEMBERS(vit_model_options, &S::struct_size, &S::architecture, &S::overrides, &S::num_overrides,
            &S::layout, &S::kernels, &S::precision, &S::resampler, &S::pillow, &S::exif, &S::channels,
            &S::pads_to_square, &S::pad_color, &S::rope_scaling, &S::max_pixels, &S::adapter, &S::prefix,
            &S::min_area, &S::max_area, &S::mean, &S::num_means, &S::std, &S::num_stds, &S::dense_head,
            &S::dense_taps, &S::num_dense_taps, &S::dense_depth_range, &S::dense_max_depth,
            &S::dense_resize_rule, &S::dense_expert, &S::clip_frames);
VIT_MEMBERS(vit_input, &S::struct_size, &S::kind, &S::format, &S::path, &S::data, &S::size, &S::height,
            &S::width, &S::row_stride, &S::frames, &S::num_frames);
VIT_MEMBERS(vit_size_options, &S::struct_size, &S::kind, &S::threads, &S::height, &S::width);
VIT_MEMBERS(vit_text_options, &S::struct_size, &S::architecture, &S::tokenizer, &S::kernels, &S::library,
            &S::precision);
VIT_MEMBERS(vit_session_options, &S::struct_size, &S::threads, &S::size_kind, &S::height, &S::width,
            &S::batch);
VIT_MEMBERS(vit_request, &S::struct_size, &S::features, &S::normalize, &S::blocks, &S::num_blocks,
            &S::attention, &S::num_attention);
VIT_MEMBERS(vit_anomaly_options, &S::struct_size, &S::layers, &S::num_layers, &S::neighborhood,
            &S::coreset_fraction, &S::coreset_count, &S::quantile, &S::score, &S::foreground);
VIT_MEMBERS(vit_pixel_options, &S::struct_size, &S::layers, &S::num_layers, &S::scales, &S::num_scales,
            &S::size_kind, &S::upsampling, &S::height, &S::width, &S::shifts, &S::color, &S::method,
            &S::neighbors, &S::strength, &S::threads, &S::upsampler);
VIT_MEMBERS(vit_segment_options, &S::struct_size, &S::threshold, &S::mask_threshold, &S::overlap, &S::stuff,
            &S::num_stuff, &S::task, &S::reserved);
VIT_MEMBERS(vit_box, &S::x0, &S::y0, &S::x1, &S::y1);
VIT_MEMBERS(vit_rope_options, &S::struct_size, &S::coordinates, &S::centered_by, &S::axis_order, &S::pairing,
            &S::offset, &S::reference_rows, &S::reference_columns, &S::dtype, &S::reserved);
VIT_MEMBERS(vit_rope_form_options, &S::struct_size, &S::rows, &S::columns, &S::head_dim, &S::num_frames,
            &S::num_heads, &S::reference_rows, &S::reference_columns);
VIT_MEMBERS(vit_rope_identify_options, &S::struct_size, &S::rows, &S::columns, &S::has_prefix, &S::reserved,
            &S::num_prefix_tokens, &S::against);
VIT_MEMBERS(vit_attention_options, &S::struct_size, &S::num_heads, &S::num_key_heads, &S::num_prefix_tokens,
            &S::scale, &S::causal, &S::threads);
VIT_MEMBERS(vit_relative_options, &S::struct_size, &S::scale, &S::threads, &S::reserved);
VIT_MEMBERS(vit_prompt, &S::struct_size, &S::text, &S::boxes, &S::box_labels, &S::num_boxes, &S::threshold,
            &S::mask_threshold, &S::rule, &S::gives);
VIT_MEMBERS(vit_object_prompt, &S::struct_size, &S::points, &S::point_labels, &S::num_points, &S::box,
            &S::mask, &S::mask_height, &S::mask_width, &S::single_mask, &S::rule);
VIT_MEMBERS(vit_array, &S::data, &S::dtype, &S::ndim, &S::shape);

}  // namespace test

namespace {

using namespace test;

/// A struct of defaults.
template <typename Options>
Options defaults() {
  Options out{};
  out.struct_size = sizeof out;
  return out;
}

vit_input file_input(const char* path) {
  vit_input input = defaults<vit_input>();
  input.path = path;
  return input;
}

/// What a call creates, which must succeed.
template <typename T, typename Call>
T* create(const Call& call) {
  T* out = nullptr;
  REQUIRE_MESSAGE(call(&out) == VIT_OK, vit_last_error());
  return out;
}

vit_model* load_golden(const std::string& name) {
  return create<vit_model>(
      [&](vit_model** out) { return vit_model_load(data_path(name).string().c_str(), nullptr, out); });
}

vit_session* session_over(const vit_model* model) {
  return create<vit_session>([&](vit_session** out) { return vit_session_create(model, nullptr, out); });
}

constexpr vit_status kWrong = VIT_ERROR_ARGUMENT, kFine = VIT_OK;

/// What is not VIT_ERROR_ARGUMENT, and what is although zeros are defaults elsewhere; the first that matches.
CWalk::Others other_statuses() {
  return {
      // may be NULL, as the header states
      {"vit_pixels_load_upsampled\\.upsampler (null|empty)", VIT_OK},  // where it was
      {".*\\.(sizes|num_cut|held_out|threshold|confidence|message|counts|num_bytes|logit_factor|scaling|"
       "probabilities) null",
       kFine},
      {"vit_prompt_image_size\\.(width|height) null|vit_attention\\.(table null|options( null|\\.num_heads "
       "zero))",
       kFine},
      {"vit_tokenizer_load_for_model\\.path (null|empty)", kFine},
      // required, or counted, in options
      {".*\\.(request|options|prompt)\\.(scales|attention|blocks|stuff|points|boxes) null", kWrong},
      {"vit_anomaly_fit\\.options\\.layers null", kWrong},
      {"vit_rope_form_create\\.options( null|\\.(rows|columns|head_dim) zero)", kWrong},
      {"vit_grid_coordinates\\.options\\.reference_(rows|columns) zero", kWrong},
      {"vit_rope_identify_arrays\\.options\\.(columns zero|rows zero|against empty)", kWrong},
      {"vit_model_load\\.options\\.rope_scaling empty", kWrong},
      {"vit_tokenizer_token\\.size null", kWrong},
      // truth values: not 0 is true
      {".*\\b(foreground|causal|color|pads_to_square|single_mask|probabilities|normalize|has_prefix) "
       "(negative|huge)",
       kFine},
      // zero, negative or without bound, as the header states
      {".*\\.(num_templates|num_texts|top|context_length|layer|num_prefix_tokens|num_prefix_rows|max_"
       "distance) zero",
       kFine},
      {"vit_detector_run\\.threshold (infinite|negative|zero)", kFine},
      {".*\\.(mask_threshold|threshold|overlap) negative", kFine},
      {".*\\.offset negative", kFine},
      {"vit_pixels_fit\\.num_names zero", kFine},
      {"vit_rope_frequencies\\.b (nan|infinite|negative|zero)", kFine},  // of another rule
      {"vit_session_pose\\.boxes\\.[xy]0 (negative|zero)", kFine},
      {"vit_tokenizer_token\\.id (negative|huge)", kFine},  // there is no such token
      {".*\\.(batch|coreset_count|max_pixels|dense_expert) huge", kFine},
      {"vit_grid_coordinates\\.options\\.reference_(rows|columns) huge", kFine},
      // of another kind of input, size, method or head
      {"vit_(session_create|preprocessor_load|pixels_fit)\\.(options|size)\\.(height|width|shifts|neighbors) "
       "huge",
       kFine},
      {"vit_rope_identify_arrays\\.options\\.num_prefix_tokens huge", kFine},
      {"vit_prompt_segmenter_object\\.prompt\\.mask_(height|width) huge", kFine},
      {"vit_(preprocessor_run|session_run\\(encoded\\))\\.inputs\\."
       "(format|height|width|num_frames|row_stride) .*",
       kFine},
      {".*\\.inputs\\.frames null", kFine},
      {"vit_preprocessor_run\\.inputs\\.(size .*|data null)", kFine},
      {"vit_session_run\\(pixels\\)\\.inputs\\.(path|size|num_frames) .*", kFine},
      {"vit_session_run\\(pixels\\)\\.inputs\\.row_stride zero", kFine},
      {"vit_session_run\\(preprocessed\\)\\.inputs\\.(path|size|format|row_stride) .*", kFine},
      {".*\\.inputs\\.num_frames zero", kFine},
      {"vit_session_run\\(encoded\\)\\.inputs\\.path .*", kFine},
      // other statuses
      {"vit_preprocessor_run\\.inputs\\.path empty", VIT_ERROR_IO},
      {"vit_session_run\\(encoded\\)\\.inputs\\.size zero", VIT_ERROR_FORMAT},
      {"vit_rope_identify\\.path empty", kWrong},
      {"vit_rope_identify_arrays\\.count zero", VIT_ERROR_FORMAT},
      {"vit_model_load\\.options\\.(min|max)_area huge", VIT_ERROR_MISMATCH},
      {"vit_tokenizer_load_for_model\\.model empty", VIT_ERROR_UNSUPPORTED},
      {"vit_tokenizer_run\\.context_length huge", VIT_ERROR_IO},  // no memory holds such rows
  };
}

#define WALK(function, label, ...) walk.calls(#function, label, function, __VA_ARGS__)

void walk_models(CWalk& walk, const vit_model* model, const vit_input& image, vit_results* results) {
  const std::string path = data_path("model").string();
  vit_model_options options = defaults<vit_model_options>();
  vit_size_options size = defaults<vit_size_options>();
  vit_model* loaded = nullptr;
  vit_preprocessor* preprocessor = nullptr;
  const char* text = nullptr;
  WALK(vit_model_load, "", path.c_str(), &options, &loaded);
  WALK(vit_model_random, "", "vit_tiny_patch16_224", &options, &loaded);
  vit_model_info info = defaults<vit_model_info>();
  WALK(vit_model_describe, "", model, &info);
  WALK(vit_model_label, "", model, 1, &text);
  WALK(vit_preprocessor_load, "", path.c_str(), &options, &size, &preprocessor);
  WALK(vit_preprocessor_create, "", model, &size, &preprocessor);
  preprocessor = create<vit_preprocessor>(
      [&](vit_preprocessor** out) { return vit_preprocessor_create(model, nullptr, out); });
  WALK(vit_preprocessor_run, "", preprocessor, &image, 1, VIT_PIXELS, results);
  CHECK(vit_preprocessor_describe(nullptr) == nullptr);
  walk.seen("vit_preprocessor_describe");
  vit_preprocessor_free(preprocessor);
}

void walk_sessions(CWalk& walk, const vit_model* model, const vit_input& image, vit_results* results) {
  vit_session_options options = defaults<vit_session_options>();
  vit_session* session = nullptr;
  WALK(vit_session_create, "", model, &options, &session);
  session = session_over(model);
  const std::int64_t last[] = {-1};
  vit_request request = defaults<vit_request>();
  request.features = VIT_POOLED;
  request.blocks = request.attention = last;
  request.num_blocks = request.num_attention = 1;
  WALK(vit_session_run, "", session, &image, 1, &request, results);

  const std::string file = read_text(data_path("images/cat_tabby.jpg"));
  vit_input encoded = defaults<vit_input>();
  encoded.kind = VIT_INPUT_ENCODED;
  encoded.data = file.data();
  encoded.size = file.size();
  WALK(vit_session_run, "(encoded)", session, &encoded, 1, nullptr, results);
  const std::vector<std::uint8_t> bytes(64 * 64 * 3, 100);
  vit_input pixels = defaults<vit_input>();
  pixels.kind = VIT_INPUT_PIXELS;
  pixels.data = bytes.data();
  pixels.height = pixels.width = 64;
  WALK(vit_session_run, "(pixels)", session, &pixels, 1, nullptr, results);
  const std::vector<float> numbers(3 * 40 * 40);
  vit_input planes = defaults<vit_input>();
  planes.kind = VIT_INPUT_PREPROCESSED;
  planes.data = numbers.data();
  planes.height = planes.width = 40;
  WALK(vit_session_run, "(preprocessed)", session, &planes, 1, nullptr, results);

  std::size_t height = 0, width = 0;
  const char* message = nullptr;
  vit_array array{};
  REQUIRE(vit_session_run(session, &image, 1, &request, results) == VIT_OK);
  WALK(vit_results_status, "", results, 0, &message);
  WALK(vit_results_image_size, "", results, 0, &height, &width);
  WALK(vit_results_all, "", results, VIT_BLOCK, -1, &array);
  WALK(vit_results_one, "", results, 0, VIT_BLOCK, -1, &array);
  vit_results* created = nullptr;
  WALK(vit_results_create, "", &created);
  vit_session_free(session);
}

void walk_classes(CWalk& walk, const vit_model* model, const vit_input& image, vit_results* results,
                  const TemporaryFolder& folder) {
  vit_session* const session = session_over(model);
  vit_classifier* classifier = nullptr;
  const char* text = nullptr;
  WALK(vit_classifier_create, "", model, &classifier);
  classifier =
      create<vit_classifier>([&](vit_classifier** out) { return vit_classifier_create(model, out); });
  WALK(vit_classifier_label, "", classifier, 1, &text);
  WALK(vit_classifier_run, "", classifier, session, &image, 1, results);
  vit_prediction best[3];
  std::size_t count = 0;
  WALK(vit_classifier_top, "", classifier, results, 0, 3, best, &count);
  vit_classifier_free(classifier);
  const std::string fitted = (folder / "head.safetensors").string();
  ClassifierHead head;
  head.method = FitMethod::centroid;
  head.labels = {"a", "b"};
  head.features = "pooled";
  vit_model_info info = defaults<vit_model_info>();
  REQUIRE(vit_model_describe(model, &info) == VIT_OK);
  head.mean = Tensor<float>(Shape{info.embed_dim});
  head.scale = Tensor<float>(Shape{info.embed_dim});
  std::ranges::fill(head.scale.flat(), 1.0f);
  head.coefficients = Tensor<float>(Shape{2, info.embed_dim});
  head.intercepts = Tensor<float>(Shape{2});
  save_head(fitted, head);
  classifier = nullptr;
  WALK(vit_classifier_load_head, "", model, fitted.c_str(), &classifier);

  vit_anomaly_options bank_options = defaults<vit_anomaly_options>();
  const std::int64_t last[] = {-1};
  bank_options.layers = last;
  bank_options.num_layers = 1;
  bank_options.coreset_fraction = 0.5;
  bank_options.quantile = 0.9;
  vit_anomaly* bank = nullptr;
  WALK(vit_anomaly_fit, "", session, &image, 1, &bank_options, &bank);
  bank = create<vit_anomaly>(
      [&](vit_anomaly** out) { return vit_anomaly_fit(session, &image, 1, nullptr, out); });
  const std::string bank_path = (folder / "bank.safetensors").string();
  WALK(vit_anomaly_save, "", bank, bank_path.c_str());
  float threshold = 0;
  double confidence = 0;
  WALK(vit_anomaly_threshold, "", bank, &threshold, &confidence);
  WALK(vit_anomaly_run, "", bank, session, &image, 1, results);
  vit_anomaly* bank_again = nullptr;
  WALK(vit_anomaly_load, "", model, bank_path.c_str(), &bank_again);
  vit_anomaly_free(bank);

  const std::vector<std::uint8_t> bytes(64 * 64 * 3, 100);
  vit_input pixels = defaults<vit_input>();
  pixels.kind = VIT_INPUT_PIXELS;
  pixels.data = bytes.data();
  pixels.height = pixels.width = 64;
  std::vector<std::int32_t> classes(64 * 64);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = i % 64 < 32 ? 0 : 1;
  const vit_array labels{classes.data(), VIT_INT32, 2, {64, 64}};
  const char* const names[] = {"left", "right"};
  vit_pixel_options options = defaults<vit_pixel_options>();
  options.method = VIT_FIT_CENTROID;
  options.scales = &confidence;
  confidence = 1.0;
  options.num_scales = 1;
  vit_pixels* learned = nullptr;
  WALK(vit_pixels_fit, "", model, &pixels, &labels, 1, names, 2, &options, &learned);
  learned = create<vit_pixels>(
      [&](vit_pixels** out) { return vit_pixels_fit(model, &pixels, &labels, 1, names, 2, &options, out); });
  const std::string head_path = (folder / "pixels.safetensors").string();
  WALK(vit_pixels_save, "", learned, head_path.c_str());
  vit_pixels* learned_again = nullptr;
  WALK(vit_pixels_load, "", model, head_path.c_str(), 1, &learned_again);
  vit_pixels_free(learned_again);
  learned_again = nullptr;
  WALK(vit_pixels_load_upsampled, "", model, head_path.c_str(), "", 1, &learned_again);
  WALK(vit_pixels_label, "", learned, 1, &text);
  std::int32_t held_out = 0;
  WALK(vit_pixels_iou, "", learned, &confidence, &held_out);
  WALK(vit_pixels_run, "", learned, &pixels, 1, 1, results);
  vit_pixels_free(learned);
  vit_session_free(session);
}

void walk_texts(CWalk& walk, vit_results* results, const TemporaryFolder& folder) {
  const std::string path = data_path("golden/text/openclip-siglip").string();
  vit_model_options model_options = defaults<vit_model_options>();
  vit_text_options options = defaults<vit_text_options>();
  vit_model* model = nullptr;
  vit_text_tower* tower = nullptr;
  WALK(vit_text_tower_load, "", path.c_str(), &options, &tower);
  WALK(vit_model_and_text_load, "", path.c_str(), &model_options, &options, &model, &tower);
  REQUIRE(vit_model_and_text_load(path.c_str(), nullptr, nullptr, &model, &tower) == VIT_OK);
  vit_text_encoder* encoder = nullptr;
  WALK(vit_text_encoder_create, "", tower, 1, &encoder);
  encoder = create<vit_text_encoder>(
      [&](vit_text_encoder** out) { return vit_text_encoder_create(tower, 1, out); });
  const char* const texts[] = {"a cat", "a dog"};
  const std::size_t sizes[] = {5, 5};
  std::size_t num_cut = 0;
  WALK(vit_text_encoder_run, "", encoder, texts, sizes, 2, 0, results, &num_cut);
  vit_tokenizer* tokenizer = nullptr;
  WALK(vit_tokenizer_load, "", path.c_str(), VIT_TEXT_LIBRARY_AUTO, &tokenizer);
  WALK(vit_tokenizer_load_for_model, "", path.c_str(), path.c_str(), VIT_TEXT_LIBRARY_AUTO, &tokenizer);
  WALK(vit_tokenizer_create, "", tower, &tokenizer);
  tokenizer = create<vit_tokenizer>([&](vit_tokenizer** out) { return vit_tokenizer_create(tower, out); });
  CHECK(vit_tokenizer_context_length(nullptr) == 0);
  walk.seen("vit_tokenizer_context_length");
  WALK(vit_tokenizer_run, "", tokenizer, texts, sizes, 2, 16, results);
  const char* token = nullptr;
  std::size_t size = 0;
  WALK(vit_tokenizer_token, "", tokenizer, 3, &token, &size);
  vit_tokenizer_free(tokenizer);

  const char* const templates[] = {"a photo of {}."};
  vit_classifier* classifier = nullptr;
  WALK(vit_classifier_create_zero_shot, "", model, encoder, texts, 2, templates, 1, &classifier);
  classifier = create<vit_classifier>([&](vit_classifier** out) {
    return vit_classifier_create_zero_shot(model, encoder, texts, 2, templates, 1, out);
  });
  const std::string vectors = (folder / "vectors.safetensors").string();
  WALK(vit_classifier_save_vectors, "", classifier, vectors.c_str());
  vit_classifier_free(classifier);
  classifier = nullptr;
  WALK(vit_classifier_load_vectors, "", model, vectors.c_str(), &classifier);
  vit_text_encoder_free(encoder);
  vit_text_tower_free(tower);
  vit_model_free(model);
}

void walk_heads(CWalk& walk, const vit_input& image, vit_results* results) {
  const char* text = nullptr;
  std::int32_t unit = 0;
  vit_model* model = load_golden("golden/dense/hf-depth-anything");
  vit_session* session = session_over(model);
  WALK(vit_model_depth_unit, "", model, &unit);
  WALK(vit_session_depth, "", session, &image, 1, results);
  vit_session_free(session);
  vit_model_free(model);

  model = load_golden("golden/dense/hf-eomt");
  session = session_over(model);
  vit_segment_options options = defaults<vit_segment_options>();
  const std::size_t stuff[] = {0};
  options.stuff = stuff;
  options.num_stuff = 1;
  options.task = VIT_SEGMENT_PANOPTIC;
  WALK(vit_session_segment, "", session, &image, 1, &options, results);
  vit_session_free(session);
  vit_model_free(model);

  model = load_golden("golden/boxes/vitpose");
  session = session_over(model);
  const vit_box box{10, 10, 60, 60};
  const std::size_t counts[] = {1};
  WALK(vit_session_pose, "", session, &image, 1, &box, counts, results);
  vit_session_free(session);
  vit_model_free(model);

  model = load_golden("golden/boxes/yolos");
  session = session_over(model);
  CHECK(vit_model_num_head_labels(nullptr) == 0);
  walk.seen("vit_model_num_head_labels");
  WALK(vit_model_head_label, "", model, 1, &text);
  vit_detector* detector = nullptr;
  WALK(vit_detector_create, "", model, &detector);
  detector = create<vit_detector>([&](vit_detector** out) { return vit_detector_create(model, out); });
  WALK(vit_detector_label, "", detector, 1, &text);
  WALK(vit_detector_run, "", detector, session, &image, 1, 0.5f, results);
  vit_detector_free(detector);
  vit_session_free(session);
  vit_model_free(model);

  vit_text_tower* tower = nullptr;
  REQUIRE(vit_model_and_text_load(data_path("golden/boxes/owlv2").string().c_str(), nullptr, nullptr, &model,
                                  &tower) == VIT_OK);
  vit_text_encoder* const encoder = create<vit_text_encoder>(
      [&](vit_text_encoder** out) { return vit_text_encoder_create(tower, 1, out); });
  const char* const names[] = {"a cat", "a dog"};
  const char* const templates[] = {"{}"};
  detector = nullptr;
  WALK(vit_detector_create_zero_shot, "", model, encoder, names, 2, templates, 1, &detector);
  vit_text_encoder_free(encoder);
  vit_text_tower_free(tower);
  vit_model_free(model);
}

/// Factors (N, A) in float64 as a file.
std::string factors_file(const TemporaryFolder& folder, const vit_array& cos, const vit_array& sin) {
  const std::size_t bytes = cos.shape[0] * cos.shape[1] * sizeof(double);
  const std::string shape =
      "\"shape\":[" + std::to_string(cos.shape[0]) + "," + std::to_string(cos.shape[1]) + "]";
  const auto entry = [&](const char* name, std::size_t begin) {
    return "\"" + std::string(name) + "\":{\"dtype\":\"F64\"," + shape + ",\"data_offsets\":[" +
           std::to_string(begin) + "," + std::to_string(begin + bytes) + "]}";
  };
  const std::string data = std::string(static_cast<const char*>(cos.data), bytes) +
                           std::string(static_cast<const char*>(sin.data), bytes);
  return folder
      .write("rope.safetensors", safetensors("{" + entry("cos", 0) + "," + entry("sin", bytes) + "}", data))
      .string();
}

void walk_positions(CWalk& walk, const TemporaryFolder& folder) {
  double t_x[6] = {}, t_y[6] = {}, frequencies[4] = {1.0, 0.5, 0.25, 0.125}, mixed[16] = {};
  std::array<float, 96> x{}, out{};
  std::array<double, 96> wide{};
  vit_rope_options options = defaults<vit_rope_options>();
  options.coordinates = VIT_COORDINATES_SCALED;
  options.reference_rows = options.reference_columns = 4;
  vit_rope_table* table = nullptr;
  WALK(vit_grid_coordinates, "", 2, 3, &options, t_x, t_y);
  WALK(vit_rope_frequencies, "", VIT_FREQUENCIES_THETA, 4, 100.0, 0.0, frequencies);
  WALK(vit_rope_axial, "", 2, 3, frequencies, 4, &options, &table);
  WALK(vit_rope_mixed, "", 2, 3, mixed, 1, 2, 4, 0, &options, &table);
  WALK(vit_rope_line, "", t_x, 6, frequencies, 4, &options, &table);
  table = create<vit_rope_table>(
      [&](vit_rope_table** made) { return vit_rope_axial(2, 3, frequencies, 4, nullptr, made); });
  vit_array cos{}, sin{};
  WALK(vit_rope_table_get, "", table, &cos, &sin);
  const std::size_t tokens[] = {1, 6, 16}, heads[] = {1, 6, 1, 16}, planes[] = {1, 3, 4, 8};
  WALK(vit_rope_rotate, "", table, x.data(), tokens, 3, 0);
  WALK(vit_patchify, "", x.data(), planes, 4, 1, out.data());
  vit_attention_options attention = defaults<vit_attention_options>();
  attention.num_heads = 1;
  WALK(vit_attention, "", x.data(), x.data(), x.data(), heads, table, &attention, out.data());
  vit_rope_table_free(table);
  WALK(vit_sinusoidal, "", VIT_SINUSOIDAL_GRID, 2, 3, 4, 10000.0, VIT_FLOAT32, out.data());

  double factor = 0;
  vit_rope_table* scaled = nullptr;
  WALK(vit_rope_axial_scaled, "", 2, 3, 4, 4, "ntk", frequencies, 4, &options, &factor, &scaled);
  WALK(vit_resample_table, "", x.data(), 1, 2, 2, 2, 3, 3, VIT_RESAMPLE_BICUBIC, out.data());
  const std::size_t relative[] = {1, 1, 4, 4};
  vit_relative_options relative_options = defaults<vit_relative_options>();
  std::array<double, 96> attended{}, probabilities{};
  WALK(vit_relative_attention, "", wide.data(), wide.data(), wide.data(), relative, wide.data(), wide.data(),
       1, &relative_options, attended.data(), probabilities.data());
  WALK(vit_nezha_rows, "", 1, 4, wide.data());

  const char* json = nullptr;
  WALK(vit_rope_conventions, "", &json);
  vit_rope_form_options form_options = defaults<vit_rope_form_options>();
  form_options.rows = 2;
  form_options.columns = 3;
  form_options.head_dim = 16;
  vit_rope_form* form = nullptr;
  WALK(vit_rope_form_create, "", "dinov3", &form_options, &form);
  form = create<vit_rope_form>(
      [&](vit_rope_form** made) { return vit_rope_form_create("dinov3", &form_options, made); });
  WALK(vit_rope_form_get, "", form, VIT_ROPE_COS, &cos);
  WALK(vit_rope_form_get, "(sin)", form, VIT_ROPE_SIN, &sin);
  WALK(vit_rope_form_rotate, "", form, wide.data(), heads, 4, 0);

  vit_rope_identify_options known = defaults<vit_rope_identify_options>();
  known.rows = 2;
  known.columns = 3;
  vit_rope_identity* identity = nullptr;
  const char* const names[] = {"cos", "sin"};
  const vit_array factors[] = {cos, sin};
  WALK(vit_rope_identify_arrays, "", names, factors, 2, &known, &identity);
  const std::string file = factors_file(folder, cos, sin);
  WALK(vit_rope_identify, "", file.c_str(), &known, &identity);
  identity = create<vit_rope_identity>(
      [&](vit_rope_identity** made) { return vit_rope_identify_arrays(names, factors, 2, &known, made); });
  WALK(vit_rope_identity_json, "", identity, &json);
  vit_rope_identity_free(identity);
  vit_rope_form_free(form);
}

void walk_prompts(CWalk& walk, const vit_input& image, vit_results* results) {
  const std::string path = data_path("golden/prompts/sam3").string();
  vit_model_options options = defaults<vit_model_options>();
  vit_text_options text_options = defaults<vit_text_options>();
  vit_prompt_model* model = nullptr;
  WALK(vit_prompt_model_load, "", path.c_str(), &options, &text_options, &model);
  model = create<vit_prompt_model>(
      [&](vit_prompt_model** out) { return vit_prompt_model_load(path.c_str(), nullptr, nullptr, out); });
  CHECK(vit_prompt_model_takes(nullptr) == 0);
  walk.seen("vit_prompt_model_takes");
  vit_prompt_segmenter* segmenter = nullptr;
  WALK(vit_prompt_segmenter_create, "", model, 1, &segmenter);
  segmenter = create<vit_prompt_segmenter>(
      [&](vit_prompt_segmenter** out) { return vit_prompt_segmenter_create(model, 1, out); });
  vit_prompt_image* seen = nullptr;
  const std::uint32_t uses = VIT_PROMPT_PHRASES | VIT_PROMPT_OBJECTS;
  WALK(vit_prompt_segmenter_encode, "", segmenter, &image, uses, &seen);
  seen = create<vit_prompt_image>(
      [&](vit_prompt_image** out) { return vit_prompt_segmenter_encode(segmenter, &image, uses, out); });
  std::size_t height = 0, width = 0, bytes = 0;
  WALK(vit_prompt_image_size, "", seen, &height, &width, &bytes);
  const vit_box box{10, 10, 60, 60};
  const std::int32_t labels[] = {1};
  vit_prompt prompt = defaults<vit_prompt>();
  prompt.text = "cat";
  prompt.boxes = &box;
  prompt.box_labels = labels;
  prompt.num_boxes = 1;
  WALK(vit_prompt_segmenter_run, "", segmenter, seen, &prompt, results);
  const double points[] = {20, 20};
  vit_object_prompt object = defaults<vit_object_prompt>();
  object.points = points;
  object.point_labels = labels;
  object.num_points = 1;
  object.box = &box;
  WALK(vit_prompt_segmenter_object, "", segmenter, seen, &object, results);
  vit_prompt_image_free(seen);
  vit_prompt_segmenter_free(segmenter);
  vit_prompt_model_free(model);
}

/// Functions that return no status.
void walk_others(CWalk& walk) {
  CHECK(std::string(vit_status_name(-1)) == "unknown");
  CHECK(std::string(vit_status_name(99)) == "unknown");
  CHECK(vit_last_error() != nullptr);
  CHECK(vit_version() != nullptr);
  CHECK(vit_c_revision() == VIT_C_REVISION);
  CHECK(vit_results_size(nullptr) == 0);
  CHECK(vit_classifier_size(nullptr) == 0);
  CHECK(vit_detector_size(nullptr) == 0);
  CHECK(vit_pixels_size(nullptr) == 0);
  for (const char* const name :
       {"vit_status_name", "vit_last_error", "vit_version", "vit_c_revision", "vit_results_size",
        "vit_classifier_size", "vit_detector_size", "vit_pixels_size"})
    walk.seen(name);
#define FREE_NOTHING(function) function(nullptr), walk.seen(#function)
  FREE_NOTHING(vit_results_free);
  FREE_NOTHING(vit_model_free);
  FREE_NOTHING(vit_preprocessor_free);
  FREE_NOTHING(vit_text_tower_free);
  FREE_NOTHING(vit_text_encoder_free);
  FREE_NOTHING(vit_tokenizer_free);
  FREE_NOTHING(vit_session_free);
  FREE_NOTHING(vit_classifier_free);
  FREE_NOTHING(vit_anomaly_free);
  FREE_NOTHING(vit_pixels_free);
  FREE_NOTHING(vit_detector_free);
  FREE_NOTHING(vit_prompt_model_free);
  FREE_NOTHING(vit_prompt_segmenter_free);
  FREE_NOTHING(vit_prompt_image_free);
  FREE_NOTHING(vit_rope_table_free);
  FREE_NOTHING(vit_rope_form_free);
  FREE_NOTHING(vit_rope_identity_free);
#undef FREE_NOTHING
}

}  // namespace

TEST_CASE("wrong calls of C: every argument and member of every function") {
  CWalk walk(other_statuses());
  const TemporaryFolder folder;
  const ModelHandle model(load_golden("model"));
  const ResultsHandle results = make_results();
  const std::string path = data_path("images/cat_tabby.jpg").string();
  const vit_input image = file_input(path.c_str());
  walk_models(walk, model.get(), image, results.get());
  walk_sessions(walk, model.get(), image, results.get());
  walk_classes(walk, model.get(), image, results.get(), folder);
  walk_texts(walk, results.get(), folder);
  walk_heads(walk, image, results.get());
  walk_positions(walk, folder);
  walk_prompts(walk, image, results.get());
  walk_others(walk);
  for (const std::string& left : walk.left()) FAIL_CHECK(left);
}

}  // namespace vit
