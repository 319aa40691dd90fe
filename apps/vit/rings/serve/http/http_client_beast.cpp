#include <utility>  // before Asio of Boost 1.74, which forgets it

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "apps/vit/rings/serve/http/http_client.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

/// One exchange, step after step in one thread.
class Exchange {
 public:
  Exchange(const HttpTarget& target, http::request<http::string_body> request, const HttpClientLimits& limits)
      : request_(std::move(request)), stream_(context_) {
    parser_.body_limit(limits.max_body);
    stream_.expires_after(limits.time);
    resolver_.async_resolve(target.host, target.port, [this](const error_code& error, auto found) {
      if (fails("resolve", error)) return;
      stream_.async_connect(found, [this](const error_code& failure, auto) {
        if (!fails("connect", failure)) write();
      });
    });
    context_.run_for(limits.time + std::chrono::seconds(1));
    VIT_CHECK(is_done_ && failure_.empty(), (Where{"upstream", ErrorKind::io}), target.host, ":", target.port,
              ": ", failure_.empty() ? "no answer in time" : failure_);
  }

  HttpResponse take() {
    auto& message = parser_.get();
    return {.status = message.result_int(),
            .content_type = std::string(message[http::field::content_type]),
            .body = std::move(message.body())};
  }

 private:
  void write() {
    http::async_write(stream_, request_, [this](const error_code& error, std::size_t) {
      if (fails("write", error)) return;
      http::async_read(stream_, buffer_, parser_, [this](const error_code& failure, std::size_t) {
        if (!fails("read", failure)) is_done_ = true;
      });
    });
  }
  bool fails(const char* step, const error_code& error) {
    if (error) failure_ = text(step, ": ", error.message());
    return static_cast<bool>(error);
  }

  const http::request<http::string_body> request_;
  asio::io_context context_{1};
  asio::ip::tcp::resolver resolver_{context_};
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
  std::string failure_;
  bool is_done_ = false;
};

}  // namespace

HttpResponse post(const HttpTarget& target, const std::string& path, const std::string& content_type,
                  std::string body, const HttpClientLimits& limits) {
  http::request<http::string_body> request(http::verb::post, target.path + path, 11);
  request.set(http::field::host, target.host + ":" + target.port);
  request.set(http::field::content_type, content_type);
  request.keep_alive(false);
  request.body() = std::move(body);
  request.prepare_payload();
  return Exchange(target, std::move(request), limits).take();
}

}  // namespace vit::app
