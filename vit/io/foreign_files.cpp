#include "vit/io/foreign_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "vit/base/ascii.h"
#include "vit/io/in_quotes.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kFindTorch = "take the PyTorch or safetensors checkpoint that it was made from";
constexpr std::string_view kSaveAgain =
    "load the model in its library and save it with save_pretrained() or torch.save(model.state_dict())";
constexpr std::string_view kUnpack = "unpack it; folders and .tar files are read as they are";
constexpr std::string_view kDevelop = "develop it to TIFF, PNG or JPEG first, with darktable or dcraw_emu";
constexpr std::string_view kFrames =
    "vit embed, classify, depth, segment, detect, pose and anomaly score take its frames; else extract them: "
    "ffmpeg -i FILE frames/%05d.png";
constexpr std::string_view kFlax =
    "in transformers from_pretrained(..., from_flax=True) and save_pretrained() convert them";
constexpr std::string_view kDicom = "convert it to PNG or TIFF, with pydicom or dcmj2pnm (dcmtk)";

struct NamedRow {
  std::string_view ending;  // of the name, in lower case
  ForeignFile file;
};
constexpr NamedRow kNamed[] = {
    // weights of other libraries
    {".h5",
     {"weights of TensorFlow or Keras",
      "in transformers from_pretrained(..., from_tf=True) and save_pretrained() convert them"}},
    {".keras", {"a model of Keras", kFindTorch}},
    {".msgpack", {"weights of Flax", kFlax}},
    {".onnx", {"a graph of ONNX", kFindTorch}},
    {".onnx_data", {"weights of an ONNX graph", kFindTorch}},
    {".ort", {"a graph of ONNX Runtime", kFindTorch}},
    {".gguf", {"GGUF, the format of llama.cpp", kFindTorch}},
    {".ggml", {"GGML, a format of llama.cpp", kFindTorch}},
    {".tflite", {"a model of TensorFlow Lite", kFindTorch}},
    {"saved_model.pb", {"a SavedModel of TensorFlow", kFindTorch}},
    {".index", {"a checkpoint of TensorFlow", kFindTorch}},
    {".data-00000-of-00001", {"a checkpoint of TensorFlow", kFindTorch}},
    {".mlmodel", {"a model of Core ML", kFindTorch}},
    {".mlpackage", {"a model of Core ML", kFindTorch}},
    {".engine", {"an engine of TensorRT", kFindTorch}},
    {".plan", {"an engine of TensorRT", kFindTorch}},
    {".trt", {"an engine of TensorRT", kFindTorch}},
    {"openvino_model.bin", {"a model of OpenVINO", kFindTorch}},
    {"openvino_model.xml", {"a model of OpenVINO", kFindTorch}},
    {".pdparams", {"weights of PaddlePaddle", kFindTorch}},
    {".distcp",
     {"a distributed checkpoint of PyTorch (FSDP)",
      "python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER model.pth joins it"}},
    {"zero_to_fp32.py",
     {"a sharded checkpoint of DeepSpeed",
      "its zero_to_fp32.py joins it: python zero_to_fp32.py . model.pth"}},
    {".pt2", {"a program of torch.export", kSaveAgain}},
    {".pkl", {"a pickle of Python", kSaveAgain}},
    {".pickle", {"a pickle of Python", kSaveAgain}},
    {".joblib", {"a pickle of joblib", kSaveAgain}},
    {".ot", {"weights of tch-rs", kFindTorch}},
    {".mar", {"an archive of TorchServe", "unpack it and take the checkpoint inside"}},
    {".nemo", {"an archive of NeMo", "unpack it and take the checkpoint inside"}},
    {".orbax-checkpoint", {"a checkpoint of Orbax (JAX)", kFindTorch}},
    {"_checkpoint_metadata", {"a checkpoint of Orbax (JAX)", kFindTorch}},
    {"manifest.ocdbt", {"a checkpoint of Orbax (JAX)", kFindTorch}},
    // images and documents
    {".dng", {"a raw photograph", kDevelop}},
    {".nef", {"a raw photograph", kDevelop}},
    {".arw", {"a raw photograph", kDevelop}},
    {".cr2", {"a raw photograph", kDevelop}},
    {".cr3", {"a raw photograph", kDevelop}},
    {".orf", {"a raw photograph", kDevelop}},
    {".rw2", {"a raw photograph", kDevelop}},
    {".raf", {"a raw photograph", kDevelop}},
    {".pef", {"a raw photograph", kDevelop}},
    {".dcm", {"a DICOM file", kDicom}},
    {".dicom", {"a DICOM file", kDicom}},
    {".nii", {"a NIfTI volume", "write its slices as PNG or TIFF, with nibabel"}},
    {".nii.gz", {"a NIfTI volume", "write its slices as PNG or TIFF, with nibabel"}},
    {".svs", {"a slide of several resolutions", "write regions of it as PNG, with OpenSlide"}},
    {".parquet",
     {"a table of Parquet",
      "write its images as files; for results .npz, .npy, .safetensors and .jsonl are written"}},
};

struct ContentRow {
  std::size_t offset;
  std::string_view magic;
  ForeignFile file;
};
constexpr ContentRow kContents[] = {
    {0,
     "\x89HDF\r\n\x1A\n"sv,
     {"HDF5, most often weights of TensorFlow or Keras",
      "in transformers from_pretrained(..., from_tf=True) and save_pretrained() convert them"}},
    {0, "GGUF"sv, {"GGUF, the format of llama.cpp", kFindTorch}},
    {0, "lmgg"sv, {"GGML, a format of llama.cpp", kFindTorch}},
    {4, "TFL3"sv, {"a model of TensorFlow Lite", kFindTorch}},
    {0, "PAR1"sv, {"a table of Parquet", "write its images as files"}},
    {128, "DICM"sv, {"a DICOM file", kDicom}},
    {344, "n+1\0"sv, {"a NIfTI volume", "write its slices as PNG or TIFF, with nibabel"}},
    {8, "CR\x02"sv, {"a raw photograph (CR2)", kDevelop}},
    {0, "IIRO"sv, {"a raw photograph (ORF)", kDevelop}},
    {0, "IIRS"sv, {"a raw photograph (ORF)", kDevelop}},
    {0, "IIU\0"sv, {"a raw photograph (RW2)", kDevelop}},
    {0, "FUJIFILMCCD-RAW"sv, {"a raw photograph (RAF)", kDevelop}},
    {4, "ftypcrx"sv, {"a raw photograph (CR3)", kDevelop}},
    {8, "AVI "sv, {"a video", kFrames}},
    {0, "\x1A\x45\xDF\xA3"sv, {"a video", kFrames}},
    {4, "ftyp"sv, {"a video", kFrames}},  // of what begins so, images are recognized before
    {4, "moov"sv, {"a video", kFrames}},
    {4, "mdat"sv, {"a video", kFrames}},
    {0, "\0\0\x01\xBA"sv, {"a video", kFrames}},
    {0, "FLV\x01"sv, {"a video", kFrames}},
    {0, "PK\x03\x04"sv, {"a zip archive", kUnpack}},
    {0, "PK\x05\x06"sv, {"a zip archive", kUnpack}},
    {0, "\x1F\x8B"sv, {"compressed with gzip", kUnpack}},
    {0, "BZh"sv, {"compressed with bzip2", kUnpack}},
    {0,
     "\xFD"
     "7zXZ\0"sv,
     {"compressed with xz", kUnpack}},
    {0, "\x28\xB5\x2F\xFD"sv, {"compressed with zstd", kUnpack}},
    {0, "7z\xBC\xAF\x27\x1C"sv, {"a 7z archive", kUnpack}},
    {0, "Rar!\x1A\x07"sv, {"a RAR archive", kUnpack}},
    {257, "ustar"sv, {"a tar archive", "name it .tar: the images in it are read in place"}},
    {0, "SQLite format 3\0"sv, {"a database of SQLite", "write its images as files"}},
};

/// OWNER/NAME, of characters that repositories have; nothing for other texts.
std::optional<std::string_view> repository(std::string_view text) {
  const std::size_t slash = text.find('/');
  const bool is_plain = std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '/';
  });
  if (!is_plain || slash == 0 || slash == text.npos || slash != text.rfind('/') || slash + 1 == text.size() ||
      text.starts_with('.'))
    return std::nullopt;
  return text;
}

std::string download_command(std::string_view repository) {
  return "hf download " + std::string(repository) + " --local-dir " +
         std::string(repository.substr(repository.find('/') + 1));
}

}  // namespace

const ForeignFile* foreign_by_name(std::string_view name) {
  const std::string wanted = lower_ascii(name);
  const auto found =
      std::ranges::find_if(kNamed, [&](const NamedRow& row) { return wanted.ends_with(row.ending); });
  return found == std::end(kNamed) ? nullptr : &found->file;
}

const ForeignFile* foreign_by_content(std::string_view first_bytes) {
  const auto found = std::ranges::find_if(kContents, [&](const ContentRow& row) {
    return first_bytes.size() >= row.offset && first_bytes.substr(row.offset).starts_with(row.magic);
  });
  return found == std::end(kContents) ? nullptr : &found->file;
}

std::string describe(const ForeignFile& foreign) {
  return std::string(foreign.what) + ", which is not read; " + std::string(foreign.next);
}

std::string describe_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  const auto is_named = [&](const ForeignFile& foreign) {
    return in_quotes(name) + " is " + describe(foreign);
  };
  if (const ForeignFile* const foreign = foreign_by_name(name)) return is_named(*foreign);
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return "";
  constexpr std::size_t kFirstBytes = 512;
  const SourceFile source(file, {"load_checkpoint", ErrorKind::io});
  const ForeignFile* const foreign = foreign_by_content(source.text(0, kFirstBytes));
  const bool is_zip = foreign != nullptr && foreign->what.find("zip") != std::string_view::npos;
  return foreign == nullptr || is_zip ? "" : is_named(*foreign);
}

std::string missing_hint(std::string_view path) {
  if (path.empty()) return "; the path is empty";
  constexpr std::string_view kNothing = "; nothing is downloaded here: ";
  constexpr std::string_view kHub = "https://huggingface.co/";
  if (path.starts_with(kHub)) {
    const std::string_view rest = path.substr(kHub.size());
    const std::size_t end = rest.find('/', std::min(rest.find('/'), rest.size() - 1) + 1);
    if (const auto name = repository(rest.substr(0, end)))
      return std::string(kNothing) + download_command(*name);
  }
  for (const std::string_view scheme : {"http://", "https://", "ftp://"}) {
    if (path.starts_with(scheme)) return std::string(kNothing) + "curl -LO '" + std::string(path) + "'";
  }
  for (const std::string_view scheme : {"s3://", "gs://", "az://", "file://"}) {
    if (path.starts_with(scheme)) return std::string(kNothing) + "copy the file and give its path";
  }
  for (const std::string_view scheme : {"hf-hub:", "hf_hub:", "hf://", "local-dir:"}) {
    if (!path.starts_with(scheme)) continue;
    if (const auto name = repository(path.substr(scheme.size())))
      return std::string(kNothing) + download_command(*name) + ", then give that folder";
    return std::string(kNothing) + "give the path of a folder or file";
  }
  std::error_code failure;
  const auto name = repository(path);
  if (name && !std::filesystem::exists(std::string(path.substr(0, path.find('/'))), failure))
    return "; a repository of Hugging Face is downloaded by: " + download_command(*name);
  return "";
}

}  // namespace vit::internal
