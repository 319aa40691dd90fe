// Vectors of pages and of questions have the bits of data/golden/bits.txt under all kernels that fuse
// multiplications with additions, on this machine and on others.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/support/files.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "vit/kernels/kernels.h"
#include "vit/pages.h"

TEST_SUITE_BEGIN("pages");

using namespace vit;
using namespace vit::test;

namespace {

std::string stored_digest(const std::string& wanted) {
  std::istringstream lines(read_text(data_path("golden/bits.txt")));
  for (std::string name, digest; lines >> name >> digest;) {
    if (name == wanted) return digest;
  }
  return "";
}

}  // namespace

TEST_CASE("bits: pages and questions have the same bits under all kernels that fuse, and on other machines") {
  const std::string expected = stored_digest("pages/colmodernvbert");
  for (const internal::kernels::KernelTable* const table : internal::kernels::available_kernels()) {
    if (!table->is_portable) continue;
    CAPTURE(table->name);
    ModelOptions options;
    options.kernels = table->name;
    PageEncoder encoder(PageModel::load(data_path("golden/pages/colmodernvbert"), options), {.threads = 1});
    std::string bytes;
    const auto append = [&](const Tensor<float>& vectors) {
      bytes.append(reinterpret_cast<const char*>(vectors.data()), vectors.flat().size_bytes());
    };
    append(encoder.encode(data_path("golden/pages/images/wide.png")));
    append(encoder.encode_query("revenue by quarter, 2024"));
    const std::string digest = sha256(bytes.data(), bytes.size());
    REQUIRE_MESSAGE(!expected.empty(), "add this line to data/golden/bits.txt: pages/colmodernvbert ",
                    digest);
    CHECK(digest == expected);
  }
}

TEST_SUITE_END();
