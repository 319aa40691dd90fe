// HTTP as the routes see it, whatever carries it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace vit::app {

struct HttpRequest {
  std::string method;  // GET for HEAD as well
  std::string path;    // without the query
  std::string host;    // of the server, as the client calls it: HOST[:PORT]
  std::string content_type;
  std::string accept;
  bool takes_gzip = false;  // of answers
  std::string authorization;
  std::string api_key;        // of X-Api-Key
  std::string id;             // X-Request-Id, of the client or made here
  std::string peer;           // address of the client, "unix" for a socket in the file system
  std::string client{};       // whose turn it is; set by HttpHandler::admit
  bool is_bulk = false;       // X-Priority: bulk
  std::string json_length{};  // Inference-Header-Content-Length: bytes of JSON before binary tensors
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();  // its first byte
  std::string body;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "application/json";
  std::string body{};
  std::vector<std::pair<std::string, std::string>> headers{};
};

/// Set once the client no longer waits for the answer: it disconnected, or the deadline has passed.
using GoneFlag = std::shared_ptr<const std::atomic<bool>>;
/// Answers a request; may be called in any thread, and counts once.
using Respond = std::function<void(HttpResponse)>;

/// The status of a request whose client went away, in log and metrics.
inline constexpr unsigned kClientGone = 499;

/// What became of a request, for log and metrics.
struct HttpRecord {
  std::string id, method, path, peer, client;
  unsigned status = 0;
  double seconds = 0;  // from the first byte of the head to the last of the answer
  std::size_t bytes_in = 0, bytes_out = 0;
  std::size_t taken_bytes = 0;  // of the body, by HttpHandler::take_bytes
  bool was_begun = false;       // HttpHandler::begin took it
};

/// Whether there is room for more bytes of bodies.
enum class Room { given, none, none_for_client };

/// What answers requests.
struct HttpHandler {
  /// Asked once the head is there: an answer ends the request before its body is read. Called in the thread
  /// of the server.
  std::function<std::optional<HttpResponse>(HttpRequest& request)> admit;
  /// Asked for each part of a body that has arrived, before the next one is read. Where there is no room,
  /// bodies that no longer come make room; else the request ends with status 429. What was taken is given
  /// back by finished(). Called in the thread of the server.
  std::function<Room(const HttpRequest& request, std::size_t bytes)> take_bytes;
  /// Asked once the body is complete: an answer ends the request. Called in the thread of the server.
  std::function<std::optional<HttpResponse>(const HttpRequest& request)> begin;
  /// Answers a request that was begun. Called in the thread of the server, which it must not hold up.
  std::function<void(HttpRequest request, Respond respond, GoneFlag gone)> handle;
  /// An answer to what never became a request that the routes know: damaged, too large, too slow.
  std::function<HttpResponse(unsigned status, const std::string& message)> refuse;
  /// Called at the end of each request, admitted or not.
  std::function<void(const HttpRecord& record)> finished;
};

struct HttpLimits {
  std::size_t max_head = std::size_t{16} << 10;
  std::size_t max_body = std::size_t{32} << 20;
  std::size_t max_connections = 1024;
  unsigned head_seconds = 10;     // from the first byte of a head to its last
  unsigned idle_seconds = 75;     // between two requests of a connection
  unsigned request_seconds = 60;  // from the first byte of a head to the answer
  unsigned stop_seconds = 7;      // after SIGTERM, for requests that are being answered; later ones get 503
};

struct HttpServerOptions {
  std::optional<std::string> host;      // nothing: no TCP
  std::uint16_t port = 0;               // 0: chosen by the system
  std::string unix_path;                // "": none
  std::optional<unsigned> unix_mode{};  // permissions of that socket; nothing: those of the umask
  HttpLimits limits;
  std::vector<std::string> allowed_origins{};  // of pages of other servers; "*": all
};

/// Throws Error (io) where the host of the options has no address, or no socket can be made at its path.
void check_addresses(const HttpServerOptions& options);

/// Listens from the constructor on, answers while run() runs.
class HttpServer {
 public:
  /// Throws Error (io) where an address cannot be had, and (unsupported) where vit was built without Boost.
  HttpServer(const HttpServerOptions& options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// "http://127.0.0.1:3003", "unix:/run/vit.sock".
  std::vector<std::string> addresses() const;
  /// Whether only programs of this machine reach it.
  bool is_local() const;
  /// Until SIGINT, SIGTERM or stop(): then it takes no more requests, and returns once those under way are
  /// answered, after HttpLimits::stop_seconds with 503. A second signal ends it at once.
  void run();
  /// Called in the thread of the server for each SIGHUP; without it the signal is ignored.
  void on_reload(std::function<void()> reload);
  /// In any thread.
  void stop();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace vit::app
