// Opens weight files and converts every tensor they offer.
#include "tests/fuzz/fuzz_weights.h"

#include <stdexcept>

#include "tests/fuzz/in_memory_file.h"
#include "tests/support/archive_writer.h"
#include "vit/weights/files/pickle.h"
#include "vit/weights/files/safetensors.h"

namespace vit::fuzz {
using namespace internal;
namespace {

namespace op = test::opcode;

const std::string kStorage = test::floats({0, 1, 2, 3, 4, 5});
constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("h":{"dtype":"BF16","shape":[2],"data_offsets":[16,20]},"e":{"dtype":"F16","shape":[0,3],"data_offsets":[20,20]},)"
    R"("i":{"dtype":"I8","shape":[1,4],"data_offsets":[20,24]}})";

void touch(const TensorFile& file) {
  for (const TensorEntry& entry : file.entries()) {
    if (file.find(entry.name) != &entry) throw std::logic_error("a tensor is not found under its own name");
    entry.describe();
    if (!is_floating(entry.dtype)) continue;
    to_double(entry);
    if (entry.shape.size() <= Shape::kMaxRank) to_float(entry);
  }
}

std::vector<std::string> programs() {
  const std::string tensors = op::string("a") + op::tensor({}) + op::string("b") +
                              op::tensor({.offset = 1, .shape = {2, 2}, .strides = {1, 2}}) +
                              op::string("c") + op::global("torch._utils", "_rebuild_parameter") + "(" +
                              op::tensor({.shape = {1, 1, 6}, .strides = {6, 6, 1}}) + "\x88" +
                              op::global("collections", "OrderedDict") + ")RtR";
  const std::string training =
      op::dict(op::string("model") + op::dict(tensors) + op::string("epoch") + "K\x07" + op::string("list") +
               "](K\x01NeNa" + op::string("args") + op::global("argparse", "Namespace") + ")\x81}(" +
               op::string("lr") + "G" + test::raw(0.5) + "ub" + op::string("memo") + "]q\x05r" +
               test::raw<std::uint32_t>(300) + "h\x05\x86j" + test::raw<std::uint32_t>(300) + "\x85\x86");
  return {op::dict(tensors), training};
}

}  // namespace

void run_safetensors(std::string_view input) {
  touch(open_safetensors(InMemoryFile(input).path()));
}

std::vector<std::string> safetensors_seeds() {
  return {test::safetensors(kHeader, kStorage), test::safetensors("{}", "")};
}

void run_safetensors_header(std::string_view input) {
  run_safetensors(test::safetensors(input, kStorage));
}

std::vector<std::string> safetensors_header_seeds() {
  return {std::string(kHeader), R"({"x":{"dtype":"F4","shape":[2,1,24],"data_offsets":[0,24]}})"};
}

void run_pickle(std::string_view input) {
  touch(open_pickle(InMemoryFile(input).path()));
}

std::vector<std::string> pickle_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& program : programs()) {
    const std::vector<test::ZipRecordToWrite> records = {
        {.name = "x/data.pkl", .data = "\x80\x02" + program + "."},
        {.name = "x/byteorder", .data = "little"},
        {.name = "x/data/0", .data = kStorage, .flags = 8, .local_bytes = 0}};
    seeds.push_back(test::zip(records));
    seeds.push_back(test::zip(records, {.zip64 = true, .comment = "comment"}));
  }
  return seeds;
}

void run_pickle_program(std::string_view input) {
  run_pickle(test::torch_archive(input, kStorage));
}

std::vector<std::string> pickle_program_seeds() {
  return programs();
}

}  // namespace vit::fuzz
