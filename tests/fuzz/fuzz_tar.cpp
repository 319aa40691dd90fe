// Lists the members of .tar files and reads them where the headers say that they lie.
#include "tests/fuzz/fuzz_tar.h"

#include "apps/vit/inputs/tar_archive.h"
#include "tests/fuzz/in_memory_file.h"
#include "tests/support/tar_writer.h"

namespace vit::fuzz {

void run_tar(std::string_view input) {
  const InMemoryFile file(input);
  const app::TarArchive archive(file.path());
  std::vector<app::TarRange> files;
  archive.list([&](const app::TarEntry& entry) {
    if (entry.kind == app::TarEntry::Kind::file && entry.range.size > 0) files.push_back(entry.range);
  });
  for (const app::TarRange& range : files) archive.read(range);
}

std::vector<std::string> tar_seeds() {
  const std::string long_name(150, 'n');
  return {
      test::tar({{"a.jpg", "first"},
                 {"b.jpg", std::string(600, 'b')},
                 {"in", "", '5'},
                 {"c.jpg", "", '1', "", "a.jpg"}}),
      test::tar({{"pax", test::pax_record("path", long_name) + test::pax_record("size", "5"), 'x'},
                 {"short", "12345"}}),
      test::tar(
          {{"pax",
            test::pax_record("GNU.sparse.major", "1") + test::pax_record("GNU.sparse.minor", "0") +
                test::pax_record("GNU.sparse.name", "s.jpg") + test::pax_record("GNU.sparse.realsize", "700"),
            'x'},
           {"GNUSparseFile.0/s.jpg", "1\n600\n100\n" + std::string(502, '\0') + std::string(100, 's')}}),
      test::tar({{"././@LongLink", long_name + '\0', 'L'}, {"short", "x"}})};
}

}  // namespace vit::fuzz
