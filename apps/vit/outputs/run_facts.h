// The record of how a result was made: the model, the options that it was loaded and its images preprocessed
// with, the features. The one form of it is kept by heads of `vit fit`, vectors of texts, indexes, banks of
// anomalies and runs that can be resumed; options/record.h makes it and takes from it what a command line
// does not say.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vit/io/json.h"
#include "vit/io/json_writer.h"

namespace vit::app {

/// The model, features, size and precision of results.
struct RunModel {
  std::string model;  // path
  std::string fingerprint;
  std::string features;  // with commas
  std::string size;      // --size
  std::string dtype;
  std::string pad = "";          // r,g,b of --pad; "" = none
  std::string channels = "rgb";  // --channels
  /// Of all values of configuration and preprocessing, which other options change too; "" = not noted (0.2).
  /// Comparable within a release: the next one may have more values.
  std::string settings = "";
  std::string release = "";  // that made the results; "" = not noted (before 0.4)
  int bits = 0;              // contract of reproducible results (vit/machine.h); 0 = none, or not noted
  /// How the model was loaded: CommonOptions::given of the run.
  std::map<std::string, std::vector<std::string>> options{};

  /// Throws Error that names both if results of `other` are not comparable. `where` names the files.
  void check_same(const RunModel& other, const std::string& where) const;
  /// The parts of check_same(): what has a name, and the digest of all other values.
  void check_named(const RunModel& other, const std::string& where) const;
  void check_settings(const RunModel& other, const std::string& where) const;
  /// The members of a JSON object, without its braces.
  void write_members(internal::JsonWriter& json) const;
};
RunModel parse_run_model(const internal::Json& json);

/// A RunModel and further facts.
struct RunFacts {
  RunModel model;
  std::vector<std::pair<std::string, std::string>> others;  // JSON members of the object and their values

  /// As RunModel::check_same().
  void check_same(const RunFacts& other, const std::string& where) const;
  /// One line.
  std::string json() const;
};
/// Throws Error naming `place` if the text is not what RunFacts::json() wrote.
RunFacts parse_run_facts(const std::string& text, const std::string& place);

/// Where a run that can be resumed keeps its record: run.json in a folder of results, .NAME.run.json next to
/// a file.
std::filesystem::path run_record_path(const std::filesystem::path& output, bool is_folder);
/// The record among the metadata of a .safetensors file; "" = none. Throws Error if it is no such file.
std::string read_record(const std::filesystem::path& file);
/// The name of that member of the metadata.
inline constexpr const char* kRecordMember = "vit_record";

}  // namespace vit::app
