// Checkpoints in several files.
#include "vit/io/shards.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/fixture_tensors.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;
namespace {

using test::safetensors;

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
  SUBCASE("valid still loads") {
    const TensorFile file = open(R"({"a":"1.safetensors","b":"2.safetensors"})");
    REQUIRE(file.entries().size() == 2);
    CHECK(to_double(file.at("b"))[0] == 2.0);
    CHECK(test::contains(file.at("b").describe(), "2.safetensors"));
  }
  SUBCASE("defects") {
    CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors.index.json", "1.safetensors", "\"a\""),
                open(R"({"z":"1.safetensors"})"));
    CHECK_ERROR(ErrorKind::io, ("3.safetensors"), open(R"({"a":"1.safetensors","b":"3.safetensors"})"));
    CHECK_ERROR(ErrorKind::mismatch, ("\"a\""), open(R"({"a":"2.safetensors","b":"1.safetensors"})"));
    CHECK_ERROR(ErrorKind::mismatch, ("\"c\"", "2.safetensors"),
                open(R"({"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"})"));
    CHECK_ERROR(ErrorKind::format, ("weight_map.b"), open(R"({"a":"1.safetensors","b":7})"));
    CHECK_ERROR(ErrorKind::format, ("weight_map"), open("{}"));
    CHECK_ERROR(ErrorKind::format, ("weight_map"), open("[]"));
    folder.write("3.safetensors", shard("a", 3.0f));
    CHECK_ERROR(ErrorKind::mismatch, ("\"a\""), open(R"({"a":"1.safetensors","b":"3.safetensors"})"));
  }
  SUBCASE("file names that lead elsewhere") {
    for (const char* name :
         {"../x", "/etc/passwd", "a/b", "a\\\\b", "..", ".", "", "a\\u0000b", "a\\nb", "a\\u007fb"}) {
      CAPTURE(name);
      CHECK_ERROR(ErrorKind::format, ("\"a\""), open("{\"a\":\"" + std::string(name) + "\"}"));
    }
    const std::string message = test::message_of([&] { open("{\"a\":\"" + std::string(5000, 'x') + "\"}"); });
    CHECK(test::contains(message, "\"a\""));
    CHECK(message.size() < 1000);
  }
  SUBCASE("no index") {
    CHECK_ERROR(ErrorKind::format, ("weight_map"), open_shards(folder.write("i", "{}"), open_safetensors));
    CHECK_ERROR(ErrorKind::format, ("i"), open_shards(folder.write("i", "[]"), open_safetensors));
    CHECK_ERROR(ErrorKind::io, ("absent"), open_shards(folder.path() / "absent", open_safetensors));
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
  CHECK(test::contains(file.at("b").describe(), "b.bin"));
  // the loader finds the index and opens both before it looks at the names
  for (const std::filesystem::path& path : {folder.path(), index}) {
    CHECK_ERROR(ErrorKind::unsupported, ("pytorch_model.bin.index.json", "\"a\", \"b\""),
                load_checkpoint(path));
  }
}

}  // namespace vit
