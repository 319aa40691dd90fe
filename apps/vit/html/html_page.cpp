#include "apps/vit/html/html_page.h"

#include <openssl/evp.h>

#include <array>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/sha256.h"
#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {
namespace {

std::size_t encoded_size(std::string_view bytes) {
  return 4 * ((bytes.size() + 2) / 3);
}

std::string base64(std::string_view bytes) {
  std::string out(encoded_size(bytes) + 1, '\0');  // OpenSSL adds a terminating zero
  const int length =
      ::EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                        reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(length));
  return out;
}

/// The Content-Security-Policy source of the only script or style that may run.
std::string hash_source(std::string_view content) {
  const std::string digits = sha256(std::as_bytes(std::span(content)));
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return "sha256-" + base64(bytes);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

/// A score rounded to the displayed digits, for a smaller page.
double rounded(float score) {
  return std::round(1e6 * double{score}) / 1e6;
}

/// JSON that may be placed between tags: no text in it can close them.
std::string script_data(const JsonValue& json) {
  const std::string plain = json.dump();
  std::string out;
  for (const char c : plain) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

/// The concatenated thumbnails of a page, as many as fit.
class ThumbnailText {
 public:
  /// The thumbnails must outlive the object.
  explicit ThumbnailText(std::size_t room) : room_(room) {}

  void add(const Thumbnail& thumbnail, JsonValue& item) {
    if (thumbnail.webp.empty()) {
      item["missing"] = printable(thumbnail.failure);
      return;
    }
    const auto known = places_.find(thumbnail.webp);
    if (known != places_.end()) {
      item["thumbnail"] = {known->second, encoded_size(thumbnail.webp)};
      return;
    }
    if (text_.size() + encoded_size(thumbnail.webp) > room_) {
      ++num_left_out_;
      item["missing"] = "left out";
      return;
    }
    item["thumbnail"] = {text_.size(), encoded_size(thumbnail.webp)};
    places_.emplace(thumbnail.webp, text_.size());
    text_ += base64(thumbnail.webp);
  }
  const std::string& text() const noexcept { return text_; }
  std::size_t num_left_out() const noexcept { return num_left_out_; }

 private:
  std::size_t room_;
  std::size_t num_left_out_ = 0;
  std::string text_;
  std::map<std::string_view, std::size_t>
      places_;  // of thumbnails in the text, which several items may share
};

JsonValue item_json(const PageItem& item, ThumbnailText& thumbnails) {
  JsonValue out{{"name", printable(item.name)}};
  if (!item.link.empty()) out["link"] = item.link;
  if (!item.note.empty()) out["note"] = printable(item.note);
  if (item.score) out["score"] = rounded(*item.score);
  thumbnails.add(item.thumbnail, out);
  if (item.labels.empty()) return out;
  out["labels"] = JsonValue::array();
  for (const PageLabel& label : item.labels)
    out["labels"].push_back(JsonValue::array({printable(label.name), rounded(label.score)}));
  return out;
}

JsonValue page_json(const HtmlPage& page, std::size_t max_bytes, ThumbnailText& thumbnails) {
  JsonValue sections = JsonValue::array();
  for (const PageSection& section : page.sections) {
    JsonValue out;
    if (!section.title.empty()) out["title"] = printable(section.title);
    if (!section.note.empty()) out["note"] = printable(section.note);
    for (const PageItem& item : section.leads) out["leads"].push_back(item_json(item, thumbnails));
    out["items"] = JsonValue::array();
    for (const PageItem& item : section.items) out["items"].push_back(item_json(item, thumbnails));
    sections.push_back(std::move(out));
  }
  JsonValue facts = JsonValue::array();
  for (const std::string& fact : page.facts) facts.push_back(printable(fact));
  JsonValue out{{"facts", facts},
                {"scores", page.scores == PageScores::probability ? "probability" : "number"},
                {"large", page.images == PageImages::large},
                {"sorted", page.is_sorted},
                {"sections", std::move(sections)}};
  if (const std::size_t count = thumbnails.num_left_out(); count != 0)
    out["left_out"] =
        text(with_thousands(count), count == 1 ? " thumbnail is" : " thumbnails are",
             " left out: the page would be larger than ", with_unit(static_cast<double>(max_bytes)), "B");
  return out;
}

/// The frame with its @NAME@ replaced; inserted text is not searched.
std::string fill(std::string_view frame,
                 std::span<const std::pair<std::string_view, std::string_view>> parts) {
  std::string out;
  while (!frame.empty()) {
    const std::size_t begin = frame.find('@');
    const std::size_t end = begin == frame.npos ? frame.npos : frame.find('@', begin + 1);
    if (end == frame.npos) break;
    const std::string_view name = frame.substr(begin + 1, end - begin - 1);
    out += frame.substr(0, begin);
    for (const auto& [key, value] : parts) {
      if (key == name) out += value;
    }
    frame.remove_prefix(end + 1);
  }
  return out += frame;
}

void write_content(const std::filesystem::path& path, const std::string& content) {
  internal::AtomicFile file(path, "write");
  file.write(std::as_bytes(std::span(content)));
  file.commit();
}

}  // namespace

std::string render(const HtmlPage& page, std::size_t max_bytes) {
  ThumbnailText none(0);  // size of the page without thumbnails, with room for their positions and a notice
  std::size_t num_items = 0;
  for (const PageSection& section : page.sections) num_items += section.items.size() + section.leads.size();
  const std::size_t rest = script_data(page_json(page, max_bytes, none)).size() + 40 * num_items +
                           kPageFrame.size() + kPageStyle.size() + kPageScript.size() + 1000;
  ThumbnailText thumbnails(max_bytes - std::min(max_bytes, rest));
  const std::string data = script_data(page_json(page, max_bytes, thumbnails));
  const std::string title = escaped(page.title);
  const std::string style_hash = hash_source(kPageStyle), script_hash = hash_source(kPageScript);
  const std::array<std::pair<std::string_view, std::string_view>, 7> parts{
      {{"TITLE", title},
       {"STYLE_HASH", style_hash},
       {"SCRIPT_HASH", script_hash},
       {"STYLE", kPageStyle},
       {"SCRIPT", kPageScript},
       {"DATA", data},
       {"THUMBNAILS", thumbnails.text()}}};
  return fill(kPageFrame, parts);
}

void write_page(const std::filesystem::path& path, const HtmlPage& page) {
  write_content(path, render(page));
}

void write_page(const std::filesystem::path& path, const PageTexts& texts, std::string_view title,
                const JsonValue& values) {
  const std::string data = script_data(values), name = escaped(title);
  const std::string style_hash = hash_source(texts.style), script_hash = hash_source(texts.script);
  const std::array<std::pair<std::string_view, std::string_view>, 6> parts{{{"TITLE", name},
                                                                            {"STYLE_HASH", style_hash},
                                                                            {"SCRIPT_HASH", script_hash},
                                                                            {"STYLE", texts.style},
                                                                            {"SCRIPT", texts.script},
                                                                            {"DATA", data}}};
  write_content(path, fill(texts.frame, parts));
}

std::string page_base64(std::string_view bytes) {
  return base64(bytes);
}

}  // namespace vit::app
