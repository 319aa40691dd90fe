#include <doctest/doctest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/weights/files/atomic_file.h"
#include "vit/weights/files/mapped_file.h"

namespace vit {
using namespace internal;

namespace {

/// Maps a file of a format that has no empty files.
void map(const std::filesystem::path& path) {
  const MappedFile file(path, {"read", ErrorKind::format});
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
  CHECK_ERROR(ErrorKind::io, ("absent"), map(folder.path() / "absent"));
  CHECK_ERROR(ErrorKind::io, (folder.path().string()), map(folder.path()));
  CHECK_ERROR(ErrorKind::format, ("empty"), map(folder.write("empty", "")));
  CHECK_ERROR(ErrorKind::io, ("/dev/zero"), map("/dev/zero"));
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_ERROR(ErrorKind::io, (pipe.string()), map(pipe));
  const auto secret = folder.write("secret", "x");
  ::chmod(secret.c_str(), 0);
  if (::access(secret.c_str(), R_OK) != 0) CHECK_ERROR(ErrorKind::io, ("secret"), map(secret));
  CHECK(test::error_of([&] { map(folder.path() / "absent"); })->where() == "read");
}

TEST_CASE("weights: a file appears only when it is complete") {
  const test::TemporaryFolder folder;
  const auto path = folder.write("file", "before");
  const std::string text = "after";
  {
    AtomicFile file(path, "write");
    file.write(std::as_bytes(std::span(text)));
    CHECK(test::read_text(path) == "before");
  }
  CHECK(test::read_text(path) == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  {
    AtomicFile file(path, "write");
    file.write(std::as_bytes(std::span(text)));
    file.commit();
  }
  CHECK(test::read_text(path) == "after");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  CHECK_ERROR(ErrorKind::io, ("absent/file"), AtomicFile(folder.path() / "absent" / "file", "write"));
}

}  // namespace vit
