#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "tests/support/archive_writer.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/io/safetensors.h"
#include "vit/io/shards.h"

namespace vit {
using namespace internal;

namespace {

using test::safetensors;

/// Opens a file with these bytes.
TensorFile open(std::string_view bytes) {
  static const test::TemporaryFolder folder;
  return open_safetensors(folder.write("m.safetensors", bytes));
}

constexpr std::string_view kHeader = R"({"__metadata__":{"format":"pt"},)"
                                     R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]},)"
                                     R"("a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}})";
const std::string kData = std::string("\x80\x3f\x40\xc0", 4) + test::floats({1.5f, -2.0f});

}  // namespace

TEST_CASE("weights: a valid safetensors file loads") {
  const test::TemporaryFolder folder;
  for (const std::size_t padding : {0, 1, 7, 8}) {  // every alignment of the data
    const TensorFile file = open_safetensors(
        folder.write("m.safetensors", safetensors(std::string(kHeader) + std::string(padding, ' '), kData)));
    REQUIRE(file.entries().size() == 2);
    CHECK(file.entries()[0].name == "a");  // in the order of the data
    CHECK(file.metadata().at("format") == "pt");
    CHECK(to_double(file.at("a")) == std::vector<double>{1.0, -3.0});
    const Tensor<float> b = to_float(file.at("b"));
    CHECK(b.shape() == Shape{2, 1});
    CHECK(b.data()[0] == 1.5f);
    CHECK(b.data()[1] == -2.0f);
    CHECK(file.find("c") == nullptr);
    CHECK_ERROR(ErrorKind::mismatch, ("\"c\""), file.at("c"));
  }
}

TEST_CASE("weights: scalars, empty tensors and empty files are legal") {
  const test::TemporaryFolder folder;
  const TensorFile file = open_safetensors(
      folder.write("m", safetensors(R"({"s":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                                    R"("e":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]},)"
                                    R"("f":{"dtype":"F32","shape":[5,0],"data_offsets":[8,8]}})",
                                    test::raw(2.25))));
  CHECK(to_double(file.at("s")) == std::vector<double>{2.25});
  CHECK(to_float(file.at("s")).shape() == Shape{});
  CHECK(to_double(file.at("e")).empty());
  CHECK(to_float(file.at("f")).shape() == Shape{5, 0});
  CHECK(open_safetensors(folder.write("n", safetensors("{}", ""))).entries().empty());
  CHECK(open_safetensors(folder.write("o", safetensors(" \n{ }  ", ""))).entries().empty());
}

TEST_CASE("weights: an entry keeps its file open") {
  const test::TemporaryFolder folder;
  const TensorEntry entry = open_safetensors(folder.write("m", safetensors(kHeader, kData))).at("a");
  CHECK(to_double(entry)[1] == -3.0);
}

TEST_CASE("weights: a damaged safetensors file is refused with the likely cause") {
  const auto one = [](std::string_view description, std::size_t num_bytes = 8) {
    return open(safetensors("{\"t\":" + std::string(description) + "}", std::string(num_bytes, '\0')));
  };
  SUBCASE("valid still loads") {
    CHECK_NOTHROW(one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})"));
    CHECK_NOTHROW(one(R"({"data_offsets":[0,8],"shape":[8],"dtype":"U8"})"));
  }
  SUBCASE("prefix and header length") {
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open("1234567"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "3", "2"), open(test::raw<std::uint64_t>(3) + "{}"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "100000000"),
                open(test::raw<std::uint64_t>(100'000'001) + "{}"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "100000000"),
                open(test::raw<std::uint64_t>(~0ull) + "{}"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open(test::raw<std::uint64_t>(0)));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open("<!DOCTYPE html><html>"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"),
                open("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
  }
  SUBCASE("header") {
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open(safetensors("[]", "")));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open(safetensors("{", "")));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open(safetensors("{}x", "")));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"), open(safetensors("{\"\xff\":1}", "")));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"a\""),
                open(safetensors(std::string(kHeader).replace(kHeader.find("\"b\""), 3, "\"a\""), kData)));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "__metadata__"),
                open(safetensors(R"({"__metadata__":[]})", "")));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "__metadata__.a"),
                open(safetensors(R"({"__metadata__":{"a":1}})", "")));
  }
  SUBCASE("description") {
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""), one("7"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\"", "2"), one(R"({"dtype":"F32","shape":[2]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t", "data_offsets"),
                one(R"({"dtype":"F32","shape":[2],"data_offset":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\"", "4"),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1})"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.safetensors", "\"t\"", "\"F33\""),
                one(R"({"dtype":"F33","shape":[2],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t.dtype"),
                one(R"({"dtype":32,"shape":[2],"data_offsets":[0,8]})"));
  }
  SUBCASE("shape") {
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""),
                one(R"({"dtype":"F32","shape":2,"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t.shape[0]"),
                one(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t.shape[0]"),
                one(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t.shape[0]"),
                one(R"({"dtype":"F32","shape":["2"],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.safetensors", "\"t\"", "9"),
                one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,1,8],"data_offsets":[0,8]})"));
    CHECK_NOTHROW(one(R"({"dtype":"U8","shape":[1,1,1,1,1,1,1,8],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\"", "12"),
                one(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""),
                one(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]})"));
    // 2^62 elements of 4 bytes are 2^64 = 0 bytes to a careless reader
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""),
                one(R"({"dtype":"F32","shape":[2147483648,2147483648],"data_offsets":[0,0]})", 0));
  }
  SUBCASE("offsets") {
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\"", "8"),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "t.data_offsets[0]"),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[-8,0]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\"", "4"),
                one(R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 9));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors"),
                one(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 7));
    const auto two = [](std::string_view first, std::string_view second) {
      return open(safetensors(
          "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + std::string(first) +
              "},\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":" + std::string(second) + "}}",
          std::string(8, '\0')));
    };
    CHECK_NOTHROW(two("[0,4]", "[4,8]"));
    CHECK_NOTHROW(two("[4,8]", "[0,4]"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"b\""), two("[0,4]", "[0,4]"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"b\""), two("[0,4]", "[3,7]"));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"b\""), two("[0,4]", "[5,9]"));
  }
  SUBCASE("types narrower than a byte") {
    CHECK_NOTHROW(one(R"({"dtype":"F4","shape":[16],"data_offsets":[0,8]})"));
    CHECK_NOTHROW(one(R"({"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]})", 3));
    CHECK_ERROR(ErrorKind::format, ("m.safetensors", "\"t\""),
                one(R"({"dtype":"F4","shape":[15],"data_offsets":[0,8]})"));
  }
  SUBCASE("every cut of a valid file") {
    const std::string whole = safetensors(kHeader, kData);
    for (std::size_t size = 1; size < whole.size(); ++size) {
      REQUIRE_THROWS_AS(open(whole.substr(0, size)), Error);
    }
    CHECK_NOTHROW(open(whole));
  }
}

TEST_CASE("weights: a hostile header does not make the reader allocate") {
  // 100 MB of brackets or values end at a limit; a tensor of 2^52 bytes is compared with the file first.
  CHECK_ERROR(ErrorKind::unsupported, ("m.safetensors", "64"),
              open(safetensors(std::string(20'000'000, '['), "")));
  std::string values = "[";
  for (int i = 0; i < 9'000'000; ++i) values += "0,";
  CHECK_ERROR(ErrorKind::unsupported, ("m.safetensors", "8000000"), open(safetensors(values, "")));
  CHECK_ERROR(
      ErrorKind::format, ("m.safetensors"),
      open(safetensors(
          R"({"t":{"dtype":"U8","shape":[4503599627370496],"data_offsets":[0,4503599627370496]}})", "")));
}

TEST_CASE("weights: every stored type converts or is refused by name") {
  const auto entry = [](Dtype dtype, std::string_view name, const auto& values) {
    TensorEntry out{.name = "t",
                    .dtype = dtype,
                    .dtype_name = std::string(name),
                    .shape = {std::size(values)},
                    .strides = {},
                    .bytes = std::as_bytes(std::span(values)),
                    .file = nullptr};
    return out;
  };
  const std::vector<std::uint16_t> halves = {0x3C00, 0x0001, 0x7BFF, 0xFC00, 0x7E00};
  const std::vector<double> from_half = to_double(entry(Dtype::f16, "F16", halves));
  CHECK(from_half[0] == 1.0);
  CHECK(from_half[1] == std::ldexp(1.0, -24));
  CHECK(from_half[2] == 65504.0);
  CHECK(from_half[3] == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(from_half[4]));
  const std::vector<double> doubles = {1.0 / 3.0, 1e300};
  CHECK(to_double(entry(Dtype::f64, "F64", doubles)) == doubles);
  CHECK(to_float(entry(Dtype::f64, "F64", doubles)).data()[0] == 1.0f / 3.0f);
  const std::vector<std::int64_t> integers = {1};
  CHECK_ERROR(ErrorKind::unsupported, ("\"t\"", "I64"), to_float(entry(Dtype::i64, "I64", integers)));
  CHECK_ERROR(ErrorKind::unsupported, ("\"t\"", "F8_E4M3"),
              to_double(entry(Dtype::other, "F8_E4M3", integers)));
  const TensorEntry whole = entry(Dtype::f64, "F64", doubles);
  std::vector<float> short_row(1);
  CHECK_THROWS_AS(convert(whole, std::span(short_row)), Error);
  TensorEntry deep = whole;
  deep.shape = {1, 1, 1, 1, 2};
  CHECK_THROWS_AS(to_float(deep), Error);
  CHECK(to_double(deep) == doubles);
}

TEST_CASE("weights: the file that is written is the file that is read") {
  const test::TemporaryFolder folder;
  const std::vector<float> floats = {1.0f, -2.5f, 3.0f, 0.0f, 1e-45f, 6.0f};
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  const std::vector<double> doubles = {0.1};
  const auto path = folder.path() / "out.safetensors";
  const TensorToWrite tensors[] = {
      {"bytes", Dtype::u8, {3}, std::as_bytes(std::span(bytes))},
      {"name \"with\"\n\xc3\xa9", Dtype::f32, {2, 3}, std::as_bytes(std::span(floats))},
      {"double", Dtype::f64, {}, std::as_bytes(std::span(doubles))},
      {"empty", Dtype::f32, {0, 4}, {}},
  };
  write_safetensors(path, tensors, {{"model", "tiny"}, {"note", "\xc3\xa9"}});
  const TensorFile file = open_safetensors(path);
  REQUIRE(file.entries().size() == 4);
  CHECK(file.metadata().at("model") == "tiny");
  CHECK(file.metadata().at("note") == "\xc3\xa9");
  const TensorEntry& named = file.at("name \"with\"\n\xc3\xa9");
  CHECK(named.shape == std::vector<std::size_t>{2, 3});
  CHECK(std::memcmp(named.bytes.copy().data(), floats.data(), named.bytes.size()) == 0);
  CHECK(to_double(file.at("double")) == doubles);
  CHECK(static_cast<int>(file.at("bytes").bytes.copy()[2]) == 3);
  for (const TensorEntry& entry : file.entries()) {
    if (entry.bytes.empty()) continue;
    CHECK(entry.bytes.begin() % dtype_bytes(entry.dtype) == 0);
  }
  write_safetensors(path, {});
  CHECK(open_safetensors(path).entries().empty());
}

TEST_CASE("weights: the writer refuses what a reader would refuse, and keeps the old file") {
  const test::TemporaryFolder folder;
  const std::vector<float> floats = {1.0f, 2.0f};
  const auto data = std::as_bytes(std::span(floats));
  const auto path = folder.write("out.safetensors", "old");
  const auto write = [&](std::vector<TensorToWrite> tensors) { write_safetensors(path, tensors); };
  CHECK_ERROR(ErrorKind::argument, ("\"t\"", "12"), write({{"t", Dtype::f32, {3}, data}}));
  CHECK_ERROR(ErrorKind::argument, ("\"t\""),
              write({{"t", Dtype::f32, {2}, data}, {"t", Dtype::f32, {2}, data}}));
  CHECK_ERROR(ErrorKind::argument, ("\"__metadata__\""), write({{"__metadata__", Dtype::f32, {2}, data}}));
  CHECK_ERROR(ErrorKind::argument, ("\"\xff\""), write({{"\xff", Dtype::f32, {2}, data}}));
  CHECK_ERROR(ErrorKind::argument, ("\"t\""), write({{"t", Dtype::other, {2}, data}}));
  CHECK_ERROR(ErrorKind::argument, ("\"t\"", "9"),
              write({{"t", Dtype::f32, {1, 1, 1, 1, 1, 1, 1, 1, 2}, data}}));
  CHECK(test::read_text(path) == "old");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_ERROR(ErrorKind::io, ("absent"), write_safetensors(folder.path() / "absent" / "out", {}));
}

TEST_CASE("weights: every safetensors file of the reference models opens") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  const std::filesystem::path root = test::shared_path("fixtures/models");
  std::size_t count = 0;
  for (const auto& folder : std::filesystem::directory_iterator(root)) {
    if (!folder.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      if (file.path().extension() != ".safetensors") continue;
      const TensorFile tensors = open_safetensors(file.path());
      for (const TensorEntry& entry : tensors.entries()) {
        if (is_floating(entry.dtype)) CHECK(to_double(entry).size() == entry.num_elements());
      }
      ++count;
    }
  }
  CHECK(count > 90);
  const TensorFile sharded =
      open_shards(root / "hf-dinov3-gated-sharded/model.safetensors.index.json", open_safetensors);
  CHECK(std::any_of(sharded.entries().begin(), sharded.entries().end(), [](const TensorEntry& entry) {
    return entry.file->path().filename() == "model-00003-of-00003.safetensors";
  }));
}

}  // namespace vit
