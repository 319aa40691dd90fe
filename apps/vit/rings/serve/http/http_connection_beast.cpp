// One connection of the HTTP front on Boost.Beast: from the bytes of a request to those of its answer.
#include "apps/vit/rings/serve/http/http_connection_beast.h"

#include <sys/socket.h>

#include <algorithm>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "apps/vit/ground/header_text.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/http/http_message_beast.h"

namespace vit::app {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
using Clock = std::chrono::steady_clock;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;
using boost::system::error_code;

constexpr std::size_t kLingerBytes = std::size_t{256} << 20;  // read and thrown away after a refusal
constexpr auto kLingerTime = std::chrono::seconds(5);
constexpr auto kStalledTime = std::chrono::seconds(2);  // without a byte of a body
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::generic::stream_protocol::socket socket, std::string peer, HttpShared& shared)
      : shared_(shared),
        stream_(std::move(socket)),
        deadline_(stream_.get_executor()),
        peer_(std::move(peer)),
        place_(shared.connections.insert(shared.connections.end(), this)) {}
  ~Connection() override { shared_.connections.erase(place_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start() { wait_for_request(std::chrono::seconds(shared_.limits.head_seconds)); }
  Loss loss() const override {
    switch (state_) {
      case State::idle: return Loss::nothing;
      case State::closing: return Loss::lingering;
      case State::head: return Loss::begun_head;
      case State::body: return Clock::now() - progressed_ > kStalledTime ? Loss::stalled_body : Loss::request;
      case State::working:
      case State::answering: break;
    }
    return Loss::request;
  }
  std::size_t body_bytes() const override { return record_.taken_bytes; }
  const std::string& client() const override { return record_.client; }
  bool is_served() const override { return state_ == State::working || state_ == State::answering; }
  void drop() override {
    record_.status = kClientGone;
    note_request();
    finish();
    close();
  }
  void refuse_late() override {
    if (state_ != State::working) return;
    gone_->store(true);
    refuse(503, "the server ends; try again");
  }
  void close() override {
    state_ = State::closing;
    error_code ignored;
    deadline_.cancel();
    stream_.socket().close(ignored);
  }

 private:
  enum class State { idle, head, body, working, answering, closing };

  // Every step hands itself to the next; the object lives as long as one of them is waited for.
  void wait_for_request(std::chrono::seconds time) {
    begin_request();
    if (buffer_.size() > 0) return start_head();
    start_timer(Clock::now() + time);
    read_more_of_head();
  }

  /// When it fires, what is read is cancelled, and the step that waited for it finds is_late_.
  void start_timer(Clock::time_point time) {
    is_late_ = false;
    deadline_.expires_at(time);
    deadline_.async_wait([self = shared_from_this(), generation = generation_](const error_code& error) {
      if (error || self->generation_ != generation || self->deadline_.expiry() > Clock::now()) return;
      self->is_late_ = true;
      error_code ignored;
      self->stream_.socket().cancel(ignored);
    });
  }

  void begin_request() {
    state_ = State::idle;
    ++generation_;
    parser_.emplace();
    parser_->header_limit(static_cast<std::uint32_t>(shared_.limits.max_head + 1024));
    parser_->body_limit(shared_.limits.max_body);
    request_ = {};
    record_ = {};
    record_.peer = peer_;
    origin_.clear();
    is_head_ = false;
    is_finished_ = true;  // there is no request yet
    buffer_.max_size(shared_.limits.max_head);
  }

  void start_head() {
    state_ = State::head;
    is_finished_ = false;
    started_ = Clock::now();
    request_.id = new_request_id();
    request_.start = started_;
    searched_ = 0;
    start_timer(started_ + std::chrono::seconds(shared_.limits.head_seconds));
    find_end_of_head();
  }

  void read_more_of_head() {
    const std::size_t room = buffer_.max_size() - buffer_.size();
    stream_.expires_never();
    stream_.async_read_some(buffer_.prepare(std::min<std::size_t>(room, 4096)),
                            [self = shared_from_this()](const error_code& error, std::size_t count) {
                              self->on_part_of_head(error, count);
                            });
  }

  void on_part_of_head(const error_code& error, std::size_t count) {
    if (is_late_ && state_ == State::head) return refuse(408, "the head did not come in time");
    if (error) return state_ == State::head ? drop() : close();
    buffer_.commit(count);
    if (state_ == State::idle) return start_head();
    find_end_of_head();
  }

  void find_end_of_head() {
    constexpr std::string_view kEnd = "\r\n\r\n";
    const auto data = buffer_.data();
    const std::string_view bytes(static_cast<const char*>(data.data()), data.size());
    const std::size_t end = bytes.find(kEnd, searched_);
    if (end != std::string_view::npos) return take_head(end + kEnd.size());
    if (bytes.size() >= shared_.limits.max_head)
      return refuse(431, "the head is longer than the server takes");
    searched_ = bytes.size() < kEnd.size() ? 0 : bytes.size() - kEnd.size() + 1;
    read_more_of_head();
  }

  void take_head(std::size_t count) {
    const auto data = buffer_.data();
    const std::string_view head(static_cast<const char*>(data.data()), count);
    const std::string_view defect = defect_of_head(head);
    if (!defect.empty()) return refuse(400, std::string(defect));
    error_code defect_of_parser;
    record_.bytes_in = count;
    parser_->put(asio::const_buffer(head.data(), head.size()), defect_of_parser);
    const bool is_too_large = defect_of_parser == http::error::body_limit;
    if (defect_of_parser && defect_of_parser != http::error::need_more && !is_too_large)
      return refuse(400, "not HTTP: " + defect_of_parser.message());
    take_fields();
    buffer_.consume(count);
    buffer_.max_size(std::size_t{1} << 20);
    admit(is_too_large);
  }

  void take_fields() {
    const auto& head = parser_->get();
    is_head_ = head.method() == http::verb::head;
    vit::app::take_fields(head, request_);
    request_.peer = peer_;
    origin_ = std::string(head[http::field::origin]);
    if (!shared_.allows(origin_)) origin_.clear();
  }

  /// Before the request is handed over.
  void note_request() {
    if (!record_.id.empty()) return;
    record_.id = request_.id;
    record_.method = is_head_ ? "HEAD" : request_.method;
    record_.path = request_.path;
  }

  /// Whether a browser asks if a page of an origin that is allowed may send a request.
  bool is_preflight() const {
    return !origin_.empty() && request_.method == "OPTIONS" &&
           !parser_->get()[http::field::access_control_request_method].empty();
  }

  void admit(bool is_too_large) {
    if (is_preflight()) return answer_and_close(preflight_answer());
    if (std::optional<HttpResponse> answer = shared_.handler.admit(request_))
      return answer_and_close(std::move(*answer));
    record_.client = request_.client;
    if (is_too_large) return refuse(413, "the body is longer than the server takes");
    const std::string expectation(parser_->get()[http::field::expect]);
    const std::string coding(parser_->get()[http::field::content_encoding]);
    if (!coding.empty() && !equal_ignoring_case(coding, "identity"))
      return refuse(415, "bodies are taken as they are, not in the Content-Encoding " + coding);
    if (expectation.empty()) return read_body();
    if (!equal_ignoring_case(expectation, "100-continue")) return refuse(417, "an unknown expectation");
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](const error_code& error, std::size_t) {
                        error ? self->drop() : self->read_body();
                      });
  }

  Clock::time_point request_deadline() const {
    return started_ + std::chrono::seconds(shared_.limits.request_seconds);
  }

  void read_body() {
    state_ = State::body;
    parser_->eager(true);
    start_timer(request_deadline());
    stream_.expires_never();
    read_more_of_body();
  }

  /// Bytes are counted as they arrive: what is announced and does not come takes nothing from others.
  void read_more_of_body() {
    progressed_ = Clock::now();
    if (parser_->is_done()) return on_body({});
    http::async_read_some(stream_, buffer_, *parser_,
                          [self = shared_from_this()](const error_code& error, std::size_t count) {
                            self->record_.bytes_in += count;
                            if (error) return self->on_body(error);
                            if (!self->take_body())
                              return self->refuse(429, "too many bytes of requests wait; try again");
                            self->read_more_of_body();
                          });
  }

  bool take_body() {
    const std::size_t size = parser_->get().body().size(), more = size - record_.taken_bytes;
    if (more == 0) return true;
    Room room = shared_.handler.take_bytes(request_, more);
    while (room != Room::given && shared_.drop_stalled_body(*this, room == Room::none_for_client))
      room = shared_.handler.take_bytes(request_, more);
    if (room != Room::given) return false;
    record_.taken_bytes = size;
    return true;
  }

  void on_body(const error_code& error) {
    if (error == http::error::body_limit) return refuse(413, "the body is longer than the server takes");
    if (error && is_late_) return refuse(408, "the body did not come in time");
    if (!error && !take_body()) return refuse(429, "too many bytes of requests wait; try again");
    if (error.category() == http::make_error_code(http::error::bad_chunk).category() &&
        error != http::error::partial_message && error != http::error::end_of_stream)
      return refuse(400, "not HTTP: " + error.message());
    if (error) return drop();
    request_.body = std::move(parser_->get().body());
    if (std::optional<HttpResponse> answer = shared_.handler.begin(request_))
      return this->answer(std::move(*answer));
    record_.was_begun = true;
    work();
  }

  void work() {
    state_ = State::working;
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    gone_ = gone;
    deadline_.expires_at(request_deadline());
    deadline_.async_wait([self = shared_from_this(), generation = generation_](const error_code& error) {
      if (error || !self->is_working(generation)) return;
      self->gone_->store(true);
      self->answer(self->shared_.handler.refuse(503, "the answer was not ready in time; try again"));
    });
    watch_client();
    note_request();
    shared_.handler.handle(std::move(request_), responder(), gone);
  }

  Respond responder() {
    return [weak = weak_from_this(), generation = generation_,
            executor = stream_.get_executor()](HttpResponse response) {
      asio::post(executor, [weak, generation, response = std::move(response)]() mutable {
        const std::shared_ptr<Connection> self = weak.lock();
        if (self && self->is_working(generation)) self->answer(std::move(response));
      });
    };
  }

  bool is_working(std::uint64_t generation) const {
    return state_ == State::working && generation_ == generation;
  }

  /// While an answer is made: a client that closes its connection waits for none.
  void watch_client() {
    if (buffer_.size() > 0) return;  // the next request is there already
    stream_.socket().async_wait(
        Stream::socket_type::wait_read,
        [self = shared_from_this(), generation = generation_](const error_code& error) {
          if (error || !self->is_working(generation)) return;
          char byte;
          const ssize_t count =
              ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
          if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return;
          self->gone_->store(true);
          self->drop();
        });
  }

  /// An answer to what is no request, or none that is taken: what follows on this connection is not known.
  void refuse(unsigned status, const std::string& message) {
    answer_and_close(shared_.handler.refuse(status, message));
  }

  void answer_and_close(HttpResponse response) {
    closes_ = true;
    answer(std::move(response));
  }

  void answer(HttpResponse response) {
    state_ = State::answering;
    deadline_.cancel();
    error_code ignored;
    stream_.socket().cancel(ignored);  // the watch of the client
    const bool keeps = !closes_ && parser_->keep_alive() && !shared_.is_stopping;
    const std::string& id = record_.id.empty() ? request_.id : record_.id;
    const unsigned status = response.status;
    response_ = to_message(std::move(response),
                           {.id = id, .origin = origin_, .keeps_connection = keeps, .has_body = !is_head_});
    note_request();
    record_.status = status;
    write(keeps);
  }

  void write(bool keeps) {
    stream_.expires_after(std::chrono::seconds(shared_.limits.request_seconds));
    serializer_.emplace(*response_);
    const auto done = [self = shared_from_this(), keeps](const error_code& error, std::size_t count) {
      self->record_.bytes_out = count;
      self->finish();
      if (error) return self->close();
      if (keeps && !self->shared_.is_stopping)
        return self->wait_for_request(std::chrono::seconds(self->shared_.limits.idle_seconds));
      self->linger();
    };
    is_head_ ? http::async_write_header(stream_, *serializer_, done)
             : http::async_write(stream_, *serializer_, done);
  }

  /// A client that still sends would lose the answer if the connection were closed at once.
  void linger() {
    state_ = State::closing;
    error_code ignored;
    stream_.socket().shutdown(Stream::socket_type::shutdown_send, ignored);
    lingered_ = 0;
    buffer_.clear();
    buffer_.max_size(std::size_t{64} << 10);
    linger_until_ = Clock::now() + kLingerTime;
    drain();
  }
  void drain() {
    stream_.expires_at(linger_until_);
    stream_.async_read_some(buffer_.prepare(std::size_t{32} << 10),
                            [self = shared_from_this()](const error_code& error, std::size_t count) {
                              self->lingered_ += count;
                              if (error || self->lingered_ > kLingerBytes || self->shared_.is_stopping)
                                return self->close();
                              self->drain();
                            });
  }

  void finish() {
    if (std::exchange(is_finished_, true)) return;
    record_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    shared_.handler.finished(record_);
  }

  HttpShared& shared_;
  Stream stream_;
  asio::steady_timer deadline_;
  const std::string peer_;
  const std::list<HttpConnection*>::iterator place_;
  State state_ = State::idle;
  std::uint64_t generation_ = 0;  // of the request
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<GrowingBody>> parser_;
  std::optional<http::response<http::string_body>> response_;
  std::optional<http::response_serializer<http::string_body>> serializer_;
  HttpRequest request_;
  HttpRecord record_;
  std::string origin_;  // of the page that asks, where it may
  std::shared_ptr<std::atomic<bool>> gone_;
  Clock::time_point started_, linger_until_, progressed_;
  std::size_t lingered_ = 0, searched_ = 0;  // bytes; of the head
  bool is_head_ = false, closes_ = false, is_finished_ = true, is_late_ = false;
};

}  // namespace

void start_connection(asio::generic::stream_protocol::socket socket, std::string peer, HttpShared& shared) {
  std::make_shared<Connection>(std::move(socket), std::move(peer), shared)->start();
}

}  // namespace vit::app
