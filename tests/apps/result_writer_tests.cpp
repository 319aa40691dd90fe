#include "apps/vit/outputs/result_writer.h"

#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <numeric>
#include <vector>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/zip_writer.h"
#include "tests/apps/program.h"
#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/io/safetensors.h"
#include "vit/io/source_file.h"
#include "vit/io/zip_archive.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::app;
using test::TestFolder;
namespace fs = std::filesystem;

namespace {

const std::vector<float> kNumbers = [] {
  std::vector<float> out(64);
  std::iota(out.begin(), out.end(), 0.25f);
  return out;
}();

ResultArray array_of(Shape shape, std::size_t first = 0) {
  return {.shape = shape, .data = kNumbers.data() + first};
}

}  // namespace

TEST_CASE("apps: the extension of the output names its format") {
  constexpr std::array kAllowed{ResultFormat::npy, ResultFormat::jsonl};
  CHECK(result_format("a/b.npy", kAllowed) == ResultFormat::npy);
  CHECK(result_format("b.JSONL", kAllowed) == ResultFormat::jsonl);
  CHECK_THROWS_AS(result_format("b.npz", kAllowed), UsageError);
  CHECK_THROWS_AS(result_format("npy", kAllowed), UsageError);
}

TEST_CASE("apps: rows of one shape become one array, other rows an array each") {
  const TestFolder folder;
  const auto writer = make_result_writer(
      {.path = folder / "x.npz", .format = ResultFormat::npz, .names = {"pooled", "patches"}});
  CHECK(writer->add("a.jpg", std::array{array_of({3}), array_of({2, 1, 2})}).empty());
  CHECK(writer->add("b.jpg", std::array{array_of({3}, 3), array_of({1, 1, 2}, 4)}).empty());
  CHECK(folder.names().empty());  // nothing appears before the end
  writer->finish();
  CHECK(folder.names() == std::vector<std::string>{"x.npz"});
  const auto arrays = test::read_npz(folder / "x.npz");
  REQUIRE(arrays.size() == 4);
  CHECK(arrays.at("pooled").shape == std::vector<std::size_t>{2, 3});
  CHECK(arrays.at("pooled").floats() == std::vector<float>{0.25f, 1.25f, 2.25f, 3.25f, 4.25f, 5.25f});
  CHECK(arrays.at("patches.0").shape == std::vector<std::size_t>{2, 1, 2});
  CHECK(arrays.at("patches.1").shape == std::vector<std::size_t>{1, 1, 2});
  CHECK(arrays.at("patches.1").floats() == std::vector<float>{4.25f, 5.25f});
  CHECK(arrays.at("files").strings() == std::vector<std::string>{"a.jpg", "b.jpg"});
}

TEST_CASE("apps: safetensors carries the names of the files as metadata") {
  const TestFolder folder;
  const auto writer = make_result_writer(
      {.path = folder / "x.safetensors", .format = ResultFormat::safetensors, .names = {"cls"}});
  CHECK(writer->add("a \"quoted\".jpg", std::array{array_of({2})}).empty());
  CHECK(writer->add("b.jpg", std::array{array_of({2}, 2)}).empty());
  writer->finish();
  const TensorFile file = open_safetensors(folder / "x.safetensors");
  CHECK(file.at("cls").shape == std::vector<std::size_t>{2, 2});
  const Json files = parse_json(file.metadata().at("files"), "files");
  REQUIRE(files.size() == 2);
  CHECK(files[0].as_string() == "a \"quoted\".jpg");
}

TEST_CASE("apps: .npy takes one feature of one shape") {
  const TestFolder folder;
  const auto writer =
      make_result_writer({.path = folder / "x.npy", .format = ResultFormat::npy, .names = {"patches"}});
  CHECK(writer->add("a.jpg", std::array{array_of({2, 2})}).empty());
  CHECK(writer->add("b.jpg", std::array{array_of({2, 2}, 4)}).empty());
  const std::string defect = writer->add("c.jpg", std::array{array_of({3, 2})});
  CHECK(defect.find("patches is (3, 2), for the images before (2, 2)") != std::string::npos);
  writer->finish();
  const test::NpyArray array = test::parse_npy(test::read_text(folder / "x.npy"));
  CHECK(array.shape == std::vector<std::size_t>{2, 2, 2});
  CHECK(array.floats().back() == 7.25f);
}

TEST_CASE("apps: a run without rows writes nothing, an abandoned one leaves nothing") {
  const TestFolder folder;
  for (const ResultFormat format :
       {ResultFormat::npy, ResultFormat::npz, ResultFormat::safetensors, ResultFormat::jsonl}) {
    make_result_writer({.path = folder / "x.out", .format = format, .names = {"a"}})->finish();
    if (format == ResultFormat::jsonl) continue;  // keeps what it has for --resume
    const auto abandoned = make_result_writer({.path = folder / "x.out", .format = format, .names = {"a"}});
    CHECK(abandoned->add("a.jpg", std::array{array_of({2})}).empty());
  }
  CHECK(folder.names().empty());
}

TEST_CASE("apps: JSON lines keep the shape and can be continued") {
  const TestFolder folder;
  const ResultWriterOptions options{
      .path = folder / "x.jsonl", .format = ResultFormat::jsonl, .names = {"cls", "patches"}};
  {
    const auto writer = make_result_writer(options);
    CHECK(writer->add("a.jpg", std::array{array_of({2}), array_of({1, 2, 2})}).empty());
    CHECK(writer->add("b.jpg", std::array{array_of({2}, 2), array_of({1, 2, 2}, 3)}).empty());
  }
  CHECK(folder.names() == std::vector<std::string>{"x.jsonl.partial"});
  const std::string kept = test::read_text(folder / "x.jsonl.partial");
  test::write_text(folder / "x.jsonl.partial",
                   kept + "{\"file\": \"c.jpg\", \"cls\": [1.0");  // killed while writing

  ResultWriterOptions resumed = options;
  resumed.resume = true;
  {
    const auto writer = make_result_writer(resumed);
    CHECK(writer->take_done("a.jpg"));
    CHECK(!writer->take_done("a.jpg"));  // a second input of this name was not done
    CHECK(writer->take_done("b.jpg"));
    CHECK(!writer->take_done("c.jpg"));
    CHECK(writer->add("c.jpg", std::array{array_of({2}, 5), array_of({2, 1, 2}, 6)}).empty());
    writer->finish();
  }
  CHECK(folder.names() == std::vector<std::string>{"x.jsonl"});
  const std::string lines = test::read_text(folder / "x.jsonl");
  CHECK(lines ==
        kept +
            "{\"file\": \"c.jpg\", \"cls\": [5.25, 6.25], \"patches\": [[[6.25, 7.25]], [[8.25, 9.25]]]}\n");
  {
    const auto writer = make_result_writer(resumed);  // a finished file can be continued as well
    CHECK(writer->take_done("c.jpg"));
    writer->finish();
  }
  CHECK(test::read_text(folder / "x.jsonl") == lines);

  resumed.names = {"pooled"};
  CHECK_THROWS_AS(make_result_writer(resumed), Error);
  test::write_text(folder / "y.jsonl", "{\"a\": 1}\n");
  resumed.path = folder / "y.jsonl";
  CHECK_THROWS_AS(make_result_writer(resumed), Error);
  CHECK(test::read_text(folder / "y.jsonl") == "{\"a\": 1}\n");
  CHECK(folder.names() ==
        std::vector<std::string>{"x.jsonl", "y.jsonl"});  // no copy that a later run would take
}

TEST_CASE("apps: JSON lines are not continued with rows of another length") {
  const TestFolder folder;
  ResultWriterOptions options{
      .path = folder / "x.jsonl", .format = ResultFormat::jsonl, .names = {"patches"}};
  {
    const auto writer = make_result_writer(options);
    CHECK(writer->add("a.jpg", std::array{array_of({1, 2, 2})}).empty());
    writer->finish();
  }
  const std::string kept = test::read_text(folder / "x.jsonl");
  options.resume = true;
  {
    const auto writer = make_result_writer(options);
    CHECK_THROWS_WITH_AS(static_cast<void>(writer->add("b.jpg", std::array{array_of({2, 1, 3})})),
                         doctest::Contains("have 2 numbers, those of this model 3"), Error);
  }
  CHECK(test::read_text(folder / "x.jsonl") == kept);
  CHECK(folder.names() == std::vector<std::string>{"x.jsonl"});
  const auto writer = make_result_writer(options);
  CHECK(writer->add("b.jpg", std::array{array_of({3, 1, 2})}).empty());  // another grid of the same model
}

TEST_CASE("apps: two runs cannot write one .jsonl at a time") {
  const TestFolder folder;
  ResumableFile first(folder / "x.jsonl");
  first.write("a\n");
  CHECK_THROWS_AS(ResumableFile(folder / "x.jsonl"), Error);
  first.commit();
  CHECK(test::read_text(folder / "x.jsonl") == "a\n");
}

TEST_CASE("apps: a finished .jsonl is copied under the lock, and by only one run") {
  const TestFolder folder;
  const fs::path path = folder / "x.jsonl";
  test::write_text(path, "a\n");
  {
    ResumableFile first(path, ResumableFile::Start::continued);
    CHECK_THROWS_AS(ResumableFile(path, ResumableFile::Start::continued), Error);
    first.copy_finished();
    CHECK_THROWS_AS(ResumableFile(path, ResumableFile::Start::continued), Error);
    first.write("b\n");
    first.commit();
  }
  CHECK(test::read_text(path) == "a\nb\n");
  {
    ResumableFile second(path, ResumableFile::Start::continued);
    second.copy_finished();
    second.write("c\n");
    // another run's file under the name: nothing of it is taken, and it is left to that run
    fs::remove(ResumableFile::partial_path(path));
    test::write_text(ResumableFile::partial_path(path), "half");
    CHECK_THROWS_WITH_AS(second.commit(), doctest::Contains("removed or replaced"), Error);
  }
  CHECK(test::read_text(path) == "a\nb\n");
  CHECK(test::read_text(ResumableFile::partial_path(path)) == "half");
}

TEST_CASE("apps: what is no file of results is refused before it is copied") {
  const TestFolder folder;
  const fs::path path = folder / "x.jsonl";
  test::write_text(path, "PK");
  fs::resize_file(path, std::uintmax_t{1} << 40);  // sparse; more than the disk takes
  CHECK_THROWS_WITH_AS(
      make_result_writer({.path = path, .format = ResultFormat::jsonl, .names = {"a"}, .resume = true}),
      doctest::Contains("line 1 was not written by vit embed"), Error);
  CHECK(folder.names() == std::vector<std::string>{"x.jsonl"});
}

TEST_CASE("apps: a place that cannot be written is known before the work") {
  const TestFolder folder;
  CHECK_THROWS_AS(check_output_place(folder / "missing/x.npz"), Error);
  CHECK_THROWS_AS(check_output_place(folder.path()), Error);
  CHECK_THROWS_AS(check_output_place("/proc/x.npz"), Error);
  CHECK_THROWS_AS(check_output_place(folder / (std::string(300, 'x') + ".npz")), Error);
  CHECK_NOTHROW(check_output_place(folder / "x.npz"));
  CHECK(folder.names().empty());
}

TEST_CASE("apps: zip64 records are written and read where sizes need them") {
  const TestFolder folder;
  const std::string first(100, 'a'), second(300, 'b');
  const auto bytes_of = [](const std::string& text) { return std::as_bytes(std::span(text)); };
  for (const std::uint64_t zip64_from : {std::uint64_t{0}, std::uint64_t{200}, ZipWriter::kZip64From}) {
    AtomicFile file(folder / "x.zip", "test");
    ZipWriter archive(file, zip64_from);
    archive.add("one", std::array{bytes_of(first)});
    archive.add("two", std::array{bytes_of(first), bytes_of(second)});
    archive.add("none", std::array{std::span<const std::byte>()});
    archive.finish();
    file.commit();
    CAPTURE(zip64_from);
    const SourceFile source(folder / "x.zip", "test");
    const ZipRecords records = open_zip(source, "test");
    REQUIRE(records.size() == 3);
    const auto text_of = [&](std::string_view name) {
      const std::vector<std::byte> bytes = records.find(name)->second.bytes.copy();
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    CHECK(text_of("one") == first);
    CHECK(text_of("two") == first + second);
    CHECK(text_of("none").empty());
  }
}
