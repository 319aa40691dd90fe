// Requests and answers of the routes as messages of Boost.Beast.
#pragma once

#include <utility>  // before Asio of Boost 1.74, which forgets it

#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

/// A body in memory that grows with the bytes that arrive, whatever length is announced.
struct GrowingBody {
  using value_type = std::string;
  static std::uint64_t size(const value_type& body) { return body.size(); }

  class reader {
   public:
    template <bool isRequest, typename Fields>
    reader(boost::beast::http::header<isRequest, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) { error = {}; }
    template <typename Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      const std::size_t before = body_.size();
      for (const auto part : boost::beast::buffers_range_ref(buffers))
        body_.append(static_cast<const char*>(part.data()), part.size());
      return body_.size() - before;
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

/// A number that only one request has.
std::string new_request_id();

/// Takes what the routes know of a head; the id of the client if it can be written to a log as it is.
void take_fields(const boost::beast::http::request<GrowingBody>& head, HttpRequest& request);

/// What a page of an origin that is allowed may send.
HttpResponse preflight_answer();

/// How an answer is sent.
struct AnswerForm {
  std::string id;      // of the request
  std::string origin;  // of the page that may read it; "" = none
  bool keeps_connection = true;
  bool has_body = true;  // false: an answer to HEAD
};
boost::beast::http::response<boost::beast::http::string_body> to_message(HttpResponse response,
                                                                         const AnswerForm& form);

}  // namespace vit::app
