// Connections of the HTTP front on Boost.Beast, as what accepts and ends them sees them.
#pragma once

#include <utility>  // before Asio of Boost 1.74, which forgets it

#include <algorithm>
#include <boost/asio.hpp>
#include <list>
#include <string>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

namespace asio = boost::asio;

/// All of its functions belong to the thread of the server.
class HttpConnection {
 public:
  /// How much a connection loses that makes room for a new one, least first.
  enum class Loss { nothing, lingering, begun_head, stalled_body, request };

  virtual ~HttpConnection() = default;
  virtual Loss loss() const = 0;
  /// Of a body that has arrived in part, and whose it is.
  virtual std::size_t body_bytes() const = 0;
  virtual const std::string& client() const = 0;
  /// Whether an answer is made or on its way.
  virtual bool is_served() const = 0;
  /// Closes it; a request that it holds is lost.
  virtual void drop() = 0;
  /// Answers 503 where an answer is being made.
  virtual void refuse_late() = 0;
  virtual void close() = 0;
};

/// What all connections share.
struct HttpShared {
  const HttpLimits& limits;
  const HttpHandler& handler;
  const std::vector<std::string>& allowed_origins;
  std::list<HttpConnection*> connections{};  // oldest first
  bool is_stopping = false;

  /// Whether pages of this origin may read answers.
  bool allows(const std::string& origin) const {
    const auto is_it = [&](const std::string& allowed) { return allowed == "*" || allowed == origin; };
    return !origin.empty() && std::ranges::any_of(allowed_origins, is_it);
  }
  /// Ends the oldest connection but `but` that holds bytes of a body which no longer comes; `only_of_its`:
  /// one of the same client.
  bool drop_stalled_body(const HttpConnection& but, bool only_of_its) {
    const auto found = std::ranges::find_if(connections, [&](const HttpConnection* one) {
      return one != &but && one->loss() == HttpConnection::Loss::stalled_body && one->body_bytes() > 0 &&
             (!only_of_its || one->client() == but.client());
    });
    if (found == connections.end()) return false;
    (*found)->drop();
    return true;
  }
};

/// Reads requests until the connection ends.
void start_connection(asio::generic::stream_protocol::socket socket, std::string peer, HttpShared& shared);

}  // namespace vit::app
