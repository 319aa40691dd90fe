// Files of other programs, by name and content, and names that were meant as something else.
#include "vit/io/foreign_files.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/errors.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

TEST_CASE("foreign files: names and first bytes are recognized") {
  const auto named = [](const char* name) {
    const ForeignFile* const found = foreign_by_name(name);
    return found == nullptr ? std::string() : describe(*found);
  };
  CHECK(contains(named("model.onnx"), "ONNX"));
  CHECK(contains(named("MODEL.GGUF"), "llama.cpp"));
  CHECK(contains(named("vit.keras"), "Keras"));
  CHECK(contains(named("manifest.ocdbt"), "Orbax"));
  CHECK(contains(named("DSC_0001.NEF"), "raw photograph"));
  CHECK(contains(named("scan.dcm"), "DICOM"));
  CHECK(named("model.safetensors").empty());
  CHECK(named("photo.jpg").empty());
  CHECK(named("").empty());

  const auto with = [](std::string bytes) {
    bytes.resize(512, '\0');
    const ForeignFile* const found = foreign_by_content(bytes);
    return found == nullptr ? std::string() : describe(*found);
  };
  CHECK(contains(with("GGUF\3"), "llama.cpp"));
  CHECK(contains(with("\x89HDF\r\n\x1A\n"), "Keras"));
  CHECK(contains(with(std::string(128, '\0') + "DICM"), "DICOM"));
  CHECK(contains(with("PK\x03\x04"), "zip"));
  CHECK(contains(with(std::string("\0\0\0\x18", 4) + "ftypisom"), "video"));
  CHECK(contains(with("\x1A\x45\xDF\xA3"), "video"));
  CHECK(with("\x89PNG\r\n\x1A\n").empty());
  CHECK(foreign_by_content("") == nullptr);
  CHECK(foreign_by_content("GG") == nullptr);
}

TEST_CASE("foreign files: a missing path may be an address or a name") {
  CHECK(contains(missing_hint("https://example.com/photo.jpg"), "curl -LO 'https://example.com/photo.jpg'"));
  CHECK(contains(missing_hint("https://huggingface.co/google/vit-base-patch16-224/tree/main"),
                 "hf download google/vit-base-patch16-224 "));
  CHECK(contains(missing_hint("https://huggingface.co/google/vit-base-patch16-224"),
                 "hf download google/vit-base-patch16-224 "));
  CHECK(contains(missing_hint("https://huggingface.co/"), "curl"));
  CHECK(contains(missing_hint("hf-hub:timm/vit_tiny_patch16_224.augreg"),
                 "hf download timm/vit_tiny_patch16_224.augreg"));
  CHECK(contains(missing_hint("s3://bucket/a.png"), "nothing is downloaded"));
  CHECK(missing_hint("") == "; the path is empty");
  CHECK(contains(missing_hint("google/siglip2"), "hf download google/siglip2 --local-dir siglip2"));
  for (const char* plain : {"photo.jpg", "/abs/photo.jpg", "./a/b", "a/b/c", "../x/y", "dir/", "a b/c"})
    CHECK(missing_hint(plain).empty());
}
