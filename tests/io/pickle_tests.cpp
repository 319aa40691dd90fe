#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/cpu_time.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/fixture_tensors.h"
#include "tests/support/shared_data.h"
#include "vit/io/pickle.h"
#include "vit/model.h"

namespace vit {
using namespace internal;

namespace {

namespace op = test::opcode;
using test::torch_archive;

TensorFile open(std::string_view bytes) {
  static const test::TemporaryFolder folder;
  return open_pickle(folder.write("m.pth", bytes));
}

const std::string kStorage = test::floats({0, 1, 2, 3, 4, 5});

/// A state dictionary with one tensor "t".
std::string one(const op::Tensor& tensor = {}) {
  return op::dict(op::string("t") + op::tensor(tensor));
}
TensorFile open_one(const op::Tensor& tensor, const std::string& storage = kStorage) {
  return open(torch_archive(one(tensor), storage));
}
/// The name without the dictionary that holds it.
std::string without_container(const std::string& name, std::string_view container) {
  return name.starts_with(container) ? name.substr(container.size()) : name;
}
/// A valid dictionary with something in addition to its tensor.
TensorFile open_beside(const std::string& value) {
  return open(torch_archive(op::dict(op::string("t") + op::tensor({}) + op::string("x") + value), kStorage));
}

std::vector<double> read_one(const op::Tensor& tensor) {
  const test::TemporaryFolder folder;
  return to_double(open_pickle(folder.write("m.pth", torch_archive(one(tensor), kStorage))).at("t"));
}

}  // namespace

TEST_CASE("weights: every form of torch.save reads as PyTorch shows it") {
  const test::FixtureTensors expected(test::data_path("golden/pickle/expected.safetensors"));
  struct Form {
    const char* file;
    const char* container;  // in front of the tensors that are compared
  };
  constexpr Form kForms[] = {{"plain", ""},           {"module_state", ""},
                             {"parameters", ""},      {"protocol5", ""},
                             {"training", "model."},  {"nested", "state_dict.module."},
                             {"teacher", "teacher."}, {"members", ""},
                             {"views", ""},           {"types", ""}};
  std::size_t num_compared = 0;
  for (const Form& form : kForms) {
    CAPTURE(form.file);
    const TensorFile file = open_pickle(test::data_path("golden/pickle/" + std::string(form.file) + ".pth"));
    for (const TensorEntry& entry : file.entries()) {
      CAPTURE(entry.name);
      if (!entry.name.starts_with(form.container)) continue;
      const std::string name = form.file + ("/" + without_container(entry.name, form.container));
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
  const auto members = [](const std::string& form) {
    std::vector<std::string> top;
    const TensorFile file = open_pickle(test::data_path("golden/pickle/" + form));
    for (const std::string& member : file.members()) {
      if (member.find('.') == member.npos) top.push_back(member);
    }
    return top;
  };
  using Names = std::vector<std::string>;
  CHECK(members("training.pth") ==
        Names{"model", "optimizer", "lr_scheduler", "epoch", "seed", "best", "args"});
  CHECK(members("nested.pth") == Names{"epoch", "state_dict"});
  CHECK(members("members.pth") == Names{"epoch", "name", "sizes"});
  CHECK(members("plain.pth").empty());
  const auto facts = open_pickle(test::data_path("golden/pickle/training.pth")).facts();
  CHECK(facts.at("epoch") == "7");
  CHECK(facts.at("args.name") == "tiny");
}

TEST_CASE("weights: tensors of other formats of PyTorch are read") {
  const auto golden = [](const std::string& name) {
    return open_pickle(test::data_path("golden/pickle/" + name));
  };
  for (const char* form : {"before_zip.pth", "foreign_class.pth"})
    CHECK(to_double(golden(form).at("weight")) == std::vector<double>{-3.0, -2.5});
  const TensorFile script = golden("torchscript.pt");
  CHECK(!script.entries().empty());
  for (const TensorEntry& entry : script.entries()) CHECK_NOTHROW(to_double(entry));
  CHECK_ERROR(ErrorKind::format, ("expected.safetensors"), golden("expected.safetensors"));
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
      const TensorEntry* const plain = archive.find(expected.name);
      const TensorEntry& found = plain != nullptr ? *plain : archive.at("model." + expected.name);
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

TEST_CASE("weights: a tensor is called by the keys that lead to it") {
  const std::string tensor = op::tensor({.offset = 5, .shape = {1}, .strides = {1}});
  const auto names = [&](const std::string& program) {
    std::vector<std::string> out;
    const TensorFile file = open(torch_archive(program, kStorage));
    for (const TensorEntry& entry : file.entries()) out.push_back(entry.name);
    return out;
  };
  using Names = std::vector<std::string>;
  const std::string inner = op::dict(op::string("t") + tensor);
  CHECK(names(op::dict(op::string("weights") + inner + op::string("epoch") + op::string("3"))) ==
        Names{"weights.t"});
  CHECK(names(op::dict(op::string("a") + op::dict(op::string("b") + inner))) == Names{"a.b.t"});
  CHECK(names(op::tuple(inner + "K\x07")) == Names{"0.t"});
  CHECK(names(op::dict("K\x03" + inner)) == Names{"3.t"});
  SUBCASE("items of lists have their number, pairs of a name and a value the name") {
    CHECK(names("](" + inner + "}e") == Names{"0.t"});
    CHECK(names(op::dict(op::string("models") + "](K\x01" + inner + "e")) == Names{"models.0.t"});
    CHECK(names("](" + op::tuple(op::string("a") + tensor) + "e") == Names{"a"});
    CHECK(names("]q\x05(h\x05" + inner + "e") == Names{"1.t"});  // a list inside itself
    CHECK(names(op::dict(op::string("a") + tensor + op::string("log") + "](" + op::tuple("K\x01K\x02") +
                         "e")) == Names{"a"});
  }
  SUBCASE("one dictionary under two names counts once") {
    CHECK(names(op::dict(op::string("a") + inner + "q\x05" + op::string("b") + "h\x05")) == Names{"a.t"});
  }
  SUBCASE("a module that was saved whole has the names of its state dictionary") {
    const std::string layer = op::global("torch.nn.modules.linear", "Linear") + ")\x81" +
                              op::dict(op::string("training") + "\x88" + op::string("_parameters") +
                                       op::dict(op::string("weight") + tensor)) +
                              "b";
    const std::string model = op::global("my.models", "Vit") + ")\x81" +
                              op::dict(op::string("_modules") + op::dict(op::string("head") + layer)) + "b";
    CHECK(names(model) == Names{"head.weight"});
    CHECK(names(op::dict(op::string("model") + model)) == Names{"model.head.weight"});
  }
}

TEST_CASE("weights: objects of any class are skipped without being built") {
  // numpy scalars and arrays, paths, enums (nested ones through getattr), dataclasses, OmegaConf, datetime
  const std::string made = op::global("pkg.mod", "Thing");
  for (const std::string& value :
       {made + ")R",
        made + "(K\x01K\x02tR",
        made + ")\x81",
        made + ")\x81}b",
        made + ")}\x92",
        op::global("numpy._core.multiarray", "scalar") +
            op::tuple(op::global("numpy", "dtype") + op::tuple(op::string("f8")) + "R" +
                      std::string("C\x02") + "ab") +
            "R",
        op::global("__builtin__", "getattr") + op::tuple(made + op::string("Inner")) + "RK\x01\x85R",
        op::global("collections", "defaultdict") + op::tuple(op::global("__builtin__", "list")) +
            "R(K\x01K\x02u",
        op::global("my", "List") + ")\x81(K\x01K\x02"
                                   "e",
        std::string("(imy.module\nOld\n"),
        "(" + made + "K\x01o",
        made + ")R(K\x01\x90",
        std::string("(K\x01\x91"),
        std::string("\x8f(K\x01\x90"),
        std::string("(K\x01K\x02"
                    "d"),
        std::string("(K\x01l"),
        std::string("I01\n"),
        std::string("I-7\n"),
        std::string("L5L\n"),
        std::string("F0.5\n"),
        std::string("S'text'\n"),
        std::string("Vtext\n"),
        std::string("U\x02") + "ab",
        "T" + test::raw<std::int32_t>(2) + "ab",
        "B" + test::raw<std::uint32_t>(2) + "ab",
        "\x8e" + test::raw<std::uint64_t>(2) + "ab",
        std::string("NN0"),
        std::string("N(NN1"),
        std::string("N20"),
        std::string("Np5\n"),
        op::global("pathlib", "PosixPath") + op::tuple(op::string("a")) + "R",
        made + ")\x81N}\x86" + "b"}) {
    CAPTURE(value);
    CHECK(to_double(open_beside(value).at("t")).size() == 6);
  }
}

TEST_CASE("weights: a hostile global is refused by name and nothing runs") {
  const auto call = [](std::string_view module, std::string_view name) {
    return open_beside(op::global(module, name) + op::tuple(op::string("echo")) + "R");
  };
  SUBCASE("valid still loads") {
    CHECK_NOTHROW(open_beside(op::global("argparse", "Namespace") + ")\x81}b"));
    CHECK_NOTHROW(open_beside(op::global("torch", "Size") + "(" + op::sizes({1, 2}) + "tR"));
  }
  SUBCASE("by GLOBAL") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"os.system\""), call("os", "system"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"posix.system\""), call("posix", "system"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"builtins.eval\""), call("builtins", "eval"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"torch.load\""), call("torch", "load"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), call("torch._utils", "_rebuild_tensor_v3"));
    for (const auto& called :
         {std::pair("nt", "system"), std::pair("subprocess", "Popen"), std::pair("__builtin__", "eval"),
          std::pair("builtins", "__import__"), std::pair("runpy", "_run_code"),
          std::pair("importlib", "import_module"), std::pair("pickle", "loads"),
          std::pair("socket", "socket"), std::pair("urllib.request", "urlopen"),
          std::pair("webbrowser", "open"), std::pair("operator", "attrgetter"),
          std::pair("torch.hub", "load"), std::pair("ctypes", "CDLL"), std::pair("shutil", "rmtree")}) {
      const std::string module = called.first, name = called.second;
      CAPTURE(module);
      CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"" + module + "." + name + "\""), call(module, name));
    }
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"collections.OrderedDict.clear\""),
                call("collections", "OrderedDict.clear"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "QUInt8Storage", "quantized"),
                call("torch", "QUInt8Storage"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "full state dictionary"),
                open(torch_archive(
                    op::dict(op::string("t") + op::global("torch.distributed.tensor", "DTensor") + ")\x81"),
                    kStorage)));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "without names", "a list"),
                open(torch_archive("](" + op::tensor({}) + "e", kStorage)));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "os\\x01\\x1b[2J.x"), call("os\x01\x1b[2J", "x"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("c" + std::string(100'000, 'a') + "\nb\n"));
  }
  SUBCASE("by STACK_GLOBAL") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"os.system\""),
                open_beside(op::string("os") + op::string("system") + "\x93"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("K\x01" + op::string("system") + "\x93"));
  }
  SUBCASE("never called") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"os.system\""), open_beside(op::global("os", "system")));
  }
  SUBCASE("other ways to run something") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"os.system\""),
                open_beside("(" + op::string("x") + "ios\nsystem\n"));          // INST
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("(oK\x01"));          // OBJ
    CHECK_ERROR(ErrorKind::format, ("m.pth", "130"), open_beside("\x82\x01"));  // EXT1
    CHECK_ERROR(ErrorKind::format, ("m.pth", "80"), open_beside("Pkey\n"));     // PERSID
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth"),
                open_beside(op::global("torch", "FloatStorage") + op::sizes({4}) + "R"));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth"),
                open_beside(op::global("collections", "OrderedDict") + ")\x81"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside(op::global("argparse", "Namespace") + "}b"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("]}b"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside(op::string("os.system") + ")R"));
  }
}

TEST_CASE("weights: a broken pickle is refused") {
  const auto program = [](const std::string& text) { return open(torch_archive(text, kStorage)); };
  SUBCASE("valid still loads") {
    CHECK_NOTHROW(program(one()));
  }
  SUBCASE("every cut") {
    const std::string whole = one();
    for (std::size_t size = 0; size < whole.size(); ++size)
      REQUIRE_THROWS_AS(program(whole.substr(0, size)), Error);
  }
  SUBCASE("frame of the program") {
    const auto bare = [](const std::string& bytes) {
      return open(test::zip({{.name = "x/data.pkl", .data = bytes}, {.name = "x/data/0", .data = kStorage}}));
    };
    CHECK_NOTHROW(bare("\x80\x02" + one() + "."));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare(""));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare("\x80"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare(one() + "."));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "6"), bare("\x80\x06" + one() + "."));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare("\x80\x02" + one() + ".x"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare("\x80\x02N" + one() + "."));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare("\x80\x02(" + one() + "."));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), bare("\x80\x02" + one()));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "18446744073709551615"),
                bare("\x80\x04\x95" + test::raw<std::uint64_t>(~0ull) + one() + "."));
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
      CHECK_ERROR(ErrorKind::format, ("m.pth"), program(text));
    }
  }
  SUBCASE("memo") {
    CHECK_ERROR(ErrorKind::format, ("m.pth", "5"), program("h\x05"));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "4000000000"),
                program("j" + test::raw<std::uint32_t>(4'000'000'000u)));
    CHECK_NOTHROW(open_beside("]r" + test::raw<std::uint32_t>(4'000'000'000u)));
  }
  SUBCASE("lengths") {
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("X" + test::raw<std::uint32_t>(~0u)));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("\x8d" + test::raw<std::uint64_t>(~0ull)));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("\x8b" + test::raw<std::uint32_t>(~0u)));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("\x8a\xff"));
  }
  SUBCASE("results that are no state dictionary") {
    CHECK_ERROR(ErrorKind::format, ("m.pth"), program("]"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), program(op::tensor({})));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), program("}"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), program(op::dict(op::string("model") + "}")));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                program(op::dict(op::string("t") + op::tensor({}) + op::string("t") + op::tensor({}))));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), program(op::dict(op::string("\xff") + op::tensor({}))));
  }
}

TEST_CASE("weights: bombs in a pickle end at a limit") {
  const auto program = [](const std::string& text) { return open(torch_archive(text, kStorage)); };
  // Each would need far more memory or stack than the file has bytes if it were followed.
  CHECK_NOTHROW(open_beside(std::string(450'000, ']') + std::string(449'999, 'a')));  // nested lists
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "1000000"), program(std::string(2'000'000, ']')));
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth"), program(std::string(2'000'000, '(')));
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "1000000"), program(std::string(2'000'000, '}')));
  std::string memo = "]";
  for (std::uint32_t i = 0; i < 1'200'000; ++i) memo += "r" + test::raw(i);
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "1000000"), program(memo));
  std::string doubling = "K\x01q" + std::string(1, '\0');  // t = (t, t), a hundred times
  for (int i = 0; i < 100; ++i) doubling += std::string("h\0\x86q\0", 5).insert(1, std::string("\0h", 2));
  CHECK_NOTHROW(open_beside(doubling));
  CHECK_NOTHROW(open_beside("}q\x05(" + op::string("model") + "h\x05u"));  // a dictionary inside itself
  CHECK_ERROR(ErrorKind::format, ("m.pth"), program("}q\x05(" + op::string("model") + "h\x05u"));
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
    return test::cpu_seconds([&] { CHECK_NOTHROW(open_beside(program)); });
  };
  const double spread = seconds(1);
  CHECK(seconds(85'229) < 20 * spread + 0.5);
}

TEST_CASE("weights: a tuple that many tuples hold is looked through once") {
  const std::string wide = "(" + std::string(100'000, 'N') + "tq" + std::string(1, '\0');
  const auto times = [](std::size_t count, char place) {
    std::string program = "(";
    for (std::size_t i = 0; i < count; ++i) program += std::string("h") + place;
    return program + "tq" + std::string(1, static_cast<char>(place + 1));
  };
  const double once = test::cpu_seconds([&] { CHECK_NOTHROW(open_beside(wide)); });
  const double shared =
      test::cpu_seconds([&] { CHECK_NOTHROW(open_beside(wide + times(300, '\0') + times(300, '\1'))); });
  CHECK(shared < 20 * once + 0.5);
}

TEST_CASE("weights: members of a dictionary without a model cost no more the more there are") {
  const auto seconds = [](int count) {
    std::string members;
    for (int i = 0; i < count; ++i) members += op::string("member" + std::to_string(i)) + "N";
    const std::string archive = torch_archive(op::dict(op::string("t") + op::tensor({}) + members), kStorage);
    static const test::TemporaryFolder folder;
    const auto path = folder.write("members.pth", archive);
    return test::cpu_seconds([&] { CHECK_THROWS_AS(Model::load(path), Error); });
  };
  const double few = seconds(5'000);
  CHECK(seconds(40'000) < 30 * few + 0.5);
}

TEST_CASE("weights: one string of a pickle is not copied for every member that has it as key") {
  const std::string key = op::string(std::string(100'000, 'k'));
  const std::string members = "N" + key + "q\x01N";
  CHECK_NOTHROW(open_beside(members));
  std::string many = members;
  for (int i = 0; i < 1000; ++i) many += "h\x01N";
  CHECK_ERROR(ErrorKind::format, ("m.pth", "\"kkkk"), open_beside(many));
  // in the dictionary inside a container, too
  CHECK_ERROR(
      ErrorKind::format, ("m.pth", "\"kkkk"),
      open(torch_archive(op::dict(op::string("model") + op::dict(op::string("x") + many)), kStorage)));
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "257"), open_one({.key = std::string(257, '0')}));
  const std::string folder(2000, 'x');
  CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "2001"),
              open(test::zip({{.name = folder + "/data.pkl", .data = "\x80\x02" + one() + "."},
                              {.name = folder + "/data/0", .data = kStorage}})));
}

TEST_CASE("weights: tensors that share storages do not multiply the file") {
  constexpr std::int64_t kElements = 4096;
  const auto shared_by = [](int count) {
    std::string members;
    for (int i = 0; i < count; ++i) {
      members += op::string("t" + std::to_string(i)) +
                 op::tensor({.storage_elements = kElements, .shape = {kElements}, .strides = {1}});
    }
    return open(torch_archive(op::dict(members), std::string(kElements * sizeof(float), '\0')));
  };
  CHECK_NOTHROW(shared_by(1));
  CHECK_NOTHROW(shared_by(4));  // tied weights
  CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t"), shared_by(8));
}

TEST_CASE("weights: a tensor must lie inside its storage") {
  SUBCASE("valid still loads") {
    CHECK_NOTHROW(open_one({}));
  }
  SUBCASE("storage") {
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""), open_one({.key = "1"}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""), open_one({.key = "../data/0"}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "7"), open_one({.storage_elements = 7}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "5"), open_one({.storage_elements = 5}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "-6"), open_one({.storage_elements = -6}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                open_one({.storage_elements = (std::int64_t{1} << 62) + 6}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "6"), open_one({.storage_type = "DoubleStorage"}));
  }
  SUBCASE("view") {
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "6"), open_one({.offset = 1}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "-1"), open_one({.offset = -1}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                open_one({.offset = std::numeric_limits<std::int64_t>::max()}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "6"), open_one({.shape = {2, 4}, .strides = {4, 1}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\"", "6"), open_one({.shape = {2, 3}, .strides = {4, 1}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "-3"), open_one({.shape = {2, -3}, .strides = {3, 1}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "-3"), open_one({.shape = {2, 3}, .strides = {-3, 1}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "2", "1"), open_one({.shape = {2, 3}, .strides = {1}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                open_one({.shape = {2}, .strides = {std::numeric_limits<std::int64_t>::max()}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                open_one({.shape = {4}, .strides = {std::numeric_limits<std::int64_t>::max()}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""),
                open_one({.shape = {1ll << 32, 1ll << 32}, .strides = {0, 0}}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"t\""), open_one({.shape = {1ll << 40}, .strides = {0}}));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "9"),
                open_one({.shape = {1, 1, 1, 1, 1, 1, 1, 1, 6}, .strides = {6, 6, 6, 6, 6, 6, 6, 6, 1}}));
  }
  SUBCASE("pending operations") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth"),
                open_one({.metadata = op::dict(op::string("neg") + "\x88")}));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth"), open_one({.metadata = "K\x01"}));
  }
  SUBCASE("something else in its place") {
    const std::string rebuild = op::global("torch._utils", "_rebuild_tensor_v2");
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside(rebuild + ")R"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside(rebuild + "(NNNNNNtR"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"),
                open_beside(op::global("torch._utils", "_rebuild_parameter") + "(N\x88NtR"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("(K\x01tQ"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open_beside("K\x01Q"));
  }
}

TEST_CASE("weights: a damaged zip archive is refused") {
  const test::ZipRecordToWrite program{.name = "x/data.pkl", .data = "\x80\x02" + one() + "."};
  const test::ZipRecordToWrite storage{.name = "x/data/0", .data = kStorage};
  const auto with = [&](const test::ZipRecordToWrite& record) { return open(test::zip({program, record})); };
  SUBCASE("valid still loads") {
    CHECK_NOTHROW(open(test::zip({program, storage})));
    CHECK_NOTHROW(open(test::zip({program, storage}, {.zip64 = true})));
    CHECK_NOTHROW(open(test::zip({program, storage}, {.comment = "PK\x05\x06 in a comment"})));
    CHECK_NOTHROW(open(test::zip({program, storage, {.name = "x/byteorder", .data = "little"}})));
    CHECK_NOTHROW(with({.name = "x/data/0", .data = kStorage, .flags = 8, .local_bytes = 0}));
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
    CHECK_NOTHROW(extra(field + number(24)));
    CHECK_NOTHROW(extra(test::raw<std::uint32_t>(0x00000002) + field + number(24)));  // after another field
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""), extra(field + number(1ull << 60)));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), extra(field + test::raw<std::uint64_t>(24)));
    CHECK_ERROR(
        ErrorKind::format, ("m.pth", "\"x/data/0\""),
        extra(test::raw<std::uint16_t>(1) + test::raw<std::uint16_t>(8) + test::raw<std::uint64_t>(24)));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""), extra(""));
  }
  SUBCASE("every cut") {
    const std::string whole = test::zip({program, storage}, {.zip64 = true});
    for (std::size_t size = 1; size < whole.size(); ++size)
      REQUIRE_THROWS_AS(open(whole.substr(0, size)), Error);
  }
  SUBCASE("end of directory") {
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open("PK\x03\x04 and no more"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open(test::zip({program, storage}) + "x"));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open(test::zip({program, storage}, {.extra_records = 1})));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open(test::zip({program, storage}, {.extra_records = 60'000})));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open(test::zip({program, storage}, {.moved_directory = 4})));
    CHECK_ERROR(ErrorKind::format, ("m.pth"),
                open(test::zip({program, storage}, {.zip64 = true, .moved_directory = 4})));
    CHECK_ERROR(ErrorKind::format, ("m.pth"), open("PK\x03\x04 in front" + test::zip({program, storage})));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "data.pkl"), open(test::zip({})));
  }
  SUBCASE("records") {
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .method = 8}));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .flags = 1}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_bytes = 23}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_bytes = 0}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_name = "x/data/1"}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .central_bytes = 4096, .local_bytes = 4096}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_offset = 4}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_offset = 0xFFFFFFF0}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""),
                with({.name = "x/data/0", .data = kStorage, .local_offset = 0}));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\""), open(test::zip({program, storage, storage})));
    CHECK_ERROR(ErrorKind::format, ("m.pth", "2"),
                open(test::zip({program, {.name = "y/data.pkl", .data = "x"}})));
    CHECK_NOTHROW(open(test::zip({program, storage, {.name = "x/constants.pkl", .data = "x"}})));
    CHECK_ERROR(ErrorKind::unsupported, ("m.pth", "\"big\""),
                open(test::zip({program, storage, {.name = "x/byteorder", .data = "big"}})));
  }
  SUBCASE("overlap") {
    // The second record is hidden in the data of the first.
    const std::string inner = test::zip({{.name = "x/data/0", .data = kStorage}});
    const std::string hidden = inner.substr(0, 30 + 8 + 24);
    const auto offset = static_cast<std::uint32_t>(30 + program.name.size() + program.data.size() + 30 + 5);
    CHECK_ERROR(ErrorKind::format, ("m.pth", "\"x/data/0\"", "\"x/pad\""),
                open(test::zip({program,
                                {.name = "x/pad", .data = hidden},
                                {.name = "x/data/0", .data = kStorage, .local_offset = offset}})));
  }
}

}  // namespace vit
