#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/error.h"
#include "vit/io/atomic_file.h"
#include "vit/io/source_file.h"

#ifndef _WIN32
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace vit {
using namespace internal;

namespace {

/// Opens a file of a format that has no empty files.
void open(const std::filesystem::path& path) {
  const SourceFile file(path, {"read", ErrorKind::format});
}

}  // namespace

TEST_CASE("weights: a source file gives its bytes, and no others") {
  const test::TemporaryFolder folder;
  std::string contents(3 * 4096 + 17, 'a');
  contents[4096] = 'b';
  contents.back() = 'c';
  const SourceFile file(folder.write("file", contents), "read");
  CHECK(file.text() == contents);
  CHECK(file.text(4095, 3) == "aba");
  CHECK(file.text(contents.size() - 1, 100) == "c");
  CHECK(file.text(contents.size() + 5, 100).empty());
  std::vector<std::byte> two(2);
  CHECK_THROWS_AS(file.read(contents.size() - 1, two), Error);
  CHECK_THROWS_AS(file.read(~std::size_t{0}, two), Error);
  const StoredBytes part = StoredBytes(file, 4000, 200).part(95, 3);
  CHECK(part.copy() == std::vector<std::byte>{std::byte{'a'}, std::byte{'b'}, std::byte{'a'}});
  CHECK(StoredBytes(std::as_bytes(std::span(contents))).part(4096, 1).copy() ==
        std::vector<std::byte>{std::byte{'b'}});
}

TEST_CASE("weights: a file that changes while it is in use is an Error, not a signal") {
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder.write("file", std::string(1 << 20, 'a'));
  {
    const SourceFile file(path, "read");
    CHECK(file.text(0, 1) == "a");
    std::filesystem::resize_file(path, 4096);
    CHECK_ERROR(ErrorKind::io, (path.string()), file.text());
    CHECK_ERROR(ErrorKind::io, (path.string()), file.text(0, 1));
  }
  {
    const SourceFile file(path, "read");
    std::filesystem::last_write_time(path,
                                     std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK_ERROR(ErrorKind::io, (path.string()), file.text());
  }
  const SourceFile file(path, "read");
  std::filesystem::rename(folder.write("other", "new"), path);  // another file under its name
  CHECK(file.text().size() == 4096);
  std::filesystem::remove(path);
  CHECK(file.text().size() == 4096);
}

TEST_CASE("weights: what cannot be read is refused with the reason") {
  const test::TemporaryFolder folder;
  CHECK_ERROR(ErrorKind::io, ("absent"), open(folder.path() / "absent"));
  CHECK_ERROR(ErrorKind::io, (folder.path().string()), open(folder.path()));
  CHECK_ERROR(ErrorKind::format, ("empty"), open(folder.write("empty", "")));
#ifndef _WIN32
  CHECK_ERROR(ErrorKind::io, ("/dev/zero"), open("/dev/zero"));
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_ERROR(ErrorKind::io, (pipe.string()), open(pipe));
  const auto secret = folder.write("secret", "x");
  ::chmod(secret.c_str(), 0);
  if (::access(secret.c_str(), R_OK) != 0) CHECK_ERROR(ErrorKind::io, ("secret"), open(secret));
#endif
  CHECK(test::error_of([&] { open(folder.path() / "absent"); })->where() == "read");
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
  CHECK_ERROR(ErrorKind::io, ((folder.path() / "absent" / "file").string()),
              AtomicFile(folder.path() / "absent" / "file", "write"));
}

}  // namespace vit
