#include "apps/vit/rings/serve/routes/api_keys.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/ground/sha256.h"
#include "vit/base/check.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

constexpr Where kKeysWhere{"serve", ErrorKind::format};
constexpr std::size_t kMaxKeyFile = 4096, kMaxKeyList = std::size_t{1} << 20;

std::string digest_of(std::string_view text) {
  return sha256(std::as_bytes(std::span(text)));
}

/// Digests have one length, and which of their digits differs says nothing about the texts.
bool equal_digests(std::string_view x, std::string_view y) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(x[i]) ^ static_cast<unsigned char>(y[i]));
  return difference == 0;
}

std::string text_of(const std::filesystem::path& path, std::size_t max_bytes) {
  const internal::SourceFile file(path, "read the key");
  VIT_CHECK(file.size() <= max_bytes, kKeysWhere, path.string(), ": longer than ", max_bytes,
            " bytes, which no keys are");
  return file.text();
}

/// The next word of `line`, which it leaves.
std::string_view take_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
  const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
  line.remove_prefix(word.size());
  return word;
}

std::vector<std::string> split_list(std::string_view list, const std::string& place) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = list.find(',');
    VIT_CHECK(comma != 0 && !list.empty(), kKeysWhere, place, ": an empty name in a list");
    out.emplace_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return out;
    list.remove_prefix(comma + 1);
  }
}

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return equal_digests(digest_of(a), digest_of(b));
}

bool ApiKey::allows_model(std::string_view name) const {
  return models.empty() || std::ranges::find(models, name) != models.end();
}

bool ApiKey::allows_route(std::string_view path) const {
  const auto begins = [&](const std::string& route) { return path.starts_with(route); };
  return routes.empty() || std::ranges::any_of(routes, begins);
}

void ApiKeys::add(std::string_view key, ApiKey rights, const std::string& place) {
  rights.digest = digest_of(key);
  const auto is_same = [&](const auto& other) { return other->digest == rights.digest; };
  VIT_CHECK(std::ranges::none_of(keys_, is_same), kKeysWhere, place, ": this key was given before");
  keys_.push_back(std::make_shared<const ApiKey>(std::move(rights)));
}

namespace {

/// models=A,B, routes=/v1/..., requests=N or per-minute=N.
void add_right(ApiKey& key, std::string_view word, const std::string& place) {
  const std::string_view name = word.substr(0, word.find('=')),
                         value = word.substr(std::min(name.size() + 1, word.size()));
  if (name == "models" || name == "routes") {
    (name == "models" ? key.models : key.routes) = split_list(value, place);
    return;
  }
  VIT_CHECK(name == "requests" || name == "per-minute", kKeysWhere, place,
            ": expected KEY [models=NAME,...] [routes=/PATH,...] [requests=N] [per-minute=N]");
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  VIT_CHECK(error == std::errc() && end == value.data() + value.size() && number > 0, kKeysWhere, place, ": ",
            name, "= must be a number from 1 on");
  (name == "requests" ? key.max_requests : key.per_minute) = number;
}

}  // namespace

ApiKeys ApiKeys::parse(std::string_view text, const std::string& file) {
  ApiKeys out;
  std::size_t number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string place = vit::text(file, ": line ", ++number);
    const std::string_view key = take_word(line);
    if (key.empty() || key.front() == '#') continue;
    ApiKey rights;
    for (std::string_view word = take_word(line); !word.empty() && word.front() != '#';
         word = take_word(line))
      add_right(rights, word, place);
    for (const std::string& route : rights.routes)
      VIT_CHECK(route.starts_with("/"), kKeysWhere, place, ": a route begins with /");
    out.add(key, std::move(rights), place);
  }
  return out;
}

ApiKeys ApiKeys::read(const std::filesystem::path& key_file, const std::filesystem::path& list_file,
                      const char* variable) {
  ApiKeys out;
  if (!list_file.empty()) {
    out = parse(text_of(list_file, kMaxKeyList), list_file.string());
    VIT_CHECK(!out.empty(), kKeysWhere, list_file.string(),
              ": no key; a line is KEY [models=...] [routes=...]");
  }
  if (!key_file.empty()) {
    const std::string text = text_of(key_file, kMaxKeyFile);
    const std::string_view key = header_trimmed(std::string_view(text).substr(0, text.find_first_of("\r\n")));
    VIT_CHECK(!key.empty(), kKeysWhere, key_file.string(),
              ": its first line is empty; the key is expected there");
    out.add(key, {}, key_file.string());
  } else if (list_file.empty() && variable != nullptr) {
    out.add(variable, {}, "VIT_API_KEY");
  }
  return out;
}

std::shared_ptr<const ApiKey> ApiKeys::find(std::string_view given) const {
  const std::string digest = digest_of(given);
  std::shared_ptr<const ApiKey> found;
  for (const std::shared_ptr<const ApiKey>& key : keys_) {
    if (equal_digests(key->digest, digest)) found = key;
  }
  return found;
}

}  // namespace vit::app
