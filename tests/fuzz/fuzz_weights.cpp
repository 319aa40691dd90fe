// Opens weight files and converts every tensor they offer.
#include "tests/fuzz/fuzz_weights.h"

#include <algorithm>
#include <span>
#include <stdexcept>

#include "tests/fuzz/in_memory_file.h"
#include "tests/support/archive_writer.h"
#include "tests/support/files.h"
#include "vit/anomaly.h"
#include "vit/classifier_head.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"
#include "vit/io/npz.h"
#include "vit/io/pickle.h"
#include "vit/io/safetensors.h"
#include "vit/zero_shot.h"

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
  const std::string things =
      op::dict(op::string("net") + op::global("my.net", "Net") + ")\x81" +
               op::dict(op::string("_parameters") + op::dict(tensors)) + "b" + op::string("best") +
               op::global("numpy", "scalar") + "C\x02ZZ\x85R" + op::string("set") + "\x8f(K\x01\x90" +
               op::string("old") + "(iold.mod\nOld\n" + op::string("text") + "S'ab'\n");
  return {op::dict(tensors), training, things};
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

/// The form before PyTorch 1.6: magic number, version, facts, object, keys, then the storages.
std::string legacy_file(const std::string& program) {
  constexpr std::string_view kMagic{"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", 15};
  const std::string begin = "\x80\x02", facts = op::dict(op::string("little_endian") + "\x88");
  return std::string(kMagic) + begin + "M\xe9\x03." + begin + facts + "." + begin + program + "." + begin +
         "](" + op::string("0") + "e." + test::raw<std::int64_t>(6) + kStorage;
}

std::vector<std::string> pickle_seeds() {
  std::vector<std::string> seeds;
  for (const std::string& program : programs()) seeds.push_back(legacy_file(program));
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

void run_npz(std::string_view input) {
  touch(open_npz(InMemoryFile(input).path()));
}

std::vector<std::string> npz_seeds() {
  const auto array = [](const std::string& descr, const std::string& shape) {
    const std::string header =
        "{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
    return std::string("\x93NUMPY\x01\0", 8) + test::raw(static_cast<std::uint16_t>(header.size())) + header;
  };
  return {test::zip({{.name = "embedding/kernel.npy", .data = array("<f4", "(2, 3)") + kStorage},
                     {.name = "step.npy", .data = array("<i8", "()") + test::raw<std::int64_t>(7)},
                     {.name = "names.npy", .data = array("|O", "(1,)")}})};
}

void run_pickle_program(std::string_view input) {
  run_pickle(test::torch_archive(input, kStorage));
}

std::vector<std::string> pickle_program_seeds() {
  return programs();
}

namespace {

constexpr std::string_view kFunctions =
    R"({"format":1,"method":"logistic","features":"pooled","model":"m","fingerprint":"f","images":4,"folds":2,)"
    R"("strength":0.5,"cross_validated_top1":1.0,"labels":["a","b"]})";
constexpr std::string_view kVotes =
    R"({"format":1,"method":"knn","features":"cls","model":"m","fingerprint":"f","images":2,"folds":2,)"
    R"("neighbors":1,"labels":["a","b"]})";

/// A file of a head of two features and classes, with the tensors of both kinds.
std::string head_file(std::string_view facts) {
  const std::string header = R"({"__metadata__":{"vit_classifier":)" + json_string(facts) +
                             R"(},"mean":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("scale":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                             R"("coefficients":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]},)"
                             R"("intercepts":{"dtype":"F32","shape":[2],"data_offsets":[32,40]},)"
                             R"("vectors":{"dtype":"F32","shape":[2,2],"data_offsets":[40,56]},)"
                             R"("classes":{"dtype":"I32","shape":[2],"data_offsets":[56,64]}})";
  return test::safetensors(header, test::floats({0, 1, 1, 2, 1, 2, 3, 4, 0, 0, 1, 0, 0, 1}) +
                                       test::raw<std::uint32_t>(0) + test::raw<std::uint32_t>(1));
}

}  // namespace

void run_head(std::string_view input) {
  const ClassifierHead head = load_head(InMemoryFile(input).path());
  const std::vector<float> x(head.num_features(), 0.5f);
  std::vector<float> values(head.labels.size());
  head.apply(x, values);

  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  save_head(folder / "head.safetensors", head);
  const ClassifierHead again = load_head(folder / "head.safetensors");
  std::vector<float> values_again(values.size());
  again.apply(x, values_again);
  if (again.labels != head.labels ||
      !std::ranges::equal(std::as_bytes(std::span(values)), std::as_bytes(std::span(values_again))))
    throw std::logic_error("what is written is read as another head");
}

std::vector<std::string> head_seeds() {
  return {head_file(kFunctions), head_file(kVotes)};
}

void run_head_facts(std::string_view input) {
  run_head(head_file(input));
}

std::vector<std::string> head_facts_seeds() {
  return {std::string(kFunctions), std::string(kVotes)};
}

void run_class_vectors(std::string_view input) {
  load_class_vectors(InMemoryFile(input).path());
}

std::vector<std::string> class_vectors_seeds() {
  return {test::safetensors(R"({"__metadata__":{"names":"[\"cat\",\"dog\"]"},)"
                            R"("text":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})",
                            test::floats({1, 0, 0, 1}))};
}

namespace {

constexpr std::string_view kBankFacts =
    R"({"format":1,"model":"m","fingerprint":"f","source":"s","size":"448x336","layers":[0,3],"neighborhood":3,)"
    R"("coreset_fraction":0.5,"coreset_count":0,"score":"reweighted","foreground":true,"quantile":0.95,)"
    R"("max_patches":1000,"patches_seen":6,"threshold":0.25,"confidence":0.5,"held_out":[0.25,0.125],)"
    R"("images":["a.png","b.png"]})";
constexpr std::string_view kPlainBankFacts =
    R"({"format":1,"model":"","fingerprint":"","source":"","size":"native","layers":[],"neighborhood":1,)"
    R"("coreset_fraction":1,"coreset_count":3,"score":"top-percent","foreground":false,"quantile":0.5,)"
    R"("max_patches":1,"patches_seen":3,"threshold":null,"confidence":0,"held_out":[],"images":["a.png","b.png"]})";

/// A bank of three patches of two features, of two images.
std::string bank_file(std::string_view facts) {
  const std::string header = R"({"__metadata__":{"vit_anomaly":)" + json_string(facts) +
                             R"(},"patches":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                             R"("background":{"dtype":"F32","shape":[2,2],"data_offsets":[24,40]},)"
                             R"("images":{"dtype":"I32","shape":[3],"data_offsets":[40,52]}})";
  return test::safetensors(header, test::floats({1, 0, 0, 1, 0.6f, 0.8f, 0, 0, 1, 0}) +
                                       test::raw<std::uint32_t>(0) + test::raw<std::uint32_t>(0) +
                                       test::raw<std::uint32_t>(1));
}

}  // namespace

void run_bank(std::string_view input) {
  static const test::TemporaryFolder folder(test::TemporaryFolder::Place::memory);
  const std::string path = folder / "bank.safetensors";
  AnomalyModel::load(InMemoryFile(input).path()).save(path);
  const std::string written = test::read_text(path);
  AnomalyModel::load(path).save(path);
  if (test::read_text(path) != written) throw std::logic_error("what is written is read as another bank");
}

std::vector<std::string> bank_seeds() {
  return {bank_file(kBankFacts), bank_file(kPlainBankFacts)};
}

void run_bank_facts(std::string_view input) {
  run_bank(bank_file(input));
}

std::vector<std::string> bank_facts_seeds() {
  return {std::string(kBankFacts), std::string(kPlainBankFacts)};
}

}  // namespace vit::fuzz
