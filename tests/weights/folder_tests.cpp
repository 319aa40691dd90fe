#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/golden_models.h"
#include "tests/support/shared_data.h"
#include "vit/io/folder.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit {
using namespace internal;

namespace {

namespace fs = std::filesystem;
using test::FileCopy;
using test::TemporaryFolder;

void put_model(const fs::path& folder) {
  fs::create_directories(folder);
  FileCopy(test::data_path("golden/models/hf-vit")).write_to(folder);
}

fs::path found(const fs::path& path) {
  const CheckpointFolder folder(path);
  CHECK(folder.model_config().family == "vit");
  return folder.path();
}

}  // namespace

TEST_CASE("folders: a checkpoint is found where its library keeps it") {
  const TemporaryFolder folder;
  const fs::path root = folder.path();
  SUBCASE("the last checkpoint of Trainer, by number") {
    for (const char* name : {"checkpoint-9", "checkpoint-10"}) put_model(root / name);
    fs::create_directories(root / "checkpoint-11");  // without weights
    fs::create_directories(root / "checkpoint-best");
    CHECK(found(root) == root / "checkpoint-10");
  }
  SUBCASE("names beyond ASCII") {
    std::error_code error;
    const fs::path named = root / u8"Modelle \u6a21\u578b";
    put_model(named / u8"l\u00e4ufe" / "checkpoint-9");
    CHECK(found(named / u8"l\u00e4ufe") == named / u8"l\u00e4ufe" / "checkpoint-9");
    CHECK(list_folder(named, error).front().name == "l\xc3\xa4ufe");
  }
  SUBCASE("weights of the folder itself go first") {
    put_model(root);
    put_model(root / "checkpoint-10");
    CHECK(found(root) == root);
  }
  SUBCASE("the cache of Hugging Face, by its reference") {
    put_model(root / "snapshots" / "aaaa");
    put_model(root / "snapshots" / "bbbb");
    fs::create_directories(root / "refs");
    test::write_text(root / "refs" / "main", "bbbb\n");
    CHECK(found(root) == root / "snapshots" / "bbbb");
  }
  SUBCASE("the cache of Hugging Face with one snapshot") {
    put_model(root / "snapshots" / "aaaa");
    CHECK(found(root) == root / "snapshots" / "aaaa");
  }
  SUBCASE("a run of DeepSpeed, by its file of the last step") {
    const fs::path step = root / "global_step20";
    put_model(step);
    put_model(root / "global_step10");
    test::write_text(root / "latest", "global_step20\n");
    fs::rename(step / "model.safetensors", step / "mp_rank_00_model_states.safetensors");
    test::write_text(step / "zero_pp_rank_0_mp_rank_00_optim_states.pt", "moments");
    CHECK(found(root) == step);
    // parts for each process: the program that merges them is named
    test::write_text(step / "zero_pp_rank_1_mp_rank_00_model_states.pt", "a part");
    test::write_text(root / "zero_to_fp32.py", "");
    CHECK_ERROR(ErrorKind::unsupported, ("zero_to_fp32.py", "DeepSpeed"), load_checkpoint(root));
  }
  SUBCASE("the file that a run notes as its last") {
    put_model(root);
    fs::rename(root / "model.safetensors", root / "step_2.safetensors");
    test::write_text(root / "step_1.safetensors", "an older one");
    test::write_text(root / "last_checkpoint", "step_2.safetensors");
    CHECK(found(root) == root / "step_2.safetensors");
  }
  SUBCASE("sentence-transformers, by modules.json") {
    put_model(root / "0_CLIPModel");
    test::write_text(root / "modules.json",
                     R"([{"idx": 0, "name": "0", "path": "0_CLIPModel", "type": "t"}])");
    CHECK(found(root) == root / "0_CLIPModel");
    test::write_text(root / "modules.json",
                     R"([{"idx": 0, "name": "0", "path": "../0_CLIPModel", "type": "t"}])");
    CHECK_ERROR(ErrorKind::format, ("modules.json"), CheckpointFolder(root));
  }
}

TEST_CASE("folders: shards load without their index, and missing ones are counted") {
  const TemporaryFolder folder;
  FileCopy first(test::data_path("golden/models/hf-vit")), second = first;
  const std::size_t half = first.entries().size() / 2;
  first.entries().resize(half);
  second.entries().erase(second.entries().begin(),
                         second.entries().begin() + static_cast<std::ptrdiff_t>(half));
  const auto put = [&](const FileCopy& part, const char* name) {
    part.write_to(folder.path());
    fs::rename(folder.path() / "model.safetensors", folder.path() / name);
  };
  put(first, "model-00001-of-00002.safetensors");
  CHECK_ERROR(ErrorKind::io, ("2 shards 1"), load_checkpoint(folder.path()));
  put(second, "model-00002-of-00002.safetensors");
  CHECK(load_checkpoint(folder.path()).report.num_parameters ==
        load_checkpoint(test::data_path("golden/models/hf-vit")).report.num_parameters);
}

TEST_CASE("folders: formats of other programs are named, with the next step") {
  struct Case {
    const char *file, *what;
  };
  constexpr Case kCases[] = {{"tf_model.h5", "TensorFlow"},
                             {"flax_model.msgpack", "Flax"},
                             {"model.onnx", "ONNX"},
                             {"model.gguf", "GGUF"},
                             {"model.tflite", "TensorFlow"},
                             {"saved_model.pb", "TensorFlow"},
                             {"openvino_model.bin", "OpenVINO"},
                             {"__0_0.distcp", "dcp_to_torch"},
                             {"model.mlpackage", "Core ML"},
                             {"model.pdparams", "PaddlePaddle"},
                             {"zero_to_fp32.py", "DeepSpeed"},
                             {"model.engine", "TensorRT"}};
  for (const Case& row : kCases) {
    CAPTURE(row.file);
    const TemporaryFolder folder;
    test::write_text(folder.path() / row.file, "x");
    test::write_text(folder.path() / "config.json", R"({"model_type": "vit"})");
    CHECK_ERROR(ErrorKind::unsupported, (row.file, row.what), load_checkpoint(folder.path()));
  }
  const TemporaryFolder folder;
  CHECK_ERROR(ErrorKind::unsupported, ("model.gguf", "GGUF"),
              load_checkpoint(folder.write("model.gguf", "GGUF....")));
  CHECK_ERROR(ErrorKind::unsupported, ("model.bin", "GGUF"),
              load_checkpoint(folder.write("model.bin", "GGUF....")));
  put_model(folder.path() / "best");
  fs::remove(folder.path() / "model.gguf");
  fs::remove(folder.path() / "model.bin");
  CHECK_ERROR(ErrorKind::unsupported, ("\"best\""), load_checkpoint(folder.path()));
}

TEST_CASE("folders: quantized weights are named as what they are") {
  struct Case {
    const char *tensor, *config, *what;
  };
  constexpr Case kCases[] = {
      {"vit.encoder.layer.0.output.dense.weight.absmax", "", "bitsandbytes"},
      {"vit.encoder.layer.0.output.dense.SCB", "", "bitsandbytes"},
      {"vit.encoder.layer.0.output.dense.qweight", "", "GPTQ"},
      {"", R"("quantization_config": {"quant_method": "awq"}, )", "\"awq\""},
      {"", R"("quantization_config": {"quant_method": "fp8"}, )", "\"fp8\""},
  };
  const fs::path base = test::data_path("golden/models/hf-vit");
  for (const Case& row : kCases) {
    CAPTURE(row.tensor);
    const TemporaryFolder folder;
    FileCopy copy(base);
    if (*row.tensor != '\0') copy.add(row.tensor, {3});
    copy.set_config(test::read_text(base / "config.json").insert(1, row.config)).write_to(folder.path());
    CHECK_ERROR(ErrorKind::unsupported, (row.what, "quantized"), load_checkpoint(folder.path()));
  }
}

}  // namespace vit
