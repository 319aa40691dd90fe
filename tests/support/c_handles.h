// Handles of the C interface that free what they hold, two images as inputs, and results as spans.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/support/shared_data.h"
#include "vit/base/choices.h"
#include "vit/c.h"

namespace vit::test {

template <typename T, void (*Free)(T*)>
struct Release {
  void operator()(T* handle) const { Free(handle); }
};
using ModelHandle = std::unique_ptr<vit_model, Release<vit_model, vit_model_free>>;
using SessionHandle = std::unique_ptr<vit_session, Release<vit_session, vit_session_free>>;
using ResultsHandle = std::unique_ptr<vit_results, Release<vit_results, vit_results_free>>;

inline const std::vector<std::string>& images() {
  static const std::vector<std::string> paths{test::data_path("images/cat_tabby.jpg").string(),
                                              test::data_path("images/deer_fawn.png").string()};
  return paths;
}

inline std::vector<vit_input> inputs() {
  std::vector<vit_input> out;
  for (const std::string& path : images()) {
    vit_input input{};
    input.struct_size = sizeof input;
    input.path = path.c_str();
    out.push_back(input);
  }
  return out;
}

inline ModelHandle load(const std::string& path, Precision precision = Precision::float32) {
  vit_model_options options{};
  options.struct_size = sizeof options;
  options.precision = static_cast<std::int32_t>(precision);
  vit_model* model = nullptr;
  REQUIRE(vit_model_load(path.c_str(), &options, &model) == VIT_OK);
  return ModelHandle(model);
}

inline SessionHandle session_of(const ModelHandle& model) {
  vit_session* session = nullptr;
  REQUIRE(vit_session_create(model.get(), nullptr, &session) == VIT_OK);
  return SessionHandle(session);
}

inline ResultsHandle make_results() {
  vit_results* results = nullptr;
  REQUIRE(vit_results_create(&results) == VIT_OK);
  return ResultsHandle(results);
}

inline std::span<const float> one(const ResultsHandle& results, std::size_t index, std::uint32_t name,
                                  std::int64_t block = 0) {
  vit_array array{};
  REQUIRE(vit_results_one(results.get(), index, name, block, &array) == VIT_OK);
  std::size_t count = 1;
  for (std::uint32_t i = 0; i < array.ndim; ++i) count *= array.shape[i];
  return {static_cast<const float*>(array.data), count};
}

}  // namespace vit::test
