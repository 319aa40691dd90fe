// Of which kind the Error is that each reader of files throws, defect by defect: what a caller may react to.
#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/archive_writer.h"
#include "tests/support/checkpoint_files.h"
#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/io/class_names.h"
#include "vit/io/json.h"
#include "vit/text/tokenizer_folder.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/checkpoint/preprocess_config.h"

namespace vit::internal {
namespace {

namespace fs = std::filesystem;
namespace op = test::opcode;

struct Defect {
  const char* what;
  ErrorKind kind;
  std::string named;  // file, tensor or field of the message
  std::string contents;
};

/// Each defect in a file of its own called `name`, and no file at all.
void check(const char* name, const std::function<void(const fs::path&)>& read,
           const std::vector<Defect>& defects) {
  const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  CAPTURE(std::string(name));
  CHECK_ERROR(ErrorKind::io, (name), read(folder / name));
  for (const Defect& defect : defects) {
    const std::string what = defect.what;
    CAPTURE(what);
    CHECK_ERROR(defect.kind, (name, defect.named), read(folder.write(name, defect.contents)));
  }
}

std::string tensor_header(const char* dtype, const char* offsets) {
  return std::string(R"({"t": {"dtype": ")") + dtype + R"(", "shape": [1], "data_offsets": )" + offsets +
         "}}";
}

/// A folder of a sound model with one file replaced.
class ChangedModel {
 public:
  explicit ChangedModel(const char* model) : folder_(test::TemporaryFolder::Place::memory) {
    test::FileCopy(test::data_path(std::string("golden/models/") + model)).write_to(folder_.path());
  }
  const test::TemporaryFolder& folder() const { return folder_; }
  /// Reads the folder with this config.json.
  void load_with(const std::string& config) const {
    static_cast<void>(load_checkpoint(folder_.write("config.json", config).parent_path()));
  }

 private:
  test::TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("error kinds: safetensors") {
  check("m.safetensors", [](const fs::path& file) { open_safetensors(file); },
        {{"empty", ErrorKind::format, "", ""},
         {"a web page", ErrorKind::format, "", "<!DOCTYPE html>"},
         {"header cut off", ErrorKind::format, "", test::raw<std::uint64_t>(9) + "{}"},
         {"header no JSON", ErrorKind::format, "", test::safetensors("{", "")},
         {"data cut off", ErrorKind::format, "\"t\"", test::safetensors(tensor_header("F32", "[0,4]"), "")},
         {"a hole", ErrorKind::format, "\"t\"", test::safetensors(tensor_header("F32", "[4,8]"), "12345678")},
         {"field of another type", ErrorKind::format, "\"t\"",
          test::safetensors(tensor_header("F32", "7"), "")},
         {"a type of tomorrow", ErrorKind::unsupported, "\"F33\"",
          test::safetensors(tensor_header("F33", "[0,4]"), "1234")}});
}

TEST_CASE("error kinds: PyTorch's files") {
  const std::string tensor = op::dict(op::string("t") + op::tensor({}));
  const auto archive = [](const std::string& program) {
    return test::torch_archive(program, std::string(24, '\0'));
  };
  check("m.pth", [](const fs::path& file) { open_pickle(file); },
        {{"empty", ErrorKind::format, "", ""},
         {"a web page", ErrorKind::format, "", "<html>"},
         {"archive cut off", ErrorKind::format, "", archive(tensor).substr(0, 60)},
         {"pickle cut off", ErrorKind::format, "", archive(tensor.substr(0, 20))},
         {"tensor beyond its storage", ErrorKind::format, "\"t\"",
          archive(op::dict(op::string("t") + op::tensor({.offset = 1})))},
         {"no tensors", ErrorKind::format, "\"x\"", archive(op::dict(op::string("x") + "N"))},
         {"the format before zip", ErrorKind::unsupported, "", "\x80\x02}."},
         {"a class that tensors do not need", ErrorKind::unsupported, "\"os.system\"",
          archive(op::global("os", "system"))}});
}

TEST_CASE("error kinds: shards") {
  const auto read = [](const fs::path& file) { open_shards(file, open_safetensors); };
  check("x.index.json", read,
        {{"no weight_map", ErrorKind::format, "\"weight_map\"", "{}"},
         {"a path", ErrorKind::format, "\"../y\"", R"({"weight_map": {"t": "../y"}})"}});
  const test::TemporaryFolder folder;
  folder.write("1.safetensors", test::safetensors(tensor_header("F32", "[0,4]"), "1234"));
  const auto index = [&](const char* tensor, const char* file) {
    return folder.write("x.index.json",
                        std::string(R"({"weight_map": {")") + tensor + R"(": ")" + file + "\"}}");
  };
  CHECK_NOTHROW(read(index("t", "1.safetensors")));
  CHECK_ERROR(ErrorKind::io, ("2.safetensors"), read(index("t", "2.safetensors")));
  CHECK_ERROR(ErrorKind::mismatch, ("1.safetensors", "\"t\""), read(index("u", "1.safetensors")));
}

TEST_CASE("error kinds: JSON and tables of classes") {
  check("a.json",
        [](const fs::path& file) {
          load_json(file).at("n").as_size({1, 9});
        },
        {{"empty", ErrorKind::format, "", ""},
         {"cut off", ErrorKind::format, "byte", "{\"n\": 1"},
         {"no such key", ErrorKind::format, "\"n\"", "{}"},
         {"another type", ErrorKind::format, "n", R"({"n": "1"})"},
         {"out of range", ErrorKind::format, "n", R"({"n": 10})"},
         {"too deep", ErrorKind::unsupported, "64", std::string(100, '[')}});
  check("tags.csv", [](const fs::path& file) { read_class_table(file); },
        {{"empty", ErrorKind::format, "", ""},
         {"an open quote", ErrorKind::format, "line 2", "name\n\"a\n"},
         {"a row of another length", ErrorKind::format, "line 2", "name,category\na\n"}});
}

TEST_CASE("error kinds: configurations and the weights next to them") {
  const ChangedModel model("hf-vit");
  const std::string sound = test::read_text(model.folder() / "config.json");
  const auto load_with = [&](const std::string& from, const std::string& to) {
    model.load_with(test::replaced(sound, from, to));
  };
  CHECK_NOTHROW(model.load_with(sound));
  CHECK_ERROR(ErrorKind::format, ("config.json"), model.load_with("{"));
  CHECK_ERROR(ErrorKind::format, ("config.json: num_hidden_layers"),
              load_with("\"num_hidden_layers\": ", "\"num_hidden_layers\": \"x\", \"y\": "));
  CHECK_ERROR(ErrorKind::unsupported, ("config.json", "\"swin\""), load_with("\"vit\"", "\"swin\""));
  CHECK_ERROR(ErrorKind::unsupported, ("config.json: hidden_act", "\"x\""),
              load_with("\"hidden_act\": ", "\"hidden_act\": \"x\", \"y\": "));
  CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors", "encoder.layer.2."),
              load_with("\"num_hidden_layers\": ", "\"num_hidden_layers\": 3, \"y\": "));
  model.load_with(sound);
  const fs::path& folder = model.folder().path();
  CHECK_ERROR(ErrorKind::argument, ("no_such_argument"),
              load_checkpoint(folder, {.overrides = {{"no_such_argument", "1"}}}));
  fs::remove(folder / "config.json");
  CHECK_ERROR(ErrorKind::mismatch, ("model.safetensors", "config.json"), load_checkpoint(folder));
  fs::remove(folder / "model.safetensors");
  CHECK_ERROR(ErrorKind::io, (folder.string()), load_checkpoint(folder));
  CHECK_ERROR(ErrorKind::io, (folder.string()), load_preprocess_config(folder));
}

TEST_CASE("error kinds: tokenizers") {
  const auto read = [](const fs::path& file) {
    read_tokenizer_folder(file.parent_path(), TextLibrary::transformers);
  };
  const test::TemporaryFolder folder;
  CHECK_ERROR(ErrorKind::io, (folder.path().string()), read(folder / "tokenizer_config.json"));
  const auto with = [&](const char* config) { read(folder.write("tokenizer_config.json", config)); };
  CHECK_ERROR(ErrorKind::format, ("tokenizer_config.json"), with("{"));
  CHECK_ERROR(ErrorKind::unsupported, ("WordPieceTokenizer"),
              with(R"({"tokenizer_class": "WordPieceTokenizer"})"));
  CHECK_NOTHROW(with(R"({"tokenizer_class": "CLIPTokenizer"})"));
}

TEST_CASE("error kinds: images") {
  check("a.png", [](const fs::path& file) { decode_file(file, {.max_pixels = 5}); },
        {{"empty", ErrorKind::format, "", ""},
         {"a text", ErrorKind::format, "", "hello"},
         {"cut off", ErrorKind::format, "", "P6 2 2 255\n12345"},
         {"too many pixels", ErrorKind::unsupported, "5", "P5 2 3 255\n123456"},
         {"a format that is not read", ErrorKind::unsupported, "",
          std::string("8BPS\0\1\0\0\0\0\0\0", 12) + std::string(40, '\0')}});
}

}  // namespace vit::internal
