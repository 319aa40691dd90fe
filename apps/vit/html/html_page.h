// The page of images that --html writes: one self-contained file. Names and descriptions of the images come
// from the commands; the appearance and behavior are in page.html, page.css and page.js.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/html/thumbnails.h"

namespace vit::app {

/// Largest size of a page; thumbnails beyond it are left out.
inline constexpr std::size_t kMaxPageBytes = 100'000'000;

struct PageLabel {
  std::string name;
  float score = 0;
};

/// One image.
struct PageItem {
  std::string name;  // any bytes
  std::string link;  // address of its file, or ""
  Thumbnail thumbnail;
  std::string note;
  std::optional<float> score;     // sort key of the images
  std::vector<PageLabel> labels;  // best first
};

/// An item with only a name.
inline PageItem named_item(std::string name) {
  return {.name = std::move(name), .link = {}, .thumbnail = {}, .note = {}, .score = {}, .labels = {}};
}

/// Images under a heading; a page without headings has one section.
struct PageSection {
  std::string title;
  std::string note;
  std::vector<PageItem> leads;  // next to the heading: the query images
  std::vector<PageItem> items;
};

enum class PageScores { number, probability };
enum class PageImages { thumbnails, large };

struct HtmlPage {
  std::string title;                 // of the browser's window
  std::vector<std::string> facts{};  // of one line below it
  PageScores scores = PageScores::number;
  PageImages images = PageImages::thumbnails;
  bool is_sorted = false;  // the order of the items is that of their scores, not one that was given
  std::vector<PageSection> sections{};
  std::vector<std::pair<std::string, std::string>> failures{};  // inputs without a result, and why
  std::size_t num_failed = 0;                                   // if not all of them are listed
};

/// The page. To stay below `max_bytes`, thumbnails are left out, the last ones first.
std::string render(const HtmlPage& page, std::size_t max_bytes = kMaxPageBytes);
/// Writes the page atomically. Throws Error that names the file.
void write_page(const std::filesystem::path& path, const HtmlPage& page);

/// The texts of a page of another kind, with its own placeholders TITLE, STYLE, SCRIPT and DATA.
struct PageTexts {
  std::string_view frame, style, script;
};
/// Writes such a page with its data atomically.
void write_page(const std::filesystem::path& path, const PageTexts& texts, std::string_view title,
                const JsonValue& values);
/// Bytes in the letters of data: addresses.
std::string page_base64(std::string_view bytes);

// page.html, page.css and page.js of this folder, which the build embeds
extern const std::string_view kPageFrame;  // with @NAME@ as placeholders
extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;

}  // namespace vit::app
