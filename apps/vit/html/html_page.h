// A page of images that --html writes: one file that needs nothing beside it. What the images are called, and
// what is told of them, is for the commands; how a page looks and works is page.html, page.css and page.js.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  std::optional<float> score;     // what images are ordered by
  std::vector<PageLabel> labels;  // best first
};

/// An item of which nothing but the name is known yet.
inline PageItem named_item(std::string name) {
  return {.name = std::move(name), .link = {}, .thumbnail = {}, .note = {}, .score = {}, .labels = {}};
}

/// Images under a heading; a page without headings has one section.
struct PageSection {
  std::string title;
  std::string note;
  std::vector<PageItem> leads;  // beside the heading: what was searched for
  std::vector<PageItem> items;
};

enum class PageScores { number, probability };
enum class PageImages { thumbnails, large };

struct HtmlPage {
  std::string title;                 // of the browser's window
  std::vector<std::string> facts{};  // of one line below it
  PageScores scores = PageScores::number;
  PageImages images = PageImages::thumbnails;
  std::vector<PageSection> sections{};
};

/// The page. `max_bytes` bounds it as far as leaving out thumbnails, the last ones first, can do.
std::string render(const HtmlPage& page, std::size_t max_bytes = kMaxPageBytes);
/// Writes the page whole or not at all. Throws Error that names the file.
void write_page(const std::filesystem::path& path, const HtmlPage& page);

}  // namespace vit::app
