// Checkpoints in several files.
#include "vit/weights/files/shards.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/temporary_file.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/files/pickle.h"
#include "vit/weights/files/safetensors.h"

namespace vit {
using namespace internal;
namespace {

using test::safetensors;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

}  // namespace

TEST_CASE("weights: a sharded checkpoint must be exactly its weight_map") {
  const test::TemporaryFolder folder;
  const auto shard = [](std::string_view name, float value) {
    return safetensors(
        "{\"" + std::string(name) + "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        test::floats({value}));
  };
  folder.write("1.safetensors", shard("a", 1.0f));
  folder.write("2.safetensors", shard("b", 2.0f));
  const auto open = [&](std::string_view weight_map) {
    return open_shards(folder.write("model.safetensors.index.json",
                                    "{\"metadata\":{},\"weight_map\":" + std::string(weight_map) + "}"),
                       open_safetensors);
  };
  const auto refused = [&](std::string_view weight_map) {
    return test::error_text<Error>([&] { open(weight_map); });
  };
  SUBCASE("valid still loads") {
    const TensorFile file = open(R"({"a":"1.safetensors","b":"2.safetensors"})");
    REQUIRE(file.entries().size() == 2);
    CHECK(to_double(file.at("b"))[0] == 2.0);
    CHECK(contains(file.at("b").describe(), "2.safetensors"));
  }
  SUBCASE("defects") {
    CHECK(contains(refused(R"({"z":"1.safetensors"})"), "\"a\" (1)"));
    CHECK(contains(refused(R"({"z":"1.safetensors"})"), "is not in the weight_map"));
    CHECK(contains(refused(R"({"a":"1.safetensors","b":"3.safetensors"})"), "no such file"));
    CHECK(contains(refused(R"({"a":"2.safetensors","b":"1.safetensors"})"), "belongs into"));
    CHECK(contains(refused(R"({"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"})"),
                   "is missing from"));
    CHECK(contains(refused(R"({"a":"1.safetensors","b":7})"), "must be a string"));
    CHECK(contains(refused("{}"), "names no tensor"));
    CHECK(contains(refused("[]"), "names no tensor"));
    folder.write("3.safetensors", shard("a", 3.0f));
    CHECK(contains(refused(R"({"a":"1.safetensors","b":"3.safetensors"})"), "belongs into"));
  }
  SUBCASE("file names that lead elsewhere") {
    for (const char* name :
         {"../x", "/etc/passwd", "a/b", "a\\\\b", "..", ".", "", "a\\u0000b", "a\\nb", "a\\u007fb"}) {
      CAPTURE(name);
      CHECK(contains(refused("{\"a\":\"" + std::string(name) + "\"}"),
                     "expected the name of a file beside the index"));
    }
    const std::string message = refused("{\"a\":\"" + std::string(5000, 'x') + "\"}");
    CHECK(contains(message, "expected the name of a file beside the index"));
    CHECK(message.size() < 1000);
  }
  SUBCASE("no index") {
    CHECK(contains(test::error_text<Error>([&] { open_shards(folder.write("i", "{}"), open_safetensors); }),
                   "weight_map"));
    CHECK_THROWS_AS(open_shards(folder.write("i", "[]"), open_safetensors), Error);
    CHECK_THROWS_AS(open_shards(folder.path() / "absent", open_safetensors), Error);
  }
}

TEST_CASE("weights: a folder may hold shards of PyTorch's own format") {
  namespace op = test::opcode;
  const test::TemporaryFolder folder;
  for (const char* const name : {"a", "b"}) {
    folder.write(std::string(name) + ".bin", test::torch_archive(op::dict(op::string(name) + op::tensor({})),
                                                                 test::floats({1, 2, 3, 4, 5, 6})));
  }
  const auto index =
      folder.write("pytorch_model.bin.index.json", R"({"weight_map":{"a":"a.bin","b":"b.bin"}})");
  const TensorFile file = open_shards(index, open_pickle);
  REQUIRE(file.entries().size() == 2);
  CHECK(contains(file.at("b").describe(), "b.bin"));
  // the loader finds the index and opens both before it asks what the names mean
  for (const std::filesystem::path& path : {folder.path(), index}) {
    const std::string message = test::error_text<Error>([&] { load_checkpoint(path); });
    CHECK(contains(message, "pytorch_model.bin.index.json: no known family"));
    CHECK(contains(message, "\"a\", \"b\""));
  }
}

}  // namespace vit
