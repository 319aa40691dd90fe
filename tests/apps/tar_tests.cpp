// Members of .tar files as inputs: the same results as from a folder, and what broken and hostile archives
// give.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "apps/vit/inputs/inputs.h"
#include "tests/apps/program.h"
#include "tests/support/tar_writer.h"

using namespace vit;
using namespace vit::app;
using namespace vit::test;

namespace {

/// Whether this build has libarchive; if not, that is what every .tar is refused with.
bool reads_archives() {
  const TestFolder folder;
  write_text(folder / "probe.tar", tar({{"a.jpg", "x"}}));
  const RunResult result = run_vit(with_model("classify", {folder / "probe.tar"}));
  return !contains(result.err, "libarchive-dev");
}

std::string picture(std::size_t edge, unsigned seed) {
  const TestFolder folder;
  write_picture(folder / "a.ppm", edge, edge, seed);
  return read_text(folder / "a.ppm");
}

/// What the list of inputs of an archive of these bytes contains: names, failures, notes, one a line.
std::string listed(const std::string& bytes) {
  const TestFolder folder;
  write_text(folder / "x.tar", bytes);
  std::istringstream nothing;
  const InputList list = list_inputs(std::vector{folder / "x.tar"}, nothing);
  std::string out;
  for (const Input& input : list.inputs) out += input.name.substr(folder.path().size() + 1) + "\n";
  for (const InputFailure& failure : list.failures) out += "failure: " + failure.cause + "\n";
  for (const InputFailure& note : list.notes) out += "note: " + note.cause + "\n";
  return out;
}

std::vector<float> embedded(const std::string& path) {
  return parse_npy(read_text(path)).floats();
}

}  // namespace

TEST_CASE("apps: members of a tar give what the files give, in the order of the archive") {
  if (!reads_archives()) return;
  const TestFolder folder;
  std::vector<TarMemberToWrite> members;
  std::vector<std::string> files;
  for (const unsigned i : {3u, 1u, 2u, 0u}) {
    const std::string name = std::to_string(i) + ".ppm";
    files.push_back(folder / name);
    write_picture(files.back(), 30 + i, 30, i);
    members.push_back({name, read_text(files.back())});
    members.push_back({std::to_string(i) + ".cls", "7"});
  }
  write_text(folder / "shard.tar", tar(members));
  std::vector<std::string> arguments{"--format", "csv"};
  arguments.insert(arguments.end(), files.begin(), files.end());
  const RunResult from_files = run_vit(with_model("classify", arguments));
  const RunResult from_tar = run_vit(with_model("classify", {"--format", "csv", folder / "shard.tar"}));
  CHECK(from_tar.exit_code == 0);
  CHECK(contains(from_tar.err, "shard.tar: 4 files are skipped, not images: 4 .cls"));
  std::string renamed = from_tar.out;
  for (std::size_t at = 0; (at = renamed.find("shard.tar/", at)) != renamed.npos;) renamed.erase(at, 10);
  CHECK(renamed == from_files.out);

  const RunResult listed_on_input =
      run_vit(with_model("classify", {"--format", "csv", "-"}), {.standard_input = folder / "shard.tar\n"});
  CHECK(listed_on_input.out == from_tar.out);
  for (const char* command : {"embed", "preprocess"}) {
    std::vector<std::string> both{"--output", folder / "files.npy"};
    both.insert(both.end(), files.begin(), files.end());
    const std::vector<std::string> size{"--size", "32"};
    both.insert(both.end(), size.begin(), size.end());
    CHECK(run_vit(with_model(command, both)).exit_code == 0);
    CHECK(run_vit(with_model(command, {folder / "shard.tar", "--size", "32", "--output", folder / "tar.npy"}))
              .exit_code == 0);
    CHECK(embedded(folder / "files.npy") == embedded(folder / "tar.npy"));
  }
  if (!is_built("show")) return;
  CHECK(run_vit(with_model("show", {folder / "shard.tar", "--what", "pca", "--data", folder / "x.npz"}))
            .exit_code == 0);
  CHECK(read_npz(folder / "x.npz").contains("values.3"));
}

TEST_CASE("apps: an index of members of a tar is complete until the archive changes" *
          doctest::test_suite("index")) {
  if (!reads_archives()) return;
  const TestFolder folder;
  write_text(folder / "a.tar", tar({{"1.ppm", picture(30, 1)}, {"2.ppm", picture(31, 2)}}));
  const std::vector<std::string> command{folder / "a.tar", "--output", folder / "index", "--progress",
                                         "always"};
  const RunResult first = run_vit(with_model("index", command));
  if (contains(first.err, "libfaiss-dev")) return;
  CHECK(contains(first.err, "2 images, 2 newly embedded"));
  CHECK(contains(run_vit(with_model("index", command)).err, "unchanged"));
  std::filesystem::last_write_time(
      folder / "a.tar", std::filesystem::last_write_time(folder / "a.tar") + std::chrono::hours(1));
  CHECK(contains(run_vit(with_model("index", command)).err, "2 newly embedded"));
}

TEST_CASE("apps: names of members are kept as they are, also twice") {
  if (!reads_archives()) return;
  const std::string image = picture(24, 1), long_name = std::string(200, 'n') + ".ppm";
  CHECK(listed(tar({{"b.ppm", image}, {"../a.ppm", image}, {"b.ppm", image}, {"/c.PPM", image}})) ==
        "x.tar/b.ppm\nx.tar/../a.ppm\nx.tar/b.ppm\nx.tar//c.PPM\n");
  CHECK(listed(tar({{"pax", pax_record("path", long_name), 'x'}, {"short.ppm", image}})) ==
        "x.tar/" + long_name + "\n");
  CHECK(listed(tar({{"././@LongLink", long_name + '\0', 'L'}, {"short.ppm", image}})) ==
        "x.tar/" + long_name + "\n");
  CHECK(listed(tar({{"pax", pax_record("path", "\xC3\xBC.ppm"), 'x'}, {"short.ppm", image}})) ==
        "x.tar/\xC3\xBC.ppm\n");
  CHECK(listed(tar({{"raw\xFF.ppm", image}})) == "x.tar/raw\xFF.ppm\n");
  CHECK(listed(tar({{"in", "", '5'},
                    {"in/a.ppm", "", '2', "", "b.ppm"},
                    {"h.ppm", "", '1', "", "b.ppm"},
                    {"d.ppm", "", '3'},
                    {"a.txt", "x"},
                    {"b.ppm", image}})) ==
        "x.tar/b.ppm\nnote: 4 files are skipped, not images: 3 links and devices, 1 .txt\n");
}

TEST_CASE("apps: of many kinds of other members the most frequent are named") {
  if (!reads_archives()) return;
  std::vector<TarMemberToWrite> members{{"a.ppm", picture(24, 1)}, {"a.zz", ""}, {"b.zz", ""}};
  for (int i = 10; i < 40; ++i) members.push_back({"a.k" + std::to_string(i), ""});
  const std::string text = listed(tar(members));
  CHECK(contains(text, "note: 32 files are skipped, not images: 2 .zz, 1 .k10, "));
  CHECK(text.ends_with("1 .k18, 21 of other kinds\n"));
}

TEST_CASE("apps: a broken tar gives the members before the break and one error") {
  if (!reads_archives()) return;
  const std::string image = picture(24, 1);
  const auto is_one_failure = [](const std::string& text, const std::string& before) {
    CAPTURE(text);
    CHECK(text.starts_with(before + "failure: "));
    CHECK(std::count(text.begin(), text.end(), '\n') == 1 + std::count(before.begin(), before.end(), '\n'));
  };
  const std::string whole = tar({{"a.ppm", image}, {"b.ppm", image}});
  is_one_failure(listed(whole.substr(0, whole.size() / 2 + 700)), "x.tar/a.ppm\n");  // inside of b.ppm
  is_one_failure(listed(whole.substr(0, (whole.size() - 1024) / 2 + 100)), "x.tar/a.ppm\n");  // in its header
  is_one_failure(listed(tar({{"a.ppm", image}, {.name = "b.ppm", .data = image, .is_damaged = true}})),
                 "x.tar/a.ppm\n");
  for (const char* size : {"77777777777", "00000007777"})
    is_one_failure(listed(tar({{"a.ppm", image}, {"b.ppm", image, '0', size}})), "x.tar/a.ppm\n");
  is_one_failure(
      listed(
          tar({{"a.ppm", image}, {"pax", pax_record("size", "9223372036854775807"), 'x'}, {"b.ppm", image}})),
      "x.tar/a.ppm\n");
  is_one_failure(listed(tar({{"a.ppm", image}, {"b.ppm", image, '0', "00000000000"}})),
                 "x.tar/a.ppm\nx.tar/b.ppm\n");  // its bytes are taken for a header
  is_one_failure(listed(tar({})), "");
  is_one_failure(listed(""), "");
  is_one_failure(listed("\x1f\x8b\x08" + std::string(600, 'x')), "");
  is_one_failure(listed(std::string(5000, 'x')), "");

  const TestFolder folder;
  write_text(folder / "x.tar", whole.substr(0, whole.size() / 2 + 700));
  const RunResult result =
      run_vit(with_model("classify", {"--format", "csv", "--top", "1", folder / "x.tar"}));
  CHECK(result.exit_code == 1);
  CHECK(result.num_errors() == 1);
  CHECK(contains(result.err, "x.tar: is truncated inside the member b.ppm"));
  CHECK(lines_of(result.out).size() == 2);
  write_text(folder / "y.tar.gz", "x");
  const RunResult compressed = run_vit(with_model("classify", {folder / "y.tar.gz"}));
  CHECK(compressed.exit_code == 1);
  CHECK(contains(compressed.err, "decompress it"));
  CHECK(contains(run_vit(with_model("evaluate", {folder / "x.tar"})).err, "unpack archives first"));
}

TEST_CASE("apps: only a member that is no image fails, and an archive that changes is noticed") {
  if (!reads_archives()) return;
  const TestFolder folder;
  write_text(folder / "x.tar",
             tar({{"a.ppm", picture(24, 1)}, {"b.ppm", ""}, {"c.jpg", "text"}, {"d.ppm", picture(24, 2)}}));
  const RunResult result =
      run_vit(with_model("classify", {"--format", "csv", "--top", "1", folder / "x.tar"}));
  CHECK(result.exit_code == 1);
  CHECK(result.err == "vit: " + folder / "x.tar" + "/b.ppm: the member is empty\nvit: " + folder / "x.tar" +
                          "/c.jpg: not an image: the file contains text\n");
  CHECK(lines_of(result.out).size() == 3);

  const TarArchive archive(folder / "x.tar");
  std::vector<TarEntry> entries;
  archive.list([&](const TarEntry& entry) { entries.push_back(entry); });
  REQUIRE(entries.size() == 4);
  CHECK(archive.read(entries[2].range).size() == 4);
  write_text(folder / "x.tar", tar({}));
  CHECK_ERROR(ErrorKind::io, ("x.tar"), archive.read(entries[2].range));
}
