#include "apps/vit/inputs/npy.h"

#include <doctest/doctest.h>

#include <vector>

#include "tests/apps/program.h"
#include "vit/base/error.h"

using namespace vit;
using namespace vit::app;
using vit::test::TestFolder;

namespace {

/// A file with this dictionary and this many floats after it.
std::string npy_file(const std::string& dictionary, std::size_t num_floats, char version = 1) {
  std::string out = "\x93NUMPY";
  out += version;
  out += '\0';
  out += static_cast<char>(dictionary.size() & 0xFF);
  out += static_cast<char>(dictionary.size() >> 8);
  if (version > 1) out += std::string(2, '\0');
  return out + dictionary + std::string(num_floats * sizeof(float), '\0');
}

const std::string kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4, 5), }";

std::string failure_of(const std::string& contents) {
  const TestFolder folder;
  test::write_text(folder / "x.npy", contents);
  try {
    const PixelFile file(folder / "x.npy");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("apps: preprocessed pixels are read image by image") {
  const TestFolder folder;
  Tensor<float> pixels(Shape{2, 3, 4, 5});
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) pixels.flat()[i] = static_cast<float>(i);
  test::write_npy(folder / "x.npy", pixels.view());
  const PixelFile file(folder / "x.npy");
  REQUIRE(file.num_images() == 2);
  const Tensor<float> second = file.load(1);
  CHECK(second.shape() == Shape{3, 4, 5});
  CHECK(second.flat()[0] == 60.0f);
  CHECK(second.flat()[59] == 119.0f);
  CHECK_THROWS_AS(file.load(2), Error);

  test::write_npy(folder / "one.npy", pixels.view()[0]);
  CHECK(PixelFile(folder / "one.npy").num_images() == 1);
}

TEST_CASE("apps: every dialect of a valid .npy header is understood") {
  CHECK(failure_of(npy_file(kGood, 120)) == "");
  CHECK(failure_of(npy_file(kGood, 120, 2)) == "");
  CHECK(failure_of(npy_file(kGood, 120, 3)) == "");
  CHECK(failure_of(npy_file("{\"shape\":(3,4,5),\"fortran_order\":False,\"descr\":\"<f4\"}   \n", 60)) == "");
}

TEST_CASE("apps: a .npy file that is no preprocessed pixels is refused with its defect") {
  const auto refused = [](const std::string& contents, const std::string& why) {
    const std::string failure = failure_of(contents);
    CAPTURE(failure);
    CHECK(failure.find(why) != std::string::npos);
  };
  refused("", "empty");
  refused("\x93NUMPX\x01", "magic");
  refused("plain text, long enough", "magic");
  refused(npy_file(kGood, 119), "truncated");
  refused(npy_file(kGood, 121), "needs 480 bytes");
  refused(npy_file(kGood, 0).substr(0, 40), "ends inside its header");
  refused(npy_file(kGood, 120, 9), "version");
  refused(npy_file("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4, 5), }", 240), "float32");
  refused(npy_file("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3, 4, 5), }", 120), "float32");
  refused(npy_file("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3, 4, 5), }", 120), "Fortran");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4000, 4, 5), }", 160),
          "4000 channels");
  refused(npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (3, 4, 5), }", 60), "raw pixels");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (60,), }", 60), "(60,)");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3, 4, 5), }", 0), "no image");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 99999, 5), }", 0), "exceed");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 3, 4, 5), }", 0),
          "overflow");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (6148914691236517206, 3, 4, 5), }", 0),
          "overflow");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, }", 0), "missing");
  refused(npy_file("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }", 60),
          "unexpected key");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), 'x': 1}", 60),
          "unexpected key");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, -4, 5), }", 60), "expected a size");
  refused(npy_file("{'descr': '<f4', 'fortran_order': 0, 'shape': (3, 4, 5), }", 60), "True or False");
  refused(npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5)} import os", 60),
          "after the dictionary");
  refused(npy_file("{'descr': '<f4", 60), "no end");
  refused(npy_file("", 60), "expected '{'");
}

TEST_CASE("apps: headers are aligned, and arrays of strings are UTF-32") {
  const std::vector<std::size_t> shape{7};
  const std::string header = npy_header("<f4", shape);
  CHECK(header.size() % 64 == 0);
  CHECK(header.ends_with('\n'));
  CHECK(header.find("'shape': (7,)") != std::string::npos);
  const std::vector<std::string> names{"a.jpg", "gr\xC3\xBC\xC3\x9F.jpeg"};
  const test::NpyArray array = test::parse_npy(npy_strings(names));
  CHECK(array.descr == "<U9");
  CHECK(array.shape == std::vector<std::size_t>{2});
  REQUIRE(array.bytes.size() == 2 * 9 * 4);
  CHECK(array.strings()[0] == "a.jpg");
  CHECK(array.bytes.substr(9 * 4 + 2 * 4, 4) == std::string("\xFC\0\0\0", 4));
}
