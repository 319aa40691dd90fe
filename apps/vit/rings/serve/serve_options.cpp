#include "apps/vit/rings/serve/serve_options.h"

#include <charconv>
#include <utility>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/usage_error.h"

namespace vit::app {
namespace {

constexpr const char* kServerGroup = "Server";
constexpr const char* kLimitGroup = "Limits";
constexpr unsigned kMaxSeconds = 86'400;

constexpr Named<ImmichResize> kImmichResizes[]{{"release", ImmichResize::release},
                                               {"model", ImmichResize::model}};
constexpr Named<LogFormat> kLogFormats[]{
    {"text", LogFormat::text}, {"json", LogFormat::json}, {"none", LogFormat::none}};

/// "*", or SCHEME://HOST[:PORT] as browsers write it.
std::string parse_origin(const std::string& value) {
  const std::size_t host = value.find("://");
  const bool is_origin = host != std::string::npos && host > 0 && value.size() > host + 3 &&
                         value.find_first_of("/?#, ", host + 3) == std::string::npos;
  if (value != "*" && !is_origin)
    fail_usage("expected SCHEME://HOST[:PORT] without a path, or *, found '", value, "'");
  return value;
}

/// 0660, 660.
unsigned parse_mode(const std::string& value) {
  unsigned mode = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), mode, 8);
  if (error != std::errc() || end != value.data() + value.size() || mode > 0777)
    fail_usage("expected permissions in octal, such as 0660, found '", value, "'");
  return mode;
}

/// The shared options, with --model that names several.
void add_model_list(std::vector<Option>& list, ServeOptions& options) {
  std::vector<Option> shared;
  add_common_options(shared, options.common);
  for (Option& option : shared) {
    if (option.name == "--model") {
      option.type_name = "[NAME=]PATH";
      option.help =
          "Checkpoint folder, .safetensors or .pth file, bank of vit anomaly or index of vit index, and the "
          "name that clients use (immich: ARCH__PRETRAINED); repeatable";
      option.occurs = Occurs::repeated;
      option.target = list_target(options.models, [](const std::string& value) { return not_empty(value); });
    }
    if (option.name != "--progress" && option.name != "--quiet") list.push_back(std::move(option));
  }
}

std::vector<Option> address_options(ServeOptions& options) {
  return {{.name = "--host",
           .type_name = "ADDRESS",
           .help = "Where to listen",
           .target = parsed_target(
               options.host, [](const std::string& v) { return not_empty(v); }, "127.0.0.1"),
           .group = kServerGroup},
          {.name = "--port",
           .type_name = "N",
           .help = "0 = chosen by the system, and written to stderr",
           .target = parsed_target(
               options.port,
               [](const std::string& v) { return static_cast<std::uint16_t>(parse_integer(v, 0, 65535)); },
               "3003"),
           .group = kServerGroup},
          {.name = "--unix",
           .type_name = "PATH",
           .help = "A socket in the file system; TCP then only with --host or --port",
           .target = text_target(options.unix_path),
           .group = kServerGroup},
          {.name = "--unix-mode",
           .type_name = "OCTAL",
           .help = "Permissions of that socket, such as 0660; otherwise those of the umask",
           .target = parsed_target(
               options.unix_mode, [](const std::string& v) { return parse_mode(v); }, "of the umask"),
           .group = kServerGroup}};
}

/// Who may ask, and what is answered.
std::vector<Option> answer_options(ServeOptions& options) {
  return {
      {.name = "--api-key-file",
       .type_name = "FILE",
       .help = "Its first line is the key that clients send as Authorization: Bearer KEY",
       .target = text_target(options.api_key_file),
       .group = kServerGroup},
      {.name = "--api-keys",
       .type_name = "FILE",
       .help = "A line for each key: KEY [models=A,B] [routes=/v1/embeddings,...] [requests=N at a time] "
               "[per-minute=N]; read again on SIGHUP",
       .target = text_target(options.api_keys),
       .group = kServerGroup},
      {.name = "--immich-upstream",
       .type_name = "URL",
       .help = "immich's own service, for faces and text recognition: http://HOST:PORT",
       .target = text_target(options.immich_upstream),
       .group = kServerGroup},
      {.name = "--immich-resize",
       .type_name = "RULE",
       .help =
           "How images from immich are resized: release (shorter edge, then center crop) or model (as the "
           "model's files say)",
       .target = choice_target(options.immich_resize, kImmichResizes),
       .group = kServerGroup},
      {.name = "--allow-origin",
       .type_name = "ORIGIN",
       .help = "Pages from there, https://HOST, may ask from a browser (CORS); * = from anywhere; repeatable",
       .target =
           list_target(options.allowed_origins, [](const std::string& value) { return parse_origin(value); }),
       .occurs = Occurs::repeated,
       .group = kServerGroup},
      {.name = "--index",
       .type_name = "FOLDER",
       .help = "Index of one of the models; the page shows the nearest images in it",
       .target = text_target(options.index),
       .group = kServerGroup},
      {.name = "--log",
       .type_name = "FORMAT",
       .help = "One line a request on stderr: text, json or none",
       .target = choice_target(options.log, kLogFormats),
       .group = kServerGroup},
      {.name = "--check",
       .type_name = "",
       .help = "Read the options, load the models, and end",
       .flag = &options.only_check,
       .group = kServerGroup},
      {.name = "--no-sandbox",
       .type_name = "",
       .help = "Decode images in processes that nothing confines, where the system offers no sandbox",
       .flag = &options.unconfined,
       .group = kServerGroup}};
}

std::vector<Option> limit_options(ServeOptions& options) {
  return {
      {.name = "--max-body",
       .type_name = "MIB",
       .help = "Largest body of a request, in MiB",
       .target = integer_target(options.max_body_mebibytes, std::size_t{1}, std::size_t{1024}),
       .group = kLimitGroup},
      {.name = "--max-connections",
       .type_name = "N",
       .help = "Most open connections; idle ones are closed to make room",
       .target = integer_target(options.max_connections, std::size_t{1}, std::size_t{1'000'000}),
       .group = kLimitGroup},
      {.name = "--max-requests",
       .type_name = "N",
       .help = "Requests in work at a time; others are answered 429",
       .target = integer_target(options.max_requests, std::size_t{1}, std::size_t{100'000}),
       .group = kLimitGroup},
      {.name = "--queue",
       .type_name = "N",
       .help = "Images and texts of one client that may wait; its further requests are answered 429",
       .target = integer_target(options.max_waiting, std::size_t{1}, std::size_t{1'000'000}),
       .group = kLimitGroup},
      {.name = "--timeout",
       .type_name = "SECONDS",
       .help = "From the first byte of a request to its answer",
       .target = integer_target(options.request_seconds, 1u, kMaxSeconds),
       .group = kLimitGroup},
      {.name = "--idle-unload",
       .type_name = "SECONDS",
       .help = "Give back the memory of the models after so long without work; 0 = never",
       .target = integer_target(options.idle_unload_seconds, 0u, kMaxSeconds),
       .group = kLimitGroup},
      {.name = "--memory-budget",
       .type_name = "MIB",
       .help = "Weights and working memory of the models in memory; the least recently used one is "
               "unloaded for another, and loaded again when it is asked; 0 = any",
       .target = integer_target(options.memory_budget_mebibytes, std::size_t{0}, std::size_t{1} << 24),
       .group = kLimitGroup},
      {.name = "--keep-images",
       .type_name = "MIB",
       .help = "Memory for what prompts need of images that were asked about, so that a further prompt costs "
               "a small part (SAM 3: 128 MiB an image); the least recently used ones are dropped; 0 = none",
       .target = integer_target(options.kept_mebibytes, std::size_t{0}, std::size_t{1} << 24),
       .group = kLimitGroup}};
}

}  // namespace

std::vector<Option> serve_options(ServeOptions& options) {
  std::vector<Option> list = address_options(options);
  for (auto* const group : {answer_options, limit_options}) {
    for (Option& option : group(options)) list.push_back(std::move(option));
  }
  add_model_list(list, options);
  return list;
}

}  // namespace vit::app
