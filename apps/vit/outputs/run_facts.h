// Everything that the results of a run depend on: stored with results that later runs continue or search, and
// compared with those runs.
#pragma once

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
  std::string settings = "";

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

}  // namespace vit::app
