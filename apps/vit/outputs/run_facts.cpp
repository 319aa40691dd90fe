#include "apps/vit/outputs/run_facts.h"

#include <algorithm>

#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"
#include "vit/io/safetensors.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr Where kWhere{"resume", ErrorKind::mismatch};

using GivenOptions = std::map<std::string, std::vector<std::string>>;

void write_options(JsonWriter& json, const GivenOptions& options) {
  json.begin_object();
  for (const auto& [name, values] : options) json.array(name, values);
  json.end_object();
}

GivenOptions parse_options(const Json& json) {
  GivenOptions options;
  const auto all = json.find("options");
  for (std::size_t i = 0; all && i < all->size(); ++i) {
    std::vector<std::string>& values = options[std::string((*all)[i].key())];
    for (std::size_t k = 0; k < (*all)[i].size(); ++k) values.emplace_back((*all)[i][k].as_string());
  }
  return options;
}

std::string described(const RunModel& of) {
  return text(of.model, " (fingerprint ", of.fingerprint, ", ", of.features, ", size ", of.size, ", ",
              of.dtype, of.pad.empty() ? "" : ", padded with ", of.pad, of.channels == "bgr" ? ", bgr" : "",
              ")");
}

}  // namespace

void RunModel::check_same(const RunModel& other, const std::string& where) const {
  check_named(other, where);
  check_settings(other, where);
}

void RunModel::check_named(const RunModel& other, const std::string& where) const {
  VIT_CHECK(fingerprint == other.fingerprint && features == other.features && size == other.size &&
                dtype == other.dtype && pad == other.pad && channels == other.channels,
            kWhere, where, ": made by ", printable(described(*this)), ", but this run has ",
            printable(described(other)));
}

void RunModel::check_settings(const RunModel& other, const std::string& where) const {
  const bool are_comparable = !settings.empty() && !other.settings.empty() && release == other.release;
  VIT_CHECK(!are_comparable || settings == other.settings, kWhere, where, ": made by ",
            printable(described(*this)),
            " with other values of configuration or preprocessing than this run has (settings ", settings,
            " and ", other.settings,
            "); give the same options (--architecture, --set, --resampler, --exif, --mean, ...), or another "
            "place for the results");
}

void RunModel::write_members(JsonWriter& json) const {
  json.member("model", model).member("fingerprint", fingerprint).member("features", features);
  json.member("size", size).member("dtype", dtype);
  if (!pad.empty()) json.member("pad", pad);
  if (channels != "rgb") json.member("channels", channels);
  if (!settings.empty()) json.member("settings", settings);
  if (!release.empty()) json.member("release", release);
  if (bits != 0) json.member("bits", bits);
  if (!options.empty()) write_options(json.key("options"), options);
}

RunModel parse_run_model(const Json& json) {
  const auto member = [&](std::string_view key) { return std::string(json.at(key).as_string()); };
  return {.model = member("model"),
          .fingerprint = member("fingerprint"),
          .features = member("features"),
          .size = member("size"),
          .dtype = member("dtype"),
          .pad = json.find_string("pad").value_or(""),
          .channels = json.find_string("channels").value_or("rgb"),
          .settings = json.find_string("settings").value_or(""),
          .release = json.find_string("release").value_or(""),
          .bits = static_cast<int>(json.find_size("bits", {.max = 1000}).value_or(0)),
          .options = parse_options(json)};
}

void RunFacts::check_same(const RunFacts& other, const std::string& where) const {
  model.check_named(other.model, where);
  for (const auto& [key, value] : other.others) {
    const auto found = std::ranges::find(others, key, &std::pair<std::string, std::string>::first);
    const std::string former = found == others.end() ? "unknown" : found->second;
    VIT_CHECK(former == value, kWhere, where, ": made with ", key, " ", printable(former),
              ", but this run has ", value);
  }
  model.check_settings(other.model, where);
}

std::string RunFacts::json() const {
  std::string out;
  JsonWriter json(out);
  json.begin_object();
  model.write_members(json);
  for (const auto& [key, value] : others) json.member(key, value);
  json.end_object();
  return out + "\n";
}

RunFacts parse_run_facts(const std::string& text, const std::string& place) {
  const Json json = parse_json(text, place);
  RunFacts facts{.model = parse_run_model(json), .others = {}};
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i].is_string()) facts.others.emplace_back(json[i].key(), json[i].as_string());
  }
  return facts;
}

std::filesystem::path run_record_path(const std::filesystem::path& output, bool is_folder) {
  if (is_folder) return output / "run.json";
  return output.parent_path() / ("." + output.filename().string() + ".run.json");
}

std::string read_record(const std::filesystem::path& file) {
  const TensorFile tensors = open_safetensors(file);
  const auto found = tensors.metadata().find(kRecordMember);
  return found == tensors.metadata().end() ? "" : found->second;
}

}  // namespace vit::app
