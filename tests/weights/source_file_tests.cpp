#include <doctest/doctest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_file.h"
#include "vit/base/error.h"
#include "vit/weights/files/atomic_file.h"
#include "vit/weights/files/source_file.h"

namespace vit {
using namespace internal;

namespace {

std::string refusal(const std::filesystem::path& path) {
  return test::error_text<Error>([&] { const SourceFile file(path, "read"); });
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
  const auto reading = [](const SourceFile& file) {
    return test::error_text<Error>([&] { static_cast<void>(file.text()); });
  };
  {
    const SourceFile file(path, "read");
    CHECK(file.text(0, 1) == "a");
    std::filesystem::resize_file(path, 4096);
    CHECK(reading(file).find("cut short while it was read") != std::string::npos);
    CHECK(test::error_text<Error>([&] { static_cast<void>(file.text(0, 1)); }).find("was written while") !=
          std::string::npos);
  }
  {
    const SourceFile file(path, "read");
    std::filesystem::last_write_time(path,
                                     std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
    CHECK(reading(file).find("was written while") != std::string::npos);
  }
  const SourceFile file(path, "read");
  std::filesystem::rename(folder.write("other", "new"), path);  // another file under its name
  CHECK(file.text().size() == 4096);
  std::filesystem::remove(path);
  CHECK(file.text().size() == 4096);
}

TEST_CASE("weights: what cannot be read is refused with the reason") {
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
