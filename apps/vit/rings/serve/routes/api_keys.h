// The keys of clients, and what each may use.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace vit::app {

/// One key, of which only a digest is kept.
struct ApiKey {
  std::string digest;               // SHA-256
  std::vector<std::string> models;  // names; empty: all
  std::vector<std::string> routes;  // beginnings of paths; empty: all
  std::size_t max_requests = 0;     // in work at a time; 0: the server's own limit
  std::size_t per_minute = 0;       // requests of work that begin in a minute; 0: any

  bool allows_model(std::string_view name) const;
  bool allows_route(std::string_view path) const;
};

/// The keys that a server takes. Immutable; a reload makes new ones.
class ApiKeys {
 public:
  /// `key_file`: its first line is a key; empty: none. `list_file`: a line for each key, `KEY [models=A,B]
  /// [routes=/v1/...,/metrics] [requests=N] [per-minute=N]`, # begins a comment; empty: none. `variable`: a
  /// key, or null. Throws Error that names file and line.
  static ApiKeys read(const std::filesystem::path& key_file, const std::filesystem::path& list_file,
                      const char* variable);
  /// The keys of the lines of `text`; `file` is for messages.
  static ApiKeys parse(std::string_view text, const std::string& file);

  bool empty() const noexcept { return keys_.empty(); }
  std::size_t size() const noexcept { return keys_.size(); }
  /// Null for another key; the time does not depend on where it differs.
  std::shared_ptr<const ApiKey> find(std::string_view given) const;

 private:
  void add(std::string_view key, ApiKey rights, const std::string& place);
  std::vector<std::shared_ptr<const ApiKey>> keys_;
};

/// Whether two texts are the same, in a time that does not depend on where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace vit::app
