#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <sstream>
#include <thread>
#include <vector>

#include "apps/vit/commands/flops.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/run/ordered_stream.h"
#include "tests/apps/program.h"
#include "vit/config.h"

using namespace vit;
using namespace vit::app;
using test::TestFolder;

namespace {

struct Item {
  std::size_t value = 0;
  std::size_t size = 1;
  std::size_t bytes() const noexcept { return size; }
};

}  // namespace

TEST_CASE("apps: a stream passes on in order what threads prepare in any order") {
  for (const int threads : {1, 2, 7}) {
    OrderedStream<Item> stream(200,
                               [](std::size_t index) {
                                 std::this_thread::sleep_for(std::chrono::microseconds((index * 37) % 200));
                                 return Item{.value = index};
                               },
                               {.threads = threads, .max_items = 5});
    for (std::size_t i = 0; i < 200; ++i) REQUIRE(stream.next()->value == i);
    CHECK(!stream.next());
  }
}

TEST_CASE("apps: a stream stays within its limits and ends early without waiting for the rest") {
  std::atomic<std::size_t> started{0};
  {
    OrderedStream<Item> stream(1000,
                               [&](std::size_t index) {
                                 ++started;
                                 return Item{.value = index, .size = 100};
                               },
                               {.threads = 3, .max_items = 10, .max_bytes = 350});
    REQUIRE(stream.next()->value == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  CHECK(started <= 1 + 4 + 3);  // read, full, and one in work on each thread
  OrderedStream<Item> huge(3, [](std::size_t index) { return Item{.value = index, .size = 1000}; },
                           {.threads = 2, .max_items = 2, .max_bytes = 1});
  for (std::size_t i = 0; i < 3; ++i) CHECK(huge.next()->value == i);  // larger than the limit, one at a time
}

TEST_CASE("apps: inputs are listed in a stable order with stable names") {
  const TestFolder folder;
  for (const char* name : {"b.JPG", "a/z.png", "a/y/x.webp", "a-b.tiff", "c.txt", "noextension"}) {
    test::write_text(folder / ("in/" + std::string(name)), "x");
  }
  std::filesystem::create_directory_symlink(folder / "in", folder / "in/a/loop");
  std::filesystem::create_directory(folder / "empty");
  std::istringstream standard_input((folder / "in/b.JPG") + "\n" + (folder / "missing") + "\n");
  const std::vector<std::string> arguments{folder / "in", "-", folder / "empty", folder / "in/c.txt"};
  const InputList list = list_inputs(arguments, standard_input);
  std::vector<std::string> names;
  for (const Input& input : list.inputs) names.push_back(input.name);
  CHECK(names == std::vector<std::string>{folder / "in/a-b.tiff", folder / "in/a/y/x.webp",
                                          folder / "in/a/z.png", folder / "in/b.JPG", folder / "in/b.JPG",
                                          folder / "in/c.txt"});
  REQUIRE(list.failures.size() == 2);
  CHECK(list.failures[0].name == folder / "missing");
  CHECK(list.failures[1].name == folder / "empty");
  REQUIRE(list.notes.size() == 1);
  CHECK(list.notes[0].name == folder / "in");
  CHECK(list.notes[0].cause == "2 files are skipped, not images: 1 without extension, 1 .txt");
}

TEST_CASE("apps: a folder that several links lead to is read once") {
  const TestFolder folder;
  test::write_text(folder / "in/b/x.png", "x");
  for (const char* name : {"a", "c"}) {
    std::filesystem::create_directory_symlink(folder / "in/b", folder / ("in/" + std::string(name)));
    std::filesystem::create_directory_symlink(folder / "in", folder / ("in/b/" + std::string(name)));
  }
  InputList list;
  CHECK(images_below(folder / "in", list) == std::vector<std::string>{folder / "in/a/x.png"});
  CHECK(list.failures.empty());
  CHECK(list.notes.empty());
}

TEST_CASE("apps: a line of standard input that is no path does not hide those after it") {
  const TestFolder folder;
  const std::string zero("with\0zero", 9), name = folder / "a.png";
  std::istringstream standard_input(name + "\n" + std::string(5000, 'x') + "\n" + zero + "\n" + name);
  test::write_text(name, "x");
  const InputList list = list_inputs(std::vector<std::string>{"-"}, standard_input);
  CHECK(list.inputs.size() == 2);
  REQUIRE(list.failures.size() == 2);
  CHECK(list.failures[0].cause.find("line 2 ") != std::string::npos);
  CHECK(list.failures[1].cause.find("line 3 ") != std::string::npos);
}

TEST_CASE("apps: a mark of the byte order before the list belongs to no path") {
  const TestFolder folder;
  const std::string name = folder / "a.png";
  test::write_text(name, "x");
  std::istringstream standard_input("\xEF\xBB\xBF" + name + "\n" + name);
  const InputList list = list_inputs(std::vector<std::string>{"-"}, standard_input);
  REQUIRE(list.inputs.size() == 2);
  CHECK(list.inputs[0].name == name);
  CHECK(list.failures.empty());
}

TEST_CASE("apps: a file of more tiny images than anyone names is refused") {
  const TestFolder folder;
  const std::string name = folder / "x.npy";
  const std::size_t shape[] = {300'000'000, 3, 1, 1};
  const std::string header = npy_header("<f4", shape);
  test::write_text(name, header);
  std::filesystem::resize_file(name, header.size() + shape[0] * 3 * sizeof(float));  // sparse
  std::istringstream no_input;
  const InputList list = list_inputs(std::vector<std::string>{name}, no_input);
  CHECK(list.inputs.empty());
  REQUIRE(list.failures.size() == 1);
  CHECK(list.failures[0].cause.find("holds 300000000 images") != std::string::npos);
}

TEST_CASE("apps: standard input that holds no paths is a failure") {
  const std::vector<std::string> arguments{"-"};
  for (const std::string& text : {std::string(), std::string("\n\n"), std::string(100000, 'x')}) {
    std::istringstream standard_input(text);
    const InputList list = list_inputs(arguments, standard_input);
    CHECK(list.inputs.empty());
    REQUIRE(list.failures.size() == 1);
    CHECK(list.failures[0].name == "-");
  }
}

TEST_CASE("apps: FLOPs of ViT-Base agree with its paper table") {
  ModelConfig base;
  base.head.num_classes = 1000;  // 17.6 G multiply-adds at 224 (DeiT, table 5)
  CHECK(count_flops(base, {14, 14}).total() == doctest::Approx(2 * 17.56e9).epsilon(0.005));
  // the last block for one token of 197: all keys and values, one query, one row of projection and MLP
  const double all = count_flops(base, {14, 14}).total(), one = count_flops(base, {14, 14}, 1).total();
  CHECK(all - one == 2.0 * 196 * 768 * (2 * 768 + 2 * 197 + 2 * 3072));
  ModelConfig gated = base;
  gated.mlp.kind = MlpKind::gated;
  CHECK(count_flops(gated, {14, 14}).mlp == 1.5 * count_flops(base, {14, 14}).mlp);
}
