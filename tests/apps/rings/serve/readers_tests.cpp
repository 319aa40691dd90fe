// The readers of what clients send, without a server: base64, forms, heads of requests, inputs, names, and
// the texts that the server writes about itself.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/serve/http/http_client.h"
#include "apps/vit/rings/serve/http/http_head.h"
#include "apps/vit/rings/serve/http/multipart.h"
#include "apps/vit/rings/serve/routes/api_error.h"
#include "apps/vit/rings/serve/routes/json_body.h"
#include "apps/vit/rings/serve/routes/request_log.h"
#include "apps/vit/rings/serve/routes/service.h"
#include "apps/vit/rings/serve/work/decode_worker.h"
#include "apps/vit/rings/serve/work/metrics.h"
#include "apps/vit/rings/serve/work/served_model.h"
#include "tests/apps/program.h"
#include "tests/support/files.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::app;
using namespace vit::test;

namespace {

/// The ApiError of `work`, as "STATUS PARAM"; "" where there is none.
std::string refusal_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const ApiError& error) {
    return std::to_string(error.status()) + " " + error.param();
  }
  return "";
}

std::vector<WorkItem> inputs_of(const std::string& json, StringMeaning strings = StringMeaning::text) {
  return read_openai_inputs(read_json_body(json, 1 << 20), strings, 2048);
}

std::string head(const std::string& lines) {
  return "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}

}  // namespace

TEST_CASE("serve: base64 of the RFC's examples, with and without padding") {
  const std::vector<std::pair<std::string, std::string>> pairs{{"", ""},
                                                               {"f", "Zg=="},
                                                               {"fo", "Zm8="},
                                                               {"foo", "Zm9v"},
                                                               {"foob", "Zm9vYg=="},
                                                               {"fooba", "Zm9vYmE="},
                                                               {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, encoded] : pairs) {
    CHECK(encode_base64(bytes) == encoded);
    CHECK(decode_base64(encoded) == bytes);
    CHECK(decode_base64(encoded.substr(0, encoded.find('='))) == bytes);
  }
  CHECK(decode_base64("-_8=") == decode_base64("+/8="));
  CHECK(decode_base64("Zm9v\r\nYmFy\n") == "foobar");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  for (std::size_t n = 0; n < all.size(); ++n)
    CHECK(decode_base64(encode_base64(all.substr(n))) == all.substr(n));
}

TEST_CASE("serve: base64 that is none is refused") {
  for (const char* const text : {"Z", "Zm9vY", "Zg=", "Zg===", "Zm8==", "Zm9v=", "=", "Zg==Zg==", "Zm9v!",
                                 "Zm9v\xC3\xA4", "Zm\x00v"}) {
    CAPTURE(text);
    if (*text != 'Z' || std::string(text) != "Zm") CHECK(!decode_base64(text));
  }
  CHECK(!decode_base64(std::string_view("Zm\0v", 4)));
}

TEST_CASE("serve: data URIs and URLs") {
  const auto uri = split_data_uri("data:image/png;charset=x;base64,QUJD");
  REQUIRE(uri);
  CHECK(uri->is_base64);
  CHECK(uri->media_type == "image/png;charset=x");
  CHECK(uri->data == "QUJD");
  CHECK(split_data_uri("DATA:;BASE64,QQ==")->is_base64);
  CHECK(!split_data_uri("data:,a%20b")->is_base64);
  CHECK(!split_data_uri("data:image/png;base64"));
  CHECK(!split_data_uri("QUJD"));
  for (const char* const url :
       {"http://a/b.jpg", "https://a", "file:/etc/passwd", "FILE:x", "ftp://a", "s3://b/c"})
    CHECK(is_url(url));
  CHECK(!is_url("/9j/4AAQ"));
}

TEST_CASE("serve: forms as browsers and Node write them") {
  // Node's FormData (undici): no quotes around the boundary, LF never without CR
  const std::string boundary = "----formdata-undici-043819102374";
  const std::string body =
      "--" + boundary + "\r\nContent-Disposition: form-data; name=\"entries\"\r\n\r\n{\"clip\": {}}\r\n--" +
      boundary +
      "\r\nContent-Disposition: form-data; name=\"image\"; filename=\"blob\"\r\n"
      "Content-Type: application/octet-stream\r\n\r\n\r\n--x\r\n\r\n--" +
      boundary + "--\r\n";
  std::string with_zero = body;
  const std::size_t at = with_zero.find("--x") + 3;
  with_zero.insert(at, 1, '\0');
  CHECK(form_boundary("multipart/form-data; boundary=" + boundary) == boundary);
  const auto parts = read_form(with_zero, boundary);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].name == "entries");
  CHECK(!parts[0].file_name);
  CHECK(parts[0].data == "{\"clip\": {}}");
  CHECK(parts[1].file_name == "blob");
  CHECK(parts[1].content_type == "application/octet-stream");
  CHECK(parts[1].data == std::string_view("\r\n--x\0\r\n", 8));

  CHECK(form_boundary("Multipart/Form-Data; charset=utf-8; boundary=\"a b\"") == "a b");
  const auto quoted = read_form(
      "preamble\r\n--b\r\nCONTENT-DISPOSITION: form-data; filename=\"a\\\"b;c.jpg\"; "
      "name=\"f\"\r\n\r\n\r\n--b--",
      "b");
  REQUIRE(quoted.size() == 1);
  CHECK(quoted[0].name == "f");
  CHECK(quoted[0].file_name == "a\"b;c.jpg");
  CHECK(quoted[0].data.empty());
  CHECK(read_form("--b--\r\n", "b").empty());
}

TEST_CASE("serve: forms that are none are an Error") {
  const std::string part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
  const std::vector<std::string> broken{
      "",
      "x",
      "--b",
      part,                                                       // no end
      "--bc\r\n" + part + "--b--",                                // another boundary
      "--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--",  // no name
      "--b\r\nContent-Type: text/plain\r\n\r\nx\r\n--b--",
      "--b\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--b--",
      "--b\r\nno header\r\n\r\nx\r\n--b--",
      "--b\r\n Content-Disposition: form-data; name=a\r\n\r\nx\r\n--b--",
      "--b\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--b--",
      "--b\r\nContent-Disposition: form-data; name=a\r\nX: " + std::string(5000, 'x') + "\r\n\r\nx\r\n--b--"};
  for (const std::string& body : broken) {
    CAPTURE(body);
    CHECK_THROWS_AS(read_form(body, "b"), Error);
  }
  std::string many;
  for (std::size_t i = 0; i <= kMaxFormParts; ++i) many += part;
  CHECK_THROWS_AS(read_form(many + "--b--", "b"), Error);
  for (const char* const type : {"", "text/plain; boundary=b", "multipart/form-data",
                                 "multipart/form-data; boundary=", "multipart/form-data; boundary=\"b",
                                 "multipart/mixed; boundary=b"}) {
    CAPTURE(type);
    CHECK(!form_boundary(type));
  }
  CHECK(!form_boundary("multipart/form-data; boundary=" + std::string(71, 'b')));
}

TEST_CASE("serve: heads that two programs could read in two ways are refused") {
  CHECK(defect_of_head(head("Content-Length: 3\r\n")).empty());
  CHECK(defect_of_head(head("Transfer-Encoding: chunked\r\n")).empty());
  CHECK(defect_of_head("GET / HTTP/1.0\r\n\r\n").empty());
  CHECK(path_of_target("/a/b?c=/d#e") == "/a/b");
  CHECK(path_of_target("http://a:1/b?c") == "/b");
  CHECK(path_of_target("HTTP://a") == "/");
  CHECK(path_of_target("*") == "*");
  const std::vector<std::string> refused{head("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
                                         head("Content-Length: 3\r\nContent-Length: 3\r\n"),
                                         head("Content-Length: 3\r\ncontent-length: 4\r\n"),
                                         head("Content-Length: 3, 3\r\n"),
                                         head("Content-Length: +3\r\n"),
                                         head("Content-Length: 0x3\r\n"),
                                         head("Content-Length: \r\n"),
                                         head("Content-Length: 99999999999999999999\r\n"),
                                         head("Content-Length : 3\r\n"),
                                         head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
                                         head("Transfer-Encoding: gzip, chunked\r\n"),
                                         head("Transfer-Encoding: xchunked\r\n"),
                                         head("Transfer-Encoding:\x0b chunked\r\n"),
                                         head("X: a\r\n folded\r\n"),
                                         head("X: a\r\n\tfolded\r\n"),
                                         head("no colon\r\n"),
                                         head(": no name\r\n"),
                                         head("X: a\rb\r\n"),
                                         head("X: a\nContent-Length: 3\r\n"),
                                         head("X\x7f: a\r\n"),
                                         head("Host: b\r\n"),
                                         "GET / HTTP/1.1\r\n\r\n",
                                         "GET / HTTP/1.1\nHost: a\n\n",
                                         " folded\r\nHost: a\r\n\r\n: x"};
  for (const std::string& text : refused) {
    CAPTURE(text);
    CHECK(!defect_of_head(text).empty());
  }
}

TEST_CASE("serve: inputs in OpenAI's dialects") {
  SUBCASE("strings are texts, or what modality says") {
    CHECK(inputs_of(R"({"input": "a cat"})").front().is_text);
    CHECK(inputs_of(R"({"input": ["a", "b"], "modality": "text"})").size() == 2);
    const auto images =
        inputs_of(R"({"input": ["data:image/png;base64,QUJD", "QUJE"], "modality": "image"})");
    REQUIRE(images.size() == 2);
    CHECK(!images[0].is_text);
    CHECK(images[0].data == "ABC");
    CHECK(images[1].data == "ABD");
    CHECK(!inputs_of(R"({"input": "QUJD"})", StringMeaning::image).front().is_text);
  }
  SUBCASE("objects") {
    const auto mixed =
        inputs_of(R"({"input": [{"image": "QUJD"}, {"text": "a"}, {"type": "image_url", "image_url":
                                 {"url": "data:;base64,QUJE"}}, {"image_url": "QUJF"}]})");
    REQUIRE(mixed.size() == 4);
    CHECK(mixed[0].data == "ABC");
    CHECK(mixed[1].is_text);
    CHECK(mixed[2].data == "ABD");
    CHECK(mixed[3].data == "ABE");
  }
  SUBCASE("messages") {
    const auto one =
        inputs_of(R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url":
                               {"url": "data:image/png;base64,QUJD"}}]}]})");
    REQUIRE(one.size() == 1);
    CHECK(one[0].data == "ABC");
    CHECK(inputs_of(R"({"messages": [{"role": "user", "content": "a cat"}]})").front().is_text);
  }
  SUBCASE("what cannot be read names its place") {
    const std::vector<std::pair<std::string, std::string>> refused{
        {R"({})", "400 input"},
        {R"({"input": []})", "400 input"},
        {R"({"input": 3})", "400 input"},
        {R"({"input": ["a", [1, 2]]})", "400 input[1]"},
        {R"({"input": ["a", null]})", "400 input[1]"},
        {R"({"input": ["QUJD", "https://example.com/a.jpg"], "modality": "image"})", "400 input[1]"},
        {R"({"input": ["QUJD", "?"], "modality": "image"})", "400 input[1]"},
        {R"({"input": [""], "modality": "image"})", "400 input[0]"},
        {R"({"input": ["data:image/png,abc"], "modality": "image"})", "400 input[0]"},
        {R"({"input": [{"image": "QUJD", "text": "a"}]})", "400 input[0]"},
        {R"({"input": [{"video": "QUJD"}]})", "400 input[0]"},
        {R"({"input": "a", "modality": "audio"})", "400 modality"},
        {R"({"input": ["a", "data:image/png;base64,QUJD"]})", "400 input[1]"},
        {R"({"input": "a", "modality": 1})", "400 modality"},
        {R"({"input": "a", "messages": []})", "400 messages"},
        {R"({"messages": []})", "400 messages"},
        {R"({"messages": [{"role": "user"}]})", "400 messages[0]"},
        {R"({"messages": [{"content": ["a"]}]})", "400 messages[0].content[0]"}};
    for (const auto& [json, refusal] : refused) {
      const std::string& text = json;
      CAPTURE(text);
      CHECK(refusal_of([&] { inputs_of(text); }) == refusal);
    }
  }
  SUBCASE("members that a route does not know are named") {
    constexpr std::string_view kKnown[]{"input", "user"};
    const auto refusal = [&](const std::string& json) {
      return refusal_of([&] { check_members(read_json_body(json, 1 << 20), kKnown); });
    };
    CHECK(refusal(R"({"input": "a", "user": "b"})").empty());
    CHECK(refusal(R"({"input": "a", "embedding_type": null})").empty());
    CHECK(refusal(R"({"input": "a", "embedding_type": "base64"})") == "400 embedding_type");
  }
  SUBCASE("bodies that are no object") {
    for (const char* const body : {"", "[]", "3", "{", "{\"a\": 1, \"a\": 2}", "\xFF"}) {
      CAPTURE(body);
      CHECK(refusal_of([&] { read_json_body(body, 1 << 20); }) == "400 ");
    }
  }
}

TEST_CASE("serve: hosts that can be this machine only") {
  const std::vector<std::string> names{"0.0.0.0", "photos.example"};
  for (const std::string_view authority : {"", "127.0.0.1:3003", "192.168.0.7", "[::1]:3003", "LocalHost:1",
                                           "vit.localhost", "photos.example:443"}) {
    CAPTURE(authority);
    CHECK(is_own_host(host_of_authority(authority), names));
  }
  for (const std::string_view authority :
       {"evil.example:3003", "localhost.evil.example", "127.0.0.1.evil.example", "xlocalhost",
        "aphotos.example", "1e100.net"}) {
    CAPTURE(authority);
    CHECK(!is_own_host(host_of_authority(authority), names));
  }
  CHECK(is_own_host("evil.example", std::vector<std::string>{"*"}));
}

TEST_CASE("serve: errors in the form of each interface") {
  const ApiError error(429, "wait \"now\"", "input[3]", "busy");
  const HttpResponse openai = error_response(Dialect::openai, error);
  const internal::Json body = internal::parse_json(openai.body, "answer").at("error");
  CHECK(body.at("message").as_string() == "wait \"now\"");
  CHECK(body.at("type").as_string() == "rate_limit_error");
  CHECK(body.at("param").as_string() == "input[3]");
  CHECK(body.at("code").as_string() == "busy");
  CHECK(openai.headers.front().first == "Retry-After");
  CHECK(error_response(Dialect::immich, error).body == "{\"detail\": \"wait \\\"now\\\"\"}");
  CHECK(error_response(Dialect::weaviate, error).body == "{\"error\": \"input[3]: wait \\\"now\\\"\"}");
  CHECK(error_response(Dialect::openai, ApiError(401, "x")).headers.front().first == "WWW-Authenticate");
}

TEST_CASE("serve: names of models and addresses of other servers") {
  const TestFolder folder;
  CHECK(parse_served_model("clip=some/where") == std::pair<std::string, std::string>("clip", "some/where"));
  CHECK(parse_served_model("ViT-B-32__openai=x").first == "ViT-B-32__openai");
  CHECK(parse_served_model("some/where/").first == "where");
  write_text(folder / "a=b/model.bin", "x");
  CHECK(parse_served_model(folder / "a=b").first == "a=b");
  CHECK(parse_served_model(folder / "a=b/model.bin").first == "model");
  CHECK(parse_served_model("/c/models--openai--clip-vit/snapshots/0123").first == "openai/clip-vit");
  CHECK_THROWS_AS(parse_served_model("=x"), UsageError);
  CHECK_THROWS_AS(parse_served_model("x="), UsageError);

  const HttpTarget plain = parse_http_target("http://immich:3003/");
  CHECK(plain.host == "immich");
  CHECK(plain.port == "3003");
  CHECK(plain.path.empty());
  const HttpTarget six = parse_http_target("http://[::1]:80/ml");
  CHECK(six.host == "::1");
  CHECK(six.path == "/ml");
  CHECK(parse_http_target("http://a").port == "80");
  for (const char* const url : {"", "https://a", "a:80", "http://", "http://a:b", "http://a b", "http://a:",
                                "http://a:65536", "http://[::1", "http://a\xE9/", "http://a/\x01"})
    CHECK_THROWS_AS(parse_http_target(url), UsageError);
}

TEST_CASE("serve: texts are cleaned as immich's service does it") {
  CHECK(clean_as_immich("  a\t cat \n", false) == "a cat");
  CHECK(clean_as_immich("A &amp; B\xE2\x80\x83 C", false) == "A &amp; B C");
  CHECK(clean_as_immich("A  Photo, of: \"X\"_!", true) == "a photo of x");
}

TEST_CASE("serve: keys are compared whole") {
  CHECK(equal_in_constant_time("", ""));
  CHECK(equal_in_constant_time("secret", "secret"));
  for (const char* const other : {"", "s", "secre", "secret1", "Secret"})
    CHECK(!equal_in_constant_time("secret", other));
}

TEST_CASE("serve: which files need memory that no image was in") {
  const auto needs = [](std::string_view bytes) {
    return needs_fresh_memory(std::as_bytes(std::span(bytes)));
  };
  CHECK(
      needs(std::string_view("\0\0\0\x18"
                             "ftypheic",
                             12)));
  CHECK(
      needs(std::string_view("\0\0\0\x18"
                             "ftypavif",
                             12)));
  CHECK(needs(std::string_view("\0\0\0\x0CjP  ", 8)));
  CHECK(needs("II*"));
  CHECK(needs(""));
  CHECK(!needs("\xFF\xD8\xFF\xE0"));
  CHECK(!needs("\x89PNG\r\n"));
  CHECK(!needs("RIFF....WEBPVP8 "));
}

TEST_CASE("serve: counts in Prometheus' format") {
  Metrics metrics;
  metrics.add_request("/v1/embeddings", 200, 0.02);
  metrics.add_request("/v1/embeddings", 200, 0.2);
  metrics.add_request("other", 404, 0.0001);
  metrics.add_rejected("busy");
  metrics.add_batch(3);
  metrics.add_images(3);
  const std::string text =
      metrics.text({.queue_depth = 7, .connections_in_work = 1, .worker_restarts = 2}, "1.2.3");
  for (const char* const line :
       {"vit_requests_total{route=\"/v1/embeddings\",status=\"200\"} 2\n",
        "vit_requests_total{route=\"other\",status=\"404\"} 1\n", "vit_rejected_total{reason=\"busy\"} 1\n",
        "vit_request_duration_seconds_bucket{le=\"0.025\"} 2\n",
        "vit_request_duration_seconds_bucket{le=\"+Inf\"} 3\n", "vit_request_duration_seconds_count 3\n",
        "vit_batch_size_bucket{le=\"2\"} 0\n", "vit_batch_size_bucket{le=\"4\"} 1\n", "vit_images_total 3\n",
        "vit_queue_depth 7\n", "vit_build_info{version=\"1.2.3\"} 1\n",
        "# TYPE vit_batch_size histogram\n"}) {
    CAPTURE(line);
    CHECK(contains(text, line));
  }
}

TEST_CASE("serve: a request is one line of the log, whatever its path holds") {
  HttpRecord record{.id = "ab12",
                    .method = "POST",
                    .path = "/a\nb\x1b[31m",
                    .peer = "127.0.0.1",
                    .client = "127.0.0.1",
                    .status = 400,
                    .seconds = 0.0123,
                    .bytes_in = 10,
                    .bytes_out = 20};
  CHECK(log_line(LogFormat::text, record, "T") ==
        "T 400 POST /a\\nb\\x1b[31m 12.3 ms 10 B 20 B 127.0.0.1 ab12");
  const internal::Json json = internal::parse_json(log_line(LogFormat::json, record, "T"), "line");
  CHECK(json.at("path").as_string() == "/a\nb\x1b[31m");
  CHECK(json.at("status").as_size() == 400);
  CHECK(json.at("milliseconds").as_double() == 12.3);
}
