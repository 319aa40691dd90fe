// Without Boost: the command says what it needs.
#include "apps/vit/rings/serve/http/http.h"
#include "vit/base/check.h"

namespace vit::app {

namespace {

[[noreturn]] void fail_without_boost() {
  fail(Where{"serve", ErrorKind::unsupported},
       "vit was built without it: it needs Boost.Beast when it is built (Debian: libboost-dev)");
}

}  // namespace

struct HttpServer::Parts {};

void check_addresses(const HttpServerOptions& /*options*/) {
  fail_without_boost();
}

HttpServer::HttpServer(const HttpServerOptions& /*options*/, HttpHandler /*handler*/) {
  fail_without_boost();
}
HttpServer::~HttpServer() = default;
std::vector<std::string> HttpServer::addresses() const {
  return {};
}
bool HttpServer::is_local() const {
  return true;
}
void HttpServer::run() {}
void HttpServer::stop() {}

}  // namespace vit::app
