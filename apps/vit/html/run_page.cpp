#include "apps/vit/html/run_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <span>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "apps/vit/ground/data_dir.h"
#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/options/load_model.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

std::string model_fact(const CommonOptions& options) {
  std::error_code error;
  if (options.model.empty() || std::filesystem::equivalent(options.model, data_dir() / "model", error))
    return "the model shipped with vit";
  const std::filesystem::path path = std::filesystem::absolute(model_path(options)).lexically_normal();
  const std::filesystem::path name = path.has_filename() ? path.filename() : path.parent_path().filename();
  return "model " + name.string();
}

/// The inputs that failed, in a section of their own: a page is what others get to see.
void add_failures(HtmlPage& page) {
  if (page.failures.empty()) return;
  const std::size_t listed = page.failures.size(), all = std::max(listed, page.num_failed);
  page.facts.push_back(text(with_thousands(all), " failed"));
  PageSection section{.title = "Failed", .note = "No result for these inputs.", .leads = {}, .items = {}};
  if (listed < all)
    section.note = text("No result for these inputs, the first ", with_thousands(listed), " of ",
                        with_thousands(all), ".");
  for (const auto& [name, cause] : page.failures) {
    PageItem& item = section.items.emplace_back(named_item(name));
    item.thumbnail.failure = cause;
    item.note = cause;
  }
  page.sections.push_back(std::move(section));
}

}  // namespace

void set_failures(HtmlPage& page, const Progress& progress) {
  page.failures = progress.failures();
  page.num_failed = progress.num_failed();
}

std::string count_of(std::size_t count, const std::string& noun) {
  return with_thousands(count) + " " + noun + (count == 1 ? "" : "s");
}

Option html_option(std::filesystem::path& path) {
  return {.name = "--html",
          .type_name = "FILE",
          .help = "Also write the results as one HTML page with thumbnails, which can be filtered and sorted",
          .target = text_target(path)};
}

void add_pictures(HtmlPage& page, std::span<const Input> inputs, const CommonOptions& options) {
  std::map<std::string_view, const Input*> known;
  for (const Input& input : inputs) known.emplace(input.name, &input);
  std::map<std::string, std::vector<PageItem*>> items;  // by name
  for (PageSection& section : page.sections) {
    for (PageItem& item : section.leads) items[item.name].push_back(&item);
    for (PageItem& item : section.items) items[item.name].push_back(&item);
  }
  std::vector<std::string> unknown;
  for (const auto& [name, same] : items) {
    if (!known.contains(name)) unknown.push_back(name);
  }
  const std::vector<Input> found = find_inputs(unknown);
  for (const Input& input : found) known.emplace(input.name, &input);
  // In the order of files and of their parts: frames of a video, which is read once from its beginning.
  using Items = std::pair<const Input*, std::span<PageItem* const>>;
  std::vector<Items> by_input;
  for (const auto& [name, same] : items) by_input.emplace_back(known.at(name), same);
  std::ranges::sort(by_input, {},
                    [](const Items& of) { return std::tie(of.first->path, of.first->pixels_index); });
  std::vector<Input> wanted;
  for (const auto& [input, same] : by_input) wanted.push_back(*input);
  const std::vector<Thumbnail> thumbnails = make_thumbnails(
      wanted,
      {.threads = options.session.threads, .progress = options.progress_mode(), .page_bytes = kMaxPageBytes});
  std::size_t i = 0;
  for (const auto& [input, same] : by_input) {
    const ImageSize size = thumbnails[i].size;
    for (PageItem* const item : same) {
      item->thumbnail = thumbnails[i];
      item->link = file_link(*input);
      if (item->note.empty() && size.width != 0) item->note = text(size.width, " x ", size.height);
    }
    ++i;
  }
}

std::string file_link(const Input& input) {
  std::error_code error;
  if (input.path.empty() || input.archive || input.pixels) return "";
  const std::string path = std::filesystem::absolute(input.path, error).lexically_normal().string();
  if (error) return "";
  std::string out = "file://";
  for (const char c : path) {
    const auto code = static_cast<unsigned char>(c);
    const bool is_plain = (code < 0x80 && std::isalnum(code) != 0) ||
                          std::string_view("/-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      out += c;
    } else {
      out += {'%', "0123456789ABCDEF"[code >> 4], "0123456789ABCDEF"[code & 15]};
    }
  }
  return out;
}

void write_run_page(const std::filesystem::path& path, HtmlPage page, std::span<const Input> inputs,
                    const CommonOptions& options) {
  page.facts.push_back(model_fact(options));
  if (page.images == PageImages::thumbnails) add_pictures(page, inputs, options);
  std::size_t num_items = 0;
  for (const PageSection& section : page.sections) num_items += section.items.size();
  if (num_items == 0 && page.failures.empty()) page.facts.emplace_back("nothing was found");
  add_failures(page);
  write_page(path, page);
}

}  // namespace vit::app
