#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/cpu_time.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "tests/support/temporary_file.h"
#include "vit/weights/files/pickle.h"

namespace vit {
using namespace internal;

namespace {

namespace op = test::opcode;
using test::torch_archive;

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::string refusal(std::string_view bytes) {
  static const test::TemporaryFolder folder;
  return test::error_text<Error>([&] { open_pickle(folder.write("m.pth", bytes)); });
}

const std::string kStorage = test::floats({0, 1, 2, 3, 4, 5});

/// A state dictionary with one tensor "t".
std::string one(const op::Tensor& tensor = {}) {
  return op::dict(op::string("t") + op::tensor(tensor));
}
std::string refusal_of(const op::Tensor& tensor, const std::string& storage = kStorage) {
  return refusal(torch_archive(one(tensor), storage));
}
/// A valid dictionary with something beside its tensor.
std::string refusal_beside(const std::string& value) {
  return refusal(
      torch_archive(op::dict(op::string("t") + op::tensor({}) + op::string("x") + value), kStorage));
}

std::vector<double> read_one(const op::Tensor& tensor) {
  const test::TemporaryFolder folder;
  return to_double(open_pickle(folder.write("m.pth", torch_archive(one(tensor), kStorage))).at("t"));
}

}  // namespace

TEST_CASE("weights: every form of torch.save reads as PyTorch shows it") {
  const test::FixtureTensors expected(test::data_path("golden/pickle/expected.safetensors"));
  std::size_t num_compared = 0;
  for (const char* form : {"plain", "module_state", "parameters", "protocol5", "training", "nested",
                           "teacher", "members", "views", "types"}) {
    CAPTURE(form);
    const TensorFile file = open_pickle(test::data_path("golden/pickle/" + std::string(form) + ".pth"));
    for (const TensorEntry& entry : file.entries()) {
      CAPTURE(entry.name);
      const std::string name = form + ("/" + entry.name);
      if (!is_floating(entry.dtype)) {
        CHECK_THROWS_AS(to_float(entry), Error);
        continue;
      }
      REQUIRE(expected.has(name));
      CHECK(entry.shape == expected.shape(name));
      CHECK(to_double(entry) == expected.doubles(name));
      ++num_compared;
    }
  }
  // All but num_batches_tracked, an integer, in module_state, protocol5 and training.
  CHECK(num_compared == expected.file().entries().size() - 3);
}

TEST_CASE("weights: what is no tensor is listed") {
  const auto ignored = [](const std::string& form) {
    return open_pickle(test::data_path("golden/pickle/" + form)).ignored();
  };
  using Names = std::vector<std::string>;
  CHECK(ignored("training.pth") == Names{"optimizer", "lr_scheduler", "epoch", "seed", "best", "args"});
  CHECK(ignored("nested.pth") == Names{"epoch", "state_dict.step"});
  CHECK(ignored("teacher.pth") == Names{"student"});
  CHECK(ignored("members.pth") == Names{"epoch", "name", "sizes"});
  CHECK(ignored("plain.pth").empty());
  const auto container = [](const std::string& form) {
    return open_pickle(test::data_path("golden/pickle/" + form)).container();
  };
  CHECK(container("training.pth") == "model");
  CHECK(container("plain.pth").empty());
}

TEST_CASE("weights: other formats of PyTorch are refused by their name") {
  const auto refused = [](const std::string& name) {
    return test::error_text<Error>([&] { open_pickle(test::data_path("golden/pickle/" + name)); });
  };
  CHECK(contains(refused("before_zip.pth"), "before PyTorch 1.6"));
  CHECK(contains(refused("torchscript.pt"), "TorchScript"));
  CHECK(contains(refused("foreign_class.pth"), "it names \"pathlib.PurePosixPath\""));
  CHECK(contains(refused("expected.safetensors"), "zip archive was expected"));
}

TEST_CASE("weights: a PyTorch archive holds the same tensors as its safetensors twin") {
  SKIP_WITHOUT_SHARED("fixtures/models");
  const std::filesystem::path root = test::shared_path("fixtures/models");
  for (const char* folder : {"orig-naver-rope-mixed", "orig-meta-dinov3"}) {
    CAPTURE(folder);
    const TensorFile archive = open_pickle(root / folder / "model.pth");
    const TensorFile twin = open_safetensors(root / folder / "model.safetensors");
    REQUIRE(archive.entries().size() == twin.entries().size());
    for (const TensorEntry& expected : twin.entries()) {
      const TensorEntry& found = archive.at(expected.name);
      CAPTURE(found.describe());
      CHECK(found.shape == expected.shape);
      // By value: the archive stores one tensor as bfloat16, its twin as float32.
      CHECK(to_double(found) == to_double(expected));
    }
  }
  for (const char* folder : {"orig-eva02-base", "orig-eva02-tiny", "orig-meta-pe-core"}) {
    CHECK(open_pickle(root / folder / "model.pth").entries().size() > 20);
  }
}

TEST_CASE("weights: an archive made by hand loads") {
  CHECK(read_one({}) == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(read_one({.shape = {3, 2}, .strides = {1, 3}}) == std::vector<double>{0, 3, 1, 4, 2, 5});
  CHECK(read_one({.offset = 4, .shape = {2}, .strides = {1}}) == std::vector<double>{4, 5});
  CHECK(read_one({.offset = 5, .shape = {}, .strides = {}}) == std::vector<double>{5});
  CHECK(read_one({.offset = 1, .shape = {3}, .strides = {2}}) == std::vector<double>{1, 3, 5});
  CHECK(read_one({.shape = {2, 2}, .strides = {0, 1}}) == std::vector<double>{0, 1, 0, 1});
  CHECK(read_one({.shape = {1, 6}, .strides = {999, 1}}).size() ==
        6);  // the stride of a single row says nothing
  CHECK(read_one({.offset = 6, .shape = {0, 3}, .strides = {3, 1}}).empty());
  CHECK(read_one({.metadata = "}"}).size() == 6);
}

TEST_CASE("weights: containers are searched in the stated order, and an unknown one is named") {
  const auto tensor_at = [](std::int64_t offset) {
    return op::dict(op::string("t") + op::tensor({.offset = offset, .shape = {1}, .strides = {1}}));
  };
  const char* const order[] = {"state_dict_ema", "model_ema", "state_dict", "model", "model_state_dict",
                               "module",         "teacher",   "net",        "ema",   "student"};
  const test::TemporaryFolder folder;
  for (std::size_t i = 0; i < std::size(order); ++i) {
    CAPTURE(std::string(order[i]));
    std::string members = op::string("epoch") + op::string("3");
    if (i + 1 < std::size(order)) members += op::string(order[i + 1]) + tensor_at(0);  // the next one loses
    members += op::string(order[i]) + tensor_at(5);
    const auto path = folder.write("m.pth", torch_archive(op::dict(members), kStorage));
    const TensorFile file = open_pickle(path);
    CHECK(to_double(file.at("t")) == std::vector<double>{5});
    CHECK(file.container() == order[i]);
    CHECK(file.ignored().size() == (i + 1 < std::size(order) ? 2 : 1));
  }
  const std::string unknown =
      refusal(torch_archive(op::dict(op::string("weights") + tensor_at(0)), kStorage));
  CHECK_MESSAGE(contains(unknown, "holds no tensors where a state dictionary was expected, but \"weights\""),
                unknown);
}

TEST_CASE("weights: a hostile global is refused by name and nothing runs") {
  const auto call = [](std::string_view module, std::string_view name) {
    return refusal_beside(op::global(module, name) + op::tuple(op::string("echo")) + "R");
  };
  SUBCASE("valid still loads") {
    CHECK(refusal_beside(op::global("argparse", "Namespace") + ")\x81}b") == "no Error");
    CHECK(refusal_beside(op::global("torch", "Size") + "(" + op::sizes({1, 2}) + "tR") == "no Error");
  }
  SUBCASE("by GLOBAL") {
    CHECK(contains(call("os", "system"), "it names \"os.system\""));
    CHECK(contains(call("posix", "system"), "\"posix.system\""));
    CHECK(contains(call("builtins", "eval"), "\"builtins.eval\""));
    CHECK(contains(call("torch", "load"), "\"torch.load\""));
    CHECK(contains(call("torch._utils", "_rebuild_tensor_v3"), "\"torch._utils._rebuild_tensor_v3\""));
    CHECK(contains(call("collections", "OrderedDict.clear"), "\"collections.OrderedDict.clear\""));
    CHECK(contains(call("torch", "QUInt8Storage"), "QUInt8Storage"));
    CHECK(contains(call("os\x01\x1b[2J", "x"), "os\\x01\\x1b[2J.x"));
    CHECK(contains(refusal_beside("c" + std::string(100'000, 'a') + "\nb\n"), "too long"));
  }
  SUBCASE("by STACK_GLOBAL") {
    CHECK(contains(refusal_beside(op::string("os") + op::string("system") + "\x93"), "\"os.system\""));
    CHECK(contains(refusal_beside("K\x01" + op::string("system") + "\x93"), "expected a string"));
  }
  SUBCASE("never called") {
    CHECK(contains(refusal_beside(op::global("os", "system")), "\"os.system\""));
  }
  SUBCASE("other ways to run something") {
    CHECK(contains(refusal_beside("(" + op::string("x") + "ios\nsystem\n"), "opcode 105"));  // INST
    CHECK(contains(refusal_beside("(oK\x01"), "opcode 111"));                                // OBJ
    CHECK(contains(refusal_beside("\x82\x01"), "opcode 130"));                               // EXT1
    CHECK(contains(refusal_beside("Pkey\n"), "opcode 80"));                                  // PERSID
    CHECK(contains(refusal_beside(op::global("torch", "FloatStorage") + op::sizes({4}) + "R"),
                   "calls a class"));
    CHECK(contains(refusal_beside(op::global("argparse", "Namespace") + ")R"), "calls a class"));
    CHECK(contains(refusal_beside(op::global("collections", "OrderedDict") + ")\x81"),
                   "no argparse.Namespace"));
    CHECK(contains(refusal_beside(op::global("argparse", "Namespace") + "}b"), "sets attributes of a class"));
    CHECK(contains(refusal_beside("]}b"), "sets attributes of a list"));
    CHECK(contains(refusal_beside(op::string("os.system") + ")R"), "expected a class or function"));
  }
}

TEST_CASE("weights: a broken pickle is refused") {
  const auto program = [](const std::string& text) { return refusal(torch_archive(text, kStorage)); };
  SUBCASE("valid still loads") {
    CHECK(program(one()) == "no Error");
  }
  SUBCASE("every cut") {
    const std::string whole = one();
    for (std::size_t size = 0; size < whole.size(); ++size)
      REQUIRE(program(whole.substr(0, size)) != "no Error");
  }
  SUBCASE("frame of the program") {
    const auto bare = [](const std::string& bytes) {
      return refusal(
          test::zip({{.name = "x/data.pkl", .data = bytes}, {.name = "x/data/0", .data = kStorage}}));
    };
    CHECK(bare("\x80\x02" + one() + ".") == "no Error");
    CHECK(contains(bare(""), "cut off"));
    CHECK(contains(bare("\x80"), "cut off"));
    CHECK(contains(bare(one() + "."), "does not begin"));
    CHECK(contains(bare("\x80\x06" + one() + "."), "protocol 6"));
    CHECK(contains(bare("\x80\x02" + one() + ".x"), "left over"));
    CHECK(contains(bare("\x80\x02N" + one() + "."), "left over"));
    CHECK(contains(bare("\x80\x02(" + one() + "."), "left over"));
    CHECK(contains(bare("\x80\x02" + one()), "cut off"));
    CHECK(contains(bare("\x80\x04\x95" + test::raw<std::uint64_t>(~0ull) + one() + "."), "frame"));
  }
  SUBCASE("stack") {
    for (const char* text : {"0",
                             "t",
                             "u",
                             "e",
                             "a",
                             "s",
                             "R",
                             "b",
                             "Q",
                             "\x81",
                             "\x85",
                             "\x87",
                             "\x93",
                             "q\x01",
                             "(R",
                             "K\x01(\x85",
                             "}(K\x01u",
                             "N(K\x01K\x02u",
                             "K\x01K\x02K\x03s",
                             "K\x01K\x02"
                             "a"}) {
      CAPTURE(text);
      CHECK(contains(program(text), "of the pickle"));
    }
  }
  SUBCASE("memo") {
    CHECK(contains(program("h\x05"), "recalls object 5"));
    CHECK(contains(program("j" + test::raw<std::uint32_t>(4'000'000'000u)), "recalls object 4000000000"));
    CHECK(refusal_beside("]r" + test::raw<std::uint32_t>(4'000'000'000u)) == "no Error");
  }
  SUBCASE("lengths") {
    CHECK(contains(refusal_beside("X" + test::raw<std::uint32_t>(~0u)), "cut off"));
    CHECK(contains(refusal_beside("\x8d" + test::raw<std::uint64_t>(~0ull)), "cut off"));
    CHECK(contains(refusal_beside("\x8b" + test::raw<std::uint32_t>(~0u)), "cut off"));
    CHECK(contains(refusal_beside("\x8a\xff"), "cut off"));
  }
  SUBCASE("results that are no state dictionary") {
    CHECK(contains(program("]"), "holds a list"));
    CHECK(contains(program(op::tensor({})), "holds a tensor"));
    CHECK(contains(program("}"), "no tensors"));
    CHECK(contains(program(op::dict(op::string("model") + "}")), "no tensors"));
    CHECK(contains(program(op::dict(op::string("x") + op::dict(op::string("t") + op::tensor({})))),
                   "no tensors"));
    CHECK(contains(program(op::dict(op::string("t") + op::tensor({}) + op::string("t") + op::tensor({}))),
                   "twice"));
    CHECK(contains(program(op::dict(op::string("\xff") + op::tensor({}))), "UTF-8"));
  }
}

TEST_CASE("weights: bombs in a pickle end at a limit") {
  const auto program = [](const std::string& text) { return refusal(torch_archive(text, kStorage)); };
  // Each would need far more memory or stack than the file has bytes if it were followed.
  CHECK(refusal_beside(std::string(500'000, ']') + std::string(499'999, 'a')) == "no Error");  // nested lists
  CHECK(contains(program(std::string(2'000'000, ']')), "on the stack"));
  CHECK(contains(program(std::string(2'000'000, '(')), "too many marks"));
  CHECK(contains(program(std::string(2'000'000, '}')), "objects"));
  std::string memo = "]";
  for (std::uint32_t i = 0; i < 1'200'000; ++i) memo += "r" + test::raw(i);
  CHECK(contains(program(memo), "more than 1000000 objects"));
  std::string doubling = "K\x01q" + std::string(1, '\0');  // t = (t, t), a hundred times
  for (int i = 0; i < 100; ++i) doubling += std::string("h\0\x86q\0", 5).insert(1, std::string("\0h", 2));
  CHECK(refusal_beside(doubling) == "no Error");
  CHECK(refusal_beside("}q\x05(" + op::string("model") + "h\x05u") ==
        "no Error");  // a dictionary inside itself
  CHECK(contains(program("}q\x05(" + op::string("model") + "h\x05u"), "no tensors"));
}

TEST_CASE("weights: keys of the memo that would collide in a hash table cost no more than others") {
  // 85229 is a number of buckets of libstdc++, the one for as many objects as here.
  const auto seconds = [](std::uint32_t step) {
    constexpr std::uint32_t kObjects = 50'000;
    std::string program = "]";
    for (std::uint32_t i = 0; i < kObjects; ++i) program += "r" + test::raw(i * step);
    for (std::uint32_t i = 0; i < kObjects; ++i) {
      program += "r" + test::raw(i * 7919 % kObjects * step);  // not the newest of its bucket
    }
    return test::cpu_seconds([&] { CHECK(refusal_beside(program) == "no Error"); });
  };
  const double spread = seconds(1);
  CHECK(seconds(85'229) < 20 * spread + 0.5);
}

TEST_CASE("weights: one string of a pickle is not copied for every member that has it as key") {
  const std::string key = op::string(std::string(100'000, 'k'));
  const std::string members = "N" + key + "q\x01N";
  CHECK(refusal_beside(members) == "no Error");
  std::string many = members;
  for (int i = 0; i < 1000; ++i) many += "h\x01N";
  CHECK(contains(refusal_beside(many), "longer than the pickle"));
  // in the dictionary inside a container, too
  CHECK(contains(
      refusal(torch_archive(op::dict(op::string("model") + op::dict(op::string("x") + many)), kStorage)),
      "longer than the pickle"));
  CHECK(contains(refusal_of({.key = std::string(257, '0')}), "a storage has a name of 257 bytes"));
  const std::string folder(2000, 'x');
  CHECK(contains(refusal(test::zip({{.name = folder + "/data.pkl", .data = "\x80\x02" + one() + "."},
                                    {.name = folder + "/data/0", .data = kStorage}})),
                 "a name of 2001 bytes"));
}

TEST_CASE("weights: tensors that share storages do not multiply the file") {
  constexpr std::int64_t kElements = 4096;
  const auto shared_by = [](int count) {
    std::string members;
    for (int i = 0; i < count; ++i) {
      members += op::string("t" + std::to_string(i)) +
                 op::tensor({.storage_elements = kElements, .shape = {kElements}, .strides = {1}});
    }
    return refusal(torch_archive(op::dict(members), std::string(kElements * sizeof(float), '\0')));
  };
  CHECK(shared_by(1) == "no Error");
  CHECK(shared_by(4) == "no Error");  // tied weights
  CHECK(contains(shared_by(8), "more than 4 times the file"));
  CHECK(contains(shared_by(8), "tensor \"t"));
}

TEST_CASE("weights: a tensor must lie inside its storage") {
  SUBCASE("valid still loads") {
    CHECK(refusal_of({}) == "no Error");
  }
  SUBCASE("storage") {
    CHECK(contains(refusal_of({.key = "1"}), "which the archive lacks"));
    CHECK(contains(refusal_of({.key = "../data/0"}), "which the archive lacks"));
    CHECK(contains(refusal_of({.storage_elements = 7}), "28 were announced"));
    CHECK(contains(refusal_of({.storage_elements = 5}), "20 were announced"));
    CHECK(contains(refusal_of({.storage_elements = -6}), "found -6"));
    CHECK(contains(refusal_of({.storage_elements = (std::int64_t{1} << 62) + 6}), "overflow"));
    CHECK(contains(refusal_of({.storage_type = "DoubleStorage"}), "48 were announced"));
  }
  SUBCASE("view") {
    CHECK(contains(refusal_of({.offset = 1}), "reaches element 6"));
    CHECK(contains(refusal_of({.offset = -1}), "found -1"));
    CHECK(contains(refusal_of({.offset = std::numeric_limits<std::int64_t>::max()}), "reaches element"));
    CHECK(contains(refusal_of({.shape = {2, 4}, .strides = {4, 1}}), "reaches element 7"));
    CHECK(contains(refusal_of({.shape = {2, 3}, .strides = {4, 1}}), "reaches element 6"));
    CHECK(contains(refusal_of({.shape = {2, -3}, .strides = {3, 1}}), "found -3"));
    CHECK(contains(refusal_of({.shape = {2, 3}, .strides = {-3, 1}}), "found -3"));
    CHECK(contains(refusal_of({.shape = {2, 3}, .strides = {1}}), "2 dimensions has 1 strides"));
    CHECK(contains(refusal_of({.shape = {2}, .strides = {std::numeric_limits<std::int64_t>::max()}}),
                   "reaches"));
    CHECK(contains(refusal_of({.shape = {4}, .strides = {std::numeric_limits<std::int64_t>::max()}}),
                   "overflow"));
    CHECK(contains(refusal_of({.shape = {1ll << 32, 1ll << 32}, .strides = {0, 0}}), "overflow"));
    CHECK(contains(refusal_of({.shape = {1ll << 40}, .strides = {0}}), "larger than the file"));
    CHECK(contains(refusal_of({.shape = {1, 1, 1, 1, 1, 1, 1, 1, 6}, .strides = {6, 6, 6, 6, 6, 6, 6, 6, 1}}),
                   "9 dimensions"));
  }
  SUBCASE("pending operations") {
    CHECK(contains(refusal_of({.metadata = op::dict(op::string("neg") + "\x88")}), "pending negation"));
    CHECK(contains(refusal_of({.metadata = "K\x01"}), "pending negation"));
  }
  SUBCASE("something else in its place") {
    const std::string rebuild = op::global("torch._utils", "_rebuild_tensor_v2");
    CHECK(contains(refusal_beside(rebuild + ")R"), "made from something else"));
    CHECK(contains(refusal_beside(rebuild + "(NNNNNNtR"), "made from something else"));
    CHECK(contains(refusal_beside(op::global("torch._utils", "_rebuild_parameter") + "(N\x88NtR"),
                   "a parameter"));
    CHECK(contains(refusal_beside("(K\x01tQ"), "no tensor storage"));
    CHECK(contains(refusal_beside("K\x01Q"), "expected a tuple"));
  }
}

TEST_CASE("weights: a damaged zip archive is refused") {
  const test::ZipRecordToWrite program{.name = "x/data.pkl", .data = "\x80\x02" + one() + "."};
  const test::ZipRecordToWrite storage{.name = "x/data/0", .data = kStorage};
  const auto with = [&](const test::ZipRecordToWrite& record) {
    return refusal(test::zip({program, record}));
  };
  SUBCASE("valid still loads") {
    CHECK(refusal(test::zip({program, storage})) == "no Error");
    CHECK(refusal(test::zip({program, storage}, {.zip64 = true})) == "no Error");
    CHECK(refusal(test::zip({program, storage}, {.comment = "PK\x05\x06 in a comment"})) == "no Error");
    CHECK(refusal(test::zip({program, storage, {.name = "x/byteorder", .data = "little"}})) == "no Error");
    CHECK(with({.name = "x/data/0", .data = kStorage, .flags = 8, .local_bytes = 0}) == "no Error");
  }
  SUBCASE("sizes in the zip64 field") {
    const auto field = test::raw<std::uint16_t>(1) + test::raw<std::uint16_t>(16);
    const auto number = [](std::uint64_t value) { return test::raw(value) + test::raw(value); };
    const auto extra = [&](const std::string& bytes) {
      return with({.name = "x/data/0",
                   .data = kStorage,
                   .central_bytes = ~0u,
                   .local_bytes = ~0u,
                   .central_extra = bytes});
    };
    CHECK(extra(field + number(24)) == "no Error");
    CHECK(extra(test::raw<std::uint32_t>(0x00000002) + field + number(24)) ==
          "no Error");  // behind another field
    CHECK(contains(extra(field + number(1ull << 60)), "runs past the end"));
    CHECK(contains(extra(field + test::raw<std::uint64_t>(24)), "cut off"));
    CHECK(contains(
        extra(test::raw<std::uint16_t>(1) + test::raw<std::uint16_t>(8) + test::raw<std::uint64_t>(24)),
        "too short"));
    CHECK(contains(extra(""), "lacks its zip64 field"));
  }
  SUBCASE("every cut") {
    const std::string whole = test::zip({program, storage}, {.zip64 = true});
    for (std::size_t size = 1; size < whole.size(); ++size)
      REQUIRE(refusal(whole.substr(0, size)) != "no Error");
  }
  SUBCASE("end of directory") {
    CHECK(contains(refusal("PK\x03\x04 and no more"), "without directory"));
    CHECK(contains(refusal(test::zip({program, storage}) + "x"), "without directory"));
    CHECK(contains(refusal(test::zip({program, storage}, {.extra_records = 1})), "announces"));
    CHECK(contains(refusal(test::zip({program, storage}, {.extra_records = 60'000})), "announces"));
    CHECK(contains(refusal(test::zip({program, storage}, {.moved_directory = 4})),
                   "not where the end record says"));
    CHECK(
        contains(refusal(test::zip({program, storage}, {.zip64 = true, .moved_directory = 4})), "not where"));
    CHECK(contains(refusal("PK\x03\x04 in front" + test::zip({program, storage})), "not where"));
    CHECK(contains(refusal(test::zip({})), "*/data.pkl"));
  }
  SUBCASE("records") {
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .method = 8}), "is compressed"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .flags = 1}), "is encrypted"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_bytes = 23}), "another size"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_bytes = 0}), "another size"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_name = "x/data/1"}), "another name"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .central_bytes = 4096, .local_bytes = 4096}),
                   "runs past the end"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_offset = 4}), "no local header"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_offset = 0xFFFFFFF0}),
                   "no local header"));
    CHECK(contains(with({.name = "x/data/0", .data = kStorage, .local_offset = 0}), "another name"));
    CHECK(contains(refusal(test::zip({program, storage, storage})), "occurs twice"));
    CHECK(
        contains(refusal(test::zip({program, {.name = "y/data.pkl", .data = "x"}})), "2 records */data.pkl"));
    CHECK(contains(refusal(test::zip({program, storage, {.name = "x/constants.pkl", .data = "x"}})),
                   "TorchScript"));
    CHECK(contains(refusal(test::zip({program, storage, {.name = "x/byteorder", .data = "big"}})),
                   "byte order \"big\""));
  }
  SUBCASE("overlap") {
    // The second record is hidden in the data of the first.
    const std::string inner = test::zip({{.name = "x/data/0", .data = kStorage}});
    const std::string hidden = inner.substr(0, 30 + 8 + 24);
    const auto offset = static_cast<std::uint32_t>(30 + program.name.size() + program.data.size() + 30 + 5);
    CHECK(contains(refusal(test::zip({program,
                                      {.name = "x/pad", .data = hidden},
                                      {.name = "x/data/0", .data = kStorage, .local_offset = offset}})),
                   "overlap"));
  }
}

}  // namespace vit
