#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/temporary_file.h"
#include "vit/base/check.h"
#include "vit/weights/files/atomic_file.h"
#include "vit/weights/files/mapped_file.h"

namespace vit {
using namespace internal;

namespace {

std::string refusal(const std::filesystem::path& path) {
  return test::error_text<Error>([&] { const MappedFile file(path, "read"); });
}

}  // namespace

TEST_CASE("weights: a mapped file shows its bytes, also after they were released") {
  const test::TemporaryFolder folder;
  std::string contents(3 * 4096 + 17, 'a');
  contents[4096] = 'b';
  contents.back() = 'c';
  const MappedFile file(folder.write("file", contents), "read");
  const auto text = [&] {
    return std::string_view(reinterpret_cast<const char*>(file.bytes().data()), file.size());
  };
  CHECK(text() == contents);
  file.release(100, 5000);
  file.release(0, file.size());
  file.release(5000, 100);
  file.release(file.size(), file.size() + 10'000);
  CHECK(text() == contents);
}

TEST_CASE("weights: what cannot be mapped is refused with the reason") {
  const test::TemporaryFolder folder;
  CHECK(refusal(folder.path() / "absent").find("absent: no such file") != std::string::npos);
  CHECK(refusal(folder.path()).find("is a directory") != std::string::npos);
  CHECK(refusal(folder.write("empty", "")).find("is empty") != std::string::npos);
  CHECK(refusal("/dev/zero").find("device") != std::string::npos);
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal(pipe).find("pipe") != std::string::npos);
  const auto secret = folder.write("secret", "x");
  ::chmod(secret.c_str(), 0);
  if (::access(secret.c_str(), R_OK) != 0)
    CHECK(refusal(secret).find("cannot be opened") != std::string::npos);
  CHECK(refusal(folder.path() / "absent").starts_with("[read] "));
}

TEST_CASE("weights: a file appears only when it is complete") {
  const test::TemporaryFolder folder;
  const auto path = folder.write("file", "before");
  const std::string text = "after";
  {
    AtomicFile file(path, "write");
    file.write(std::as_bytes(std::span(text)));
    CHECK(test::read_file(path) == "before");
  }
  CHECK(test::read_file(path) == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  {
    AtomicFile file(path, "write");
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  CHECK(test::read_file(path) == "after");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_THROWS_AS(AtomicFile(folder.path() / "absent" / "file", "write"), Error);
}

}  // namespace vit
