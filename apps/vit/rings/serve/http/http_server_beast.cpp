// The HTTP front on Boost.Beast: one thread moves bytes, everything else happens elsewhere.
#include "apps/vit/rings/serve/http/http_connection_beast.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "vit/base/check.h"

namespace vit::app {
namespace {

using boost::system::error_code;

constexpr Where kWhere{"serve", ErrorKind::io};
constexpr std::size_t kSpareDescriptors = 64;  // of models, processes and the system

/// Descriptors that the process may have, raised to what the system allows; connections fit into them.
std::size_t fitting_connections(std::size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur =
      std::min<rlim_t>(limit.rlim_max, std::max<rlim_t>(limit.rlim_cur, wanted + kSpareDescriptors));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const std::size_t descriptors = limit.rlim_cur;
  return std::min(wanted,
                  descriptors > 2 * kSpareDescriptors ? descriptors - kSpareDescriptors : kSpareDescriptors);
}

std::string address_text(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return text("http://", endpoint.address().is_v6() ? "[" + host + "]" : host, ":", endpoint.port());
}

/// Where TCP is to listen.
asio::ip::tcp::endpoint endpoint_of(asio::io_context& context, const HttpServerOptions& options) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(*options.host, error);
  if (!error) return {address, options.port};
  asio::ip::tcp::resolver resolver(context);
  const auto found = resolver.resolve(*options.host, "", asio::ip::resolver_base::passive, error);
  VIT_CHECK(!error && !found.empty(), kWhere, "--host ", *options.host, ": ", error.message());
  return {found.begin()->endpoint().address(), options.port};
}

/// Where a socket in the file system is to be. Throws Error if it cannot be.
asio::local::stream_protocol::endpoint unix_endpoint(const std::string& path) {
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  VIT_CHECK(path.size() <= kMaxPath, kWhere, path, ": a path of ", path.size(),
            " bytes; the system takes sockets of up to ", kMaxPath);
  const std::filesystem::path folder = std::filesystem::absolute(path).parent_path();
  std::error_code ignored;
  VIT_CHECK(std::filesystem::is_directory(folder, ignored), kWhere, path, ": there is no folder ",
            folder.string());
  struct stat status {};
  VIT_CHECK(::lstat(path.c_str(), &status) != 0 || S_ISSOCK(status.st_mode), kWhere, path,
            " is there and no socket");
  return {path};
}

/// Removes the socket of a server that is gone; one that answers is an Error.
void remove_stale(asio::io_context& context, const asio::local::stream_protocol::endpoint& endpoint) {
  struct stat status {};
  if (::lstat(endpoint.path().c_str(), &status) != 0) return;
  asio::local::stream_protocol::socket probe(context);
  error_code error;
  probe.connect(endpoint, error);
  VIT_CHECK(error, kWhere, endpoint.path(), ": another server answers there");
  ::unlink(endpoint.path().c_str());
}

/// Takes connections of one protocol.
template <typename Protocol>
class Listener {
 public:
  Listener(asio::io_context& context, const typename Protocol::endpoint& endpoint, const std::string& name,
           HttpShared& shared, std::size_t max_connections)
      : acceptor_(context), retry_(context), shared_(shared), max_connections_(max_connections) {
    try {
      acceptor_.open(endpoint.protocol());
      if constexpr (std::is_same_v<Protocol, asio::ip::tcp>)
        acceptor_.set_option(asio::socket_base::reuse_address(true));
      acceptor_.bind(endpoint);
      acceptor_.listen(asio::socket_base::max_listen_connections);
    } catch (const boost::system::system_error& error) {
      fail(kWhere, name, ": ", error.code().message());
    }
  }

  typename Protocol::endpoint local() const { return acceptor_.local_endpoint(); }
  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
  }

  void accept() {
    acceptor_.async_accept([this](const error_code& error, typename Protocol::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
      if (error) return accept_later();
      take(std::move(socket));
      accept();
    });
  }

 private:
  /// The system is short of something, descriptors most often.
  void accept_later() {
    retry_.expires_after(std::chrono::milliseconds(50));
    retry_.async_wait([this](const error_code& error) {
      if (!error && acceptor_.is_open()) accept();
    });
  }

  void take(typename Protocol::socket socket) {
    if (shared_.connections.size() >= max_connections_ && !make_room()) return;  // which closes it
    std::string peer = "unix";
    if constexpr (std::is_same_v<Protocol, asio::ip::tcp>) {
      error_code ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      peer = socket.remote_endpoint(ignored).address().to_string();
    }
    start_connection(asio::generic::stream_protocol::socket(std::move(socket)), std::move(peer), shared_);
  }

  /// Ends the oldest of the connections that lose least by it.
  bool make_room() {
    const auto least = std::ranges::min_element(shared_.connections, {}, &HttpConnection::loss);
    switch ((*least)->loss()) {
      case HttpConnection::Loss::nothing:
      case HttpConnection::Loss::lingering: (*least)->close(); return true;
      case HttpConnection::Loss::begun_head:
      case HttpConnection::Loss::stalled_body: (*least)->drop(); return true;
      case HttpConnection::Loss::request: break;
    }
    return false;
  }

  typename Protocol::acceptor acceptor_;
  asio::steady_timer retry_;
  HttpShared& shared_;
  const std::size_t max_connections_;
};

}  // namespace

void check_addresses(const HttpServerOptions& options) {
  asio::io_context context;
  if (options.host) static_cast<void>(endpoint_of(context, options));
  if (!options.unix_path.empty()) static_cast<void>(unix_endpoint(options.unix_path));
}

struct HttpServer::Parts {
  Parts(const HttpServerOptions& given, HttpHandler given_handler)
      : options(given), handler(std::move(given_handler)) {
    const std::size_t most = fitting_connections(options.limits.max_connections);
    if (options.host)
      tcp.emplace(context, endpoint_of(context, options), text(*options.host, ":", options.port), shared,
                  most);
    if (!options.unix_path.empty()) {
      const asio::local::stream_protocol::endpoint endpoint = unix_endpoint(options.unix_path);
      remove_stale(context, endpoint);
      unix_socket.emplace(context, endpoint, options.unix_path, shared, most);
      VIT_CHECK(!options.unix_mode || ::chmod(options.unix_path.c_str(), *options.unix_mode) == 0, kWhere,
                options.unix_path, ": its permissions cannot be set");
    }
    await_reload();
    signals.async_wait([this](const error_code& error, int) {
      if (!error) stop();
    });
  }

  void await_reload() {
    reload_signals.async_wait([this](const error_code& error, int) {
      if (error) return;
      if (reload) reload();
      await_reload();
    });
  }

  void stop() {
    if (std::exchange(shared.is_stopping, true)) return;
    if (tcp) tcp->close();
    if (unix_socket) {
      unix_socket->close();
      ::unlink(options.unix_path.c_str());
    }
    const std::vector<HttpConnection*> all(shared.connections.begin(), shared.connections.end());
    for (HttpConnection* connection : all) {
      if (!connection->is_served()) connection->drop();
    }
    signals.async_wait([this](const error_code& error, int) {
      if (!error) context.stop();
    });
    end_at = std::chrono::steady_clock::now() + std::chrono::seconds(options.limits.stop_seconds);
    await_end();
  }

  /// Until the last request is answered.
  void await_end() {
    const auto now = std::chrono::steady_clock::now();
    if (shared.connections.empty() || now > end_at + std::chrono::seconds(1)) {
      signals.cancel();
      reload_signals.cancel();
      if (!shared.connections.empty()) context.stop();
      return;
    }
    if (now > end_at) {
      const std::vector<HttpConnection*> late(shared.connections.begin(), shared.connections.end());
      for (HttpConnection* connection : late) connection->refuse_late();
    }
    ending.expires_after(std::chrono::milliseconds(5));
    ending.async_wait([this](const error_code&) { await_end(); });
  }

  const HttpServerOptions options;
  const HttpHandler handler;
  HttpShared shared{options.limits, handler, options.allowed_origins};
  asio::io_context context{1};
  asio::signal_set signals{context, SIGINT, SIGTERM}, reload_signals{context, SIGHUP};
  std::function<void()> reload;
  std::chrono::steady_clock::time_point end_at;
  asio::steady_timer ending{context};
  std::optional<Listener<asio::ip::tcp>> tcp;
  std::optional<Listener<asio::local::stream_protocol>> unix_socket;
};

HttpServer::HttpServer(const HttpServerOptions& options, HttpHandler handler)
    : parts_(std::make_unique<Parts>(options, std::move(handler))) {}
HttpServer::~HttpServer() = default;

std::vector<std::string> HttpServer::addresses() const {
  std::vector<std::string> out;
  if (parts_->tcp) out.push_back(address_text(parts_->tcp->local()));
  if (parts_->unix_socket) out.push_back("unix:" + parts_->options.unix_path);
  return out;
}

bool HttpServer::is_local() const {
  return !parts_->tcp || parts_->tcp->local().address().is_loopback();
}

void HttpServer::run() {
  if (parts_->tcp) parts_->tcp->accept();
  if (parts_->unix_socket) parts_->unix_socket->accept();
  parts_->context.run();
}

void HttpServer::on_reload(std::function<void()> reload) {
  parts_->reload = std::move(reload);
}

void HttpServer::stop() {
  asio::post(parts_->context, [this] { parts_->stop(); });
}

}  // namespace vit::app
