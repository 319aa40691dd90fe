// The options of vit serve.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/options/options.h"
#include "apps/vit/rings/serve/routes/request_log.h"

namespace vit::app {

inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

/// How /predict resizes.
enum class ImmichResize { release, model };

struct ServeOptions {
  CommonOptions common;
  std::vector<std::string> models;
  std::optional<std::string> host;
  std::optional<std::uint16_t> port;
  std::filesystem::path unix_path;
  std::optional<unsigned> unix_mode;
  std::filesystem::path api_key_file, api_keys;
  std::string immich_upstream;
  ImmichResize immich_resize = ImmichResize::release;
  std::vector<std::string> allowed_origins;
  std::filesystem::path index;
  LogFormat log = LogFormat::text;
  bool only_check = false;
  bool unconfined = false;
  std::size_t max_body_mebibytes = 32;
  std::size_t max_connections = 1024;
  std::size_t max_requests = 256;
  std::size_t max_waiting = 1024;
  unsigned request_seconds = 60;
  unsigned idle_unload_seconds = 0;
  std::size_t memory_budget_mebibytes = 0;
  std::size_t kept_mebibytes = 512;

  std::size_t max_body() const { return max_body_mebibytes * kMebibyte; }
};

/// The options of the server, of its limits, and those that it shares with other commands.
std::vector<Option> serve_options(ServeOptions& options);

}  // namespace vit::app
