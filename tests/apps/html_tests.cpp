// Pages of --html: what is in them, that names and labels cannot leave their place, and what happens where
// a page cannot be written. How they behave in a browser is pages/result_pages.py.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/html/html_page.h"
#include "apps/vit/html/run_page.h"
#include "tests/apps/program.h"
#include "tests/support/shared_data.h"
#include "vit/image/image.h"
#include "vit/io/json.h"

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

namespace fs = std::filesystem;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// The contents of the element with this id.
std::string element(const std::string& page, const std::string& id) {
  const std::string mark = "id=\"" + id + "\">";
  const std::size_t begin = page.find(mark);
  REQUIRE(begin != page.npos);
  const std::size_t from = begin + mark.size();
  return page.substr(from, page.find("</script>", from) - from);
}

Json data_of(const std::string& page) {
  return parse_json(element(page, "data"), "data");
}

std::vector<std::byte> decode_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::byte> out;
  unsigned bits = 0, number = 0;
  for (const char c : text) {
    if (c == '=') break;
    number = (number << 6) | static_cast<unsigned>(kDigits.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    out.push_back(static_cast<std::byte>(number >> bits & 255));
  }
  return out;
}

/// The thumbnail of an item.
Image thumbnail_of(const std::string& page, const Json& item) {
  const Json place = item.at("thumbnail");
  const std::string all = element(page, "thumbnails");
  return decode_bytes(decode_base64(std::string_view(all).substr(place[0].as_size(), place[1].as_size())), {},
                      "thumbnail");
}

/// A page is one file: three scripts, no address but that of links, and a policy that forbids all requests.
void check_frame(const std::string& page) {
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(count(page, "<script") == 3);
  CHECK(count(page, "</script>") == 3);
  CHECK(count(page, "<style>") == 1);
  CHECK(count(page, "default-src 'none'; img-src data:; style-src 'sha256-") == 1);
  for (const char* const outside : {"http:", "https:", "url(", "@import", "src=\"", "@TITLE@", "@DATA@"})
    CHECK_MESSAGE(count(page, outside) == 0, outside);
}

app::PageItem item_called(const std::string& name) {
  app::PageItem item = app::named_item(name);
  item.thumbnail.failure = "none";
  return item;
}

}  // namespace

TEST_CASE("html: no name and no label leaves its place") {
  const std::vector<std::string> names{"</script><script>alert(1)</script>",
                                       "<!--<script>",
                                       "a\"b'c&d;\\",
                                       "\xFF\xFE.jpg",
                                       "line\nbreak\r\x1b[1m",
                                       "\u202Egpj.exe",
                                       "@DATA@",
                                       "]]>"};
  app::HtmlPage page{.title = "<b>&\"title\""};
  app::PageSection& section = page.sections.emplace_back();
  section.title = names[0];
  section.note = names[1];
  for (const std::string& name : names) {
    app::PageItem& item = section.items.emplace_back(item_called(name));
    item.labels = {{.name = name, .score = 0.5f}};
    item.note = name;
  }
  page.facts = names;
  const std::string text = app::render(page);
  CHECK(count(text, "<title>&lt;b&gt;&amp;&quot;title&quot;</title>") == 1);
  CHECK(count(text, "<script") == 3);
  CHECK(count(text, "</script>") == 3);
  CHECK(count(text, "<!--") == 0);
  CHECK(count(text, "alert(1)") == 5);  // section, item, label, note and fact, all of them data
  const Json items = data_of(text).at("sections")[0].at("items");
  REQUIRE(items.size() == names.size());
  CHECK(items[0].at("name").as_string() == names[0]);
  CHECK(items[2].at("name").as_string() == names[2]);
  CHECK(items[3].at("name").as_string() == "\\xff\\xfe.jpg");  // as on the terminal
  CHECK(items[4].at("name").as_string() == "line\\nbreak\\x0d\\x1b[1m");
  CHECK(items[6].at("labels")[0][0].as_string() == "@DATA@");
  CHECK(items[6].at("missing").as_string() == "none");
}

TEST_CASE("html: a page that would grow too large leaves thumbnails out and says how many") {
  app::HtmlPage page{.title = "t"};
  app::PageSection& section = page.sections.emplace_back();
  for (std::size_t i = 0; i < 40; ++i) {
    app::PageItem& item = section.items.emplace_back(item_called(std::to_string(i)));
    item.thumbnail.webp = std::string(3000, static_cast<char>('a' + i / 2));  // every two are the same
  }
  const std::string whole = app::render(page);
  CHECK(whole.size() > 20 * 4000);
  CHECK(whole.size() < 21 * 4000 + 40'000);
  CHECK(!data_of(whole).find("left_out"));
  const Json items = data_of(whole).at("sections")[0].at("items");
  CHECK(items[1].at("thumbnail")[0].as_size() == items[0].at("thumbnail")[0].as_size());
  CHECK(items[2].at("thumbnail")[0].as_size() == 4000);

  const std::size_t room = whole.size() - 20'000;
  const std::string bounded = app::render(page, room);
  CHECK(bounded.size() <= room);
  const Json found = data_of(bounded);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < 40; ++i)
    missing += found.at("sections")[0].at("items")[i].find("missing") ? 1 : 0;
  CHECK(missing >= 10);
  CHECK(missing < 20);
  CHECK(found.at("left_out").as_string().starts_with(std::to_string(missing) + " thumbnails are left out"));
}

TEST_CASE("html: links reach files of any name") {
  CHECK(app::file_link({.name = "x", .path = "/a b/\xFF#?%\u00e9.jpg", .pixels = nullptr}) ==
        "file:///a%20b/%FF%23%3F%25%C3%A9.jpg");
  CHECK(app::file_link({.name = "x", .path = {}, .pixels = nullptr}).empty());
}

TEST_CASE("html: classify writes a page in addition to its output") {
  const TestFolder folder;
  const std::string odd = folder / "in/a<b>&\".ppm", wide = folder / "in/wide.ppm";
  write_picture(odd, 30, 40, 1);
  write_picture(wide, 400, 800, 2);
  write_text(folder / "in/z.ppm", "P6 40 40 255\n");
  write_text(folder / "names.txt", "ant\nbee\n</script>\ndog\neel\nfox\n");
  const std::vector<std::string> plain{"--labels", folder / "names.txt", "--format", "json", folder / "in"};
  std::vector<std::string> paged = plain;
  paged.insert(paged.end(), {"--html", folder / "page.html"});
  const RunResult without = run_vit(with_model("classify", plain));
  const RunResult with = run_vit(with_model("classify", paged));
  CHECK(with.exit_code == 1);  // the broken file
  CHECK(with.out == without.out);
  CHECK(with.err == without.err);
  const std::string page = read_text(folder / "page.html");
  check_frame(page);
  const Json data = data_of(page);
  CHECK(data.at("scores").as_string() == "probability");
  const Json items = data.at("sections")[0].at("items");
  REQUIRE(items.size() == 2);
  const Json line = parse_json(lines_of(with.out)[0], "line");
  CHECK(items[0].at("name").as_string() == odd);
  CHECK(items[0].at("note").as_string() == "40 x 30");
  CHECK(items[0].at("link").as_string() == "file://" + folder.path() + "/in/a%3Cb%3E%26%22.ppm");
  REQUIRE(items[0].at("labels").size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const Json expected = line.at("top")[i], found = items[0].at("labels")[i];
    CHECK(found[0].as_string() == expected.at("label").as_string());
    CHECK(found[1].as_double() == doctest::Approx(expected.at("probability").as_double()).epsilon(1e-4));
  }
  CHECK(items[0].at("score").as_double() == items[0].at("labels")[0][1].as_double());
  CHECK(thumbnail_of(page, items[0]).size() == ImageSize{30, 40});  // never enlarged
  CHECK(thumbnail_of(page, items[1]).size() == ImageSize{160, 320});

  const Image small = thumbnail_of(page, items[0]);  // lossy, but the same picture
  const Image image = decode_file(odd);
  double difference = 0;
  for (std::size_t i = 0; i < 3 * 30 * 40; ++i)
    difference += std::abs(int{small.data()[i]} - int{image.data()[i]}) / (3.0 * 30 * 40);
  CHECK(difference < 40);
}

TEST_CASE("html: preprocessed pixels have no thumbnail, and a page may be empty") {
  const TestFolder folder;
  write_npy(folder / "x.npy", Tensor<float>(Shape{2, 3, 24, 24}).view());
  REQUIRE(run_vit(with_model("classify", {folder / "x.npy", "--html", folder / "page.html"})).exit_code == 0);
  const Json items = data_of(read_text(folder / "page.html")).at("sections")[0].at("items");
  REQUIRE(items.size() == 2);
  CHECK(items[1].at("name").as_string() == folder / "x.npy[1]");
  CHECK(items[1].at("missing").as_string() == "preprocessed pixels");
  CHECK(!items[1].find("link"));

  write_text(folder / "broken.ppm", "P6 4");
  const RunResult none =
      run_vit(with_model("classify", {folder / "broken.ppm", "--html", folder / "none.html"}));
  CHECK(none.exit_code == 1);
  CHECK(data_of(read_text(folder / "none.html")).at("sections")[0].at("items").size() == 0);
}

TEST_CASE("html: search and duplicates show queries, groups and cosines" * doctest::test_suite("index")) {
  const TestFolder folder;
  for (unsigned i = 0; i < 4; ++i)
    write_picture(folder / ("in/" + std::to_string(i) + ".ppm"), 40 + 8 * i, 40, i / 2);
  fs::copy_file(folder / "in/0.ppm", folder / "in/9.ppm");
  const RunResult made = run_vit(with_model("index", {folder / "in", "--output", folder / "index"}));
  if (made.exit_code != 0) {
    CHECK(contains(made.err, "libfaiss-dev"));
    return;
  }
  const RunResult found =
      run_vit({"search", folder / "index", folder / "in/0.ppm", folder / "in/2.ppm", "--each", "--format",
               "json", "--top", "3", "--html", folder / "search.html"});
  REQUIRE_MESSAGE(found.exit_code == 0, found.err);
  const std::string page = read_text(folder / "search.html");
  check_frame(page);
  const Json sections = data_of(page).at("sections");
  REQUIRE(sections.size() == 2);
  CHECK(sections[1].at("title").as_string() == folder / "in/2.ppm");
  CHECK(thumbnail_of(page, sections[1].at("leads")[0]).size() == ImageSize{56, 40});
  const Json results = parse_json(lines_of(found.out)[1], "line").at("results");
  REQUIRE(sections[1].at("items").size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const Json item = sections[1].at("items")[i];
    CHECK(item.at("name").as_string() == results[i].at("file").as_string());
    CHECK(item.at("score").as_double() == doctest::Approx(results[i].at("score").as_double()).epsilon(1e-5));
  }
  CHECK(sections[0].at("items")[1].at("name").as_string() ==
        folder / "in/9.ppm");  // the same bytes, kept once
  CHECK(sections[0].at("items")[1].at("thumbnail")[0].as_size() ==
        sections[0].at("items")[0].at("thumbnail")[0].as_size());

  const RunResult groups = run_vit({"duplicates", folder / "index", "--threshold", "0.999", "--format",
                                    "json", "--html", folder / "groups.html"});
  REQUIRE_MESSAGE(groups.exit_code == 0, groups.err);
  const Json group = data_of(read_text(folder / "groups.html")).at("sections");
  CHECK(group.size() == lines_of(groups.out).size());
  CHECK(group[0].at("title").as_string() == "Group 0");
  CHECK(contains(std::string(group[0].at("items")[0].at("note").as_string()), "best resolution"));
}

TEST_CASE("html: show writes its pictures into a page, with or without a file" *
          doctest::test_suite("show")) {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 50, 1);
  write_picture(folder / "b.ppm", 60, 40, 2);
  const auto show = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {folder / "a.ppm", folder / "b.ppm", "--what"});
    more.insert(more.end(), {"--html", folder / "show.html"});
    return run_vit(with_model("show", more));
  };
  const RunResult pca = show({"pca"});
  if (pca.exit_code != 0) {
    CHECK(contains(pca.err, "OpenCV"));
    return;
  }
  std::string page = read_text(folder / "show.html");
  check_frame(page);
  CHECK(data_of(page).at("large").as_bool());
  const Json items = data_of(page).at("sections")[0].at("items");
  REQUIRE(items.size() == 2);
  CHECK(items[0].at("name").as_string() == folder / "a.ppm");
  CHECK(contains(std::string(items[0].at("note").as_string()), "components 1, 2, 3"));
  CHECK(thumbnail_of(page, items[0]).width() > 600);  // the image and its components
  REQUIRE(show({"match", "--output", folder / "match.png"}).exit_code == 0);
  page = read_text(folder / "show.html");
  CHECK(data_of(page).at("sections")[0].at("items")[0].at("name").as_string() ==
        folder / "a.ppm and " + (folder / "b.ppm"));
  CHECK(fs::file_size(folder / "match.png") > 1000);
}

TEST_CASE("html: a page is written whole or not at all, and replaces nothing of the user's") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 50, 1);
  const std::string before = read_text(folder / "a.ppm");
  const auto refused = [&](const std::string& path, int exit_code, const std::string& cause) {
    const RunResult result = run_vit(with_model("classify", {folder / "a.ppm", "--html", path}));
    CHECK(result.exit_code == exit_code);
    CHECK(result.out.empty());
    CHECK(result.num_errors() == 1);
    CHECK_MESSAGE(contains(result.err, cause), result.err);
  };
  refused(folder / "a.ppm", 2, "a.ppm");
  refused(folder / "nowhere/page.html", 1, "nowhere");
  refused(folder.path(), 1, folder.path());
  refused("", 2, "--html");
  CHECK(read_text(folder / "a.ppm") == before);
  CHECK(folder.names() == std::vector<std::string>{"a.ppm"});
}
