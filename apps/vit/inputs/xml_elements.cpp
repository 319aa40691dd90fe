#include "apps/vit/inputs/xml_elements.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kXml{"labels", ErrorKind::format};
constexpr std::size_t kMostDepth = 100, kMostAttributes = 100;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_of_name(char c) {
  return !is_space(c) && std::string_view("<>/='\"&").find(c) == std::string_view::npos &&
         static_cast<unsigned char>(c) > 0x20;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xc0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xe0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3f));
  } else {
    byte(0xf0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3f));
    byte(0x80 | (code >> 6 & 0x3f));
  }
  byte(0x80 | (code & 0x3f));
}

class XmlReader {
 public:
  XmlReader(std::string_view text, const std::string& file, const XmlEvents& events)
      : text_(text), file_(file), events_(events) {}

  void run() {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    while (true) {
      const std::size_t next = text_.find('<', at_);
      check(next != text_.npos || open_.empty(), "is cut off in <", open_.empty() ? "" : open_.back(), ">");
      if (next == text_.npos) break;
      at_ = next;
      if (skipped("<!--", "-->") || skipped("<![CDATA[", "]]>")) continue;
      if (text_.substr(at_).starts_with("<?")) {
        check_declaration();
        continue;
      }
      check(!text_.substr(at_).starts_with("<!"), "has a document type; annotations have none");
      text_.substr(at_).starts_with("</") ? read_end() : read_begin();
    }
    check(has_root_, "is no XML: there is no element");
  }

 private:
  template <typename... Parts>
  void check(bool condition, const Parts&... parts) const {
    if (condition) return;
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    fail(kXml, file_, ", line ", line, ": ", parts...);
  }

  bool skipped(std::string_view begin, std::string_view end) {
    if (!text_.substr(at_).starts_with(begin)) return false;
    const std::size_t last = text_.find(end, at_ + begin.size());
    check(last != text_.npos, "is cut off: ", begin, " without ", end);
    at_ = last + end.size();
    return true;
  }

  void check_declaration() {
    const std::size_t last = text_.find("?>", at_);
    check(last != text_.npos, "is cut off: <? without ?>");
    const std::string_view inside = text_.substr(at_, last - at_);
    const std::size_t encoding = inside.find("encoding=");
    if (inside.starts_with("<?xml") && encoding != inside.npos) {
      const std::string name = internal::lower_ascii(inside.substr(encoding + 9));
      check(name.find("utf-8") == 1 || name.find("us-ascii") == 1, "is encoded as ", in_quotes(name),
            "; UTF-8 is read");
    }
    at_ = last + 2;
  }

  void skip_space() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  }

  std::string_view read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_of_name(text_[at_])) ++at_;
    check(at_ > begin, "an element or attribute without a name");
    return text_.substr(begin, at_ - begin);
  }

  void expect(char c) {
    check(at_ < text_.size() && text_[at_] == c, "expected ", c,
          at_ < text_.size() ? ", found " + in_quotes(text_.substr(at_, 1)) : ", and the file ends");
    ++at_;
  }

  void read_end() {
    at_ += 2;
    const std::string_view name = read_name();
    skip_space();
    expect('>');
    check(!open_.empty() && open_.back() == name, "</", name, "> without its <", name, ">");
    open_.pop_back();
    events_.end(name);
  }

  void read_begin() {
    XmlElement element;
    element.line = line_of_next();
    ++at_;
    element.name = read_name();
    check(!open_.empty() || !has_root_, "a second root, <", element.name, ">");
    has_root_ = true;
    bool is_closed = false;
    while (true) {
      const std::size_t before = at_;
      skip_space();
      check(at_ < text_.size(), "is cut off in <", element.name, ">");
      if (text_[at_] == '/') {
        ++at_;
        is_closed = true;
      }
      if (is_closed || text_[at_] == '>') {
        expect('>');
        break;
      }
      check(at_ > before, "no space before an attribute of <", element.name, ">");
      add_attribute(element);
    }
    check(open_.size() < kMostDepth, "elements are nested more than ", kMostDepth, " deep");
    events_.begin(element);
    if (is_closed) {
      events_.end(element.name);
    } else {
      open_.push_back(element.name);
    }
  }

  void add_attribute(XmlElement& element) {
    const std::string_view name = read_name();
    skip_space();
    expect('=');
    skip_space();
    check(at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''), "the value of ", name,
          " is not in quotes");
    const char quote = text_[at_++];
    const std::size_t last = text_.find(quote, at_);
    check(last != text_.npos, "is cut off in the value of ", name);
    check(element.find(name) == nullptr, name, " occurs twice in <", element.name, ">");
    check(element.attributes.size() < kMostAttributes, "<", element.name, "> has more than ", kMostAttributes,
          " attributes");
    element.attributes.emplace_back(name, unescaped(text_.substr(at_, last - at_)));
    at_ = last + 1;
  }

  std::string unescaped(std::string_view value) const {
    std::string out;
    while (true) {
      const std::size_t next = value.find('&');
      out += value.substr(0, next);
      if (next == value.npos) return out;
      value.remove_prefix(next + 1);
      const std::size_t last = value.find(';');
      check(last != value.npos, "& without ; in an attribute");
      append_entity(out, value.substr(0, last));
      value.remove_prefix(last + 1);
    }
  }

  void append_entity(std::string& out, std::string_view name) const {
    constexpr std::pair<std::string_view, char> kKnown[]{
        {"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}};
    for (const auto& [known, c] : kKnown) {
      if (name == known) {
        out += c;
        return;
      }
    }
    const bool is_hex = name.starts_with("#x");
    const std::string_view digits = name.starts_with('#') ? name.substr(is_hex ? 2 : 1) : std::string_view();
    std::uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
    check(is_number && code > 0 && code < 0x110000 && (code < 0xd800 || code > 0xdfff),
          "no such entity: ", in_quotes(name));
    append_utf8(out, code);
  }

  /// Lines are counted once, not anew for each element.
  std::size_t line_of_next() {
    const auto from = text_.begin() + static_cast<std::ptrdiff_t>(counted_);
    line_ +=
        static_cast<std::size_t>(std::count(from, text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n'));
    counted_ = at_;
    return line_;
  }

  std::string_view text_;
  const std::string& file_;
  const XmlEvents& events_;
  std::size_t at_ = 0, counted_ = 0, line_ = 1;
  bool has_root_ = false;
  std::vector<std::string_view> open_;
};

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  const auto found =
      std::ranges::find(attributes, attribute, &std::pair<std::string_view, std::string>::first);
  return found == attributes.end() ? nullptr : &found->second;
}

void read_xml(std::string_view text, const std::string& file, const XmlEvents& events) {
  XmlReader(text, file, events).run();
}

}  // namespace vit::app
