// What operators set: memory, limits of keys, and what they see of it; answers in gzip, requests in lines.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "apps/vit/rings/serve/http/gzip.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

std::string request_for(const std::string& model, const std::string& file) {
  return R"({"model": ")" + model + R"(", "modality": "image", "input": ")" + data_uri(file) + "\"}";
}

/// The text of a gzip file.
std::string unzipped(const std::string& file) {
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  std::string out(std::size_t{1} << 24, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

}  // namespace

TEST_CASE("serve: a budget of memory unloads the model that was used least recently, and loads it again") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 30, 40, 1);
  const std::vector<std::string> names{"a", "b", "c"};
  std::vector<std::string> arguments;
  for (const std::string& name : names) {  // of 22 MiB each, in files of their own
    std::filesystem::copy(data_path("model"), folder / name, std::filesystem::copy_options::recursive);
    arguments.insert(arguments.end(), {"--model", name + "=" + (folder / name)});
  }
  const auto bodies = [&](const ServeProcess& server) {
    std::vector<std::string> out;
    for (const std::string& name : names) {
      const HttpAnswer answer = server.post("/v1/embeddings", request_for(name, file));
      CHECK(answer.status == 200);
      out.push_back(answer.body);
    }
    return out;
  };
  const ServeProcess all(arguments);
  CHECK(all.metric("vit_models_loaded") == 3);
  const std::size_t bytes = all.metric("vit_models_bytes");
  const std::vector<std::string> expected = bodies(all);
  REQUIRE(bytes > 0);
  // two of them with what they work in
  std::vector<std::string> bounded = arguments;
  bounded.insert(bounded.end(), {"--memory-budget", std::to_string((bytes * 5 / 6 >> 20) + 1)});
  const ServeProcess server(bounded);
  CHECK(server.metric("vit_models_loaded") == 2);
  for (int round = 0; round < 2; ++round) {
    CHECK(bodies(server) == expected);
    CHECK(server.metric("vit_models_loaded") <= 2);
  }
  CHECK(server.get("/v1/models").json().at("data").size() == 3);
  const RunResult refused =
      run_vit({"serve", "--model", "a=" + (folder / "a"), "--memory-budget", "1", "--port", "0"});
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.err, "--memory-budget"));
}

TEST_CASE("serve: names of the same files share their weights") {
  const std::string model = data_path("model").string();
  const ServeProcess one({"--model", "a=" + model});
  const ServeProcess two({"--model", "a=" + model, "--model", "b=" + model});
  const std::size_t alone = one.metric("vit_models_bytes"), both = two.metric("vit_models_bytes");
  CHECK(two.metric("vit_models_loaded") == 2);
  CHECK(both < alone + alone / 2);
  ::kill(two.process(), SIGHUP);  // also after a reload
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 30, 40, 1);
  for (const char* const name : {"a", "b"})
    CHECK(two.post("/v1/embeddings", request_for(name, file)).status == 200);
  CHECK(two.await_metric("vit_models_bytes", [&](std::size_t bytes) { return bytes < 2 * alone; }));
}

TEST_CASE("serve: metrics by model and route, and limits of keys") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 30, 40, 1);
  write_text(folder / "keys", "first per-minute=2\nsecond requests=1 models=m routes=/v1/\nthird\n");
  const ServeProcess server({"--model", "m=" + golden_model("rope-axial"), "--api-keys", folder / "keys"});
  const auto post = [&](const std::string& key) {
    return server.post("/v1/embeddings", request_for("m", file),
                       {"Content-Type: application/json", "Authorization: Bearer " + key});
  };
  CHECK(post("first").status == 200);
  CHECK(post("first").status == 200);
  const HttpAnswer third = post("first");
  CHECK(third.status == 429);
  CHECK(third.headers.contains("retry-after"));
  CHECK(third.json().at("error").at("code").as_string() == "key_limit");
  for (int i = 0; i < 4; ++i) CHECK(post("second").status == 200);
  CHECK(post("third").status == 200);
  const std::string metrics = server.get("/metrics", {"Authorization: Bearer third"}).body;
  CHECK(contains(metrics, "vit_model_inputs_total{model=\"m\",route=\"/v1/embeddings\",kind=\"image\"} 7\n"));
  CHECK(contains(metrics,
                 "vit_model_request_duration_seconds_count{model=\"m\",route=\"/v1/embeddings\"} 7\n"));
  CHECK(contains(metrics, "vit_rejected_total{reason=\"key_limit\"} 1\n"));
}

TEST_CASE("serve: answers in gzip for clients that take it, where it is shorter") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 64, 64, 1);
  const ServeProcess server({"--model", "m=" + golden_model("rope-axial")});
  const std::string one = "\"" + data_uri(file) + "\"";
  std::string inputs = one;
  for (int i = 0; i < 40; ++i) inputs += ", " + one;
  const auto post = [&](const std::string& more, const std::string& codings) {
    return server.post("/v1/embeddings", R"({"modality": "image", "input": [)" + inputs + "]" + more + "}",
                       {"Content-Type: application/json", "Accept-Encoding: " + codings});
  };
  const HttpAnswer plain = post("", "identity"), zipped = post("", "br, gzip;q=0.5");
  REQUIRE(plain.status == 200);
  CHECK(!plain.headers.contains("content-encoding"));
  CHECK(zipped.headers.at("content-encoding") == "gzip");
  CHECK(zipped.headers.at("vary") == "Accept-Encoding");
  CHECK(zipped.body.size() < plain.body.size() / 2);
  CHECK(unzipped(zipped.body) == plain.body);
  CHECK(!post("", "gzip;q=0").headers.contains("content-encoding"));
  CHECK(!server.get("/v1/models", {"Accept-Encoding: gzip"}).headers.contains("content-encoding"));

  CHECK(app::accepts_gzip("*"));
  CHECK(app::accepts_gzip("deflate, X-GZIP ; q=0.001"));
  CHECK(!app::accepts_gzip("*;q=1, gzip;q=0.0"));
  CHECK(!app::accepts_gzip("br, gzipped"));
  CHECK(!app::gzipped(std::string(100, 'a')));
  std::string noise;  // of which base64 is no shorter in gzip
  for (unsigned i = 0, x = 1; i < 100'000; ++i, x = x * 1664525 + 1013904223)
    noise += "ABCDEFGHabcdefgh01234567ijklmnopIJKLMNOPqrstuvwxQRSTUVWXyzYZ89+/"[x >> 26];
  CHECK(!app::gzipped(noise));
}

TEST_CASE("serve: requests in lines, counted as they are read") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm", model = clip_model(folder);
  write_picture(file, 30, 40, 1);
  const ServeProcess server({"--model", "clip=" + model});
  const std::vector<std::string> headers{"Content-Type: application/x-ndjson"};
  const std::string image = "{\"image\": \"" + data_uri(file) + "\"}";
  const HttpAnswer listed =
      server.post("/v1/embeddings", R"({"model": "clip", "input": [{"text": "a cat"}, )" + image + "]}");
  const HttpAnswer lines =
      server.post("/v1/embeddings", "{\"model\": \"clip\"}\n\"a cat\"\r\n\n" + image + "\n", headers);
  REQUIRE(lines.status == 200);
  CHECK(lines.body == listed.body);
  const HttpAnswer classes =
      server.post("/v1/classify", "{\"candidate_labels\": [\"a\", \"b\"]}\n" + image + "\n" + image, headers);
  CHECK(classes.json().at("data").size() == 2);
  const auto refusal = [&](const std::string& body) {
    const HttpAnswer answer = server.post("/v1/embeddings", body, headers);
    return std::to_string(answer.status) + " " +
           std::string(answer.json().at("error").find_string("param").value_or(""));
  };
  CHECK(refusal("{}") == "400 input");
  CHECK(refusal("{}\n\n") == "400 input");
  CHECK(refusal("{}\n\"a\"\n{\"text\"") == "400 input[1]");
  CHECK(refusal("{\"input\": \"a\"}\n\"a\"") == "400 input");
  CHECK(refusal("not JSON\n\"a\"") == "400 ");
  std::string many = "{}\n";
  for (int i = 0; i < 2049; ++i) many += "\"a\"\n";
  CHECK(refusal(many + "this is not read") == "400 input[2048]");
  std::string deep = "{}\n{\"text\": [";
  for (int i = 0; i < 100; ++i) deep += "1,";
  CHECK(refusal(deep + "1]}") == "400 input[0]");
}

TEST_CASE("serve: a batch that is being computed ends at its deadline") {
  using Clock = std::chrono::steady_clock;
  const TestFolder folder;
  const std::string file = folder / "a.ppm", model = data_path("model").string();
  write_picture(file, 40, 40, 1);
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  // larger than the model was made for, so that an image takes a while
#if defined(__SANITIZE_ADDRESS__)
  const std::string size = "160";
#else
  const std::string size = "384";
#endif
  const std::vector<std::string> options{"--model", "m=" + model, "--size", size, "--threads", "1"};
  double one = 0;
  {
    const ServeProcess server(options);
    const Clock::time_point start = Clock::now();
    REQUIRE(server.post("/v1/embeddings", request_for("m", file)).status == 200);
    one = seconds_since(start);
  }
  std::vector<std::string> bounded = options;
  bounded.insert(bounded.end(), {"--timeout", "1"});
  const ServeProcess server(bounded);
  std::string inputs = "\"" + data_uri(file) + "\"";
  constexpr int kImages = 12;
  for (int i = 1; i < kImages; ++i) inputs += ", \"" + data_uri(file) + "\"";
  const Clock::time_point start = Clock::now();
  const HttpAnswer answer =
      server.post("/v1/embeddings", R"({"modality": "image", "input": [)" + inputs + "]}");
  CHECK(server.await_metric("vit_queue_depth", [](std::size_t waiting) { return waiting == 0; }));
  const double all = seconds_since(start);
  CAPTURE(one);
  CAPTURE(all);
  // either it was in time, or it ended long before all of its images were computed
  const bool is_late = answer.status == 503;
  CHECK((is_late || answer.status == 200));
  CHECK((!is_late || all < 1 + 0.6 * kImages * one));
}

#if !defined(__SANITIZE_ADDRESS__)  // which reserves address space
TEST_CASE("serve: an image for which there is no memory does not fail the others of its batch") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 64, 64, 1);
  write_picture(folder / "large.ppm", 2048, 2048, 1);
  const ServeProcess server(
      {"--model", "m=" + data_path("model").string(), "--threads", "2", "--size", "native", "--log", "none"});
  REQUIRE(server.post("/v1/embeddings", request_for("m", folder / "a.ppm")).status == 200);
  std::ifstream status("/proc/" + std::to_string(server.process()) + "/status");
  std::size_t kibibytes = 0;
  for (std::string word; status >> word && word != "VmSize:";) {
  }
  status >> kibibytes;
  REQUIRE(kibibytes > 0);
  const rlim_t bytes = (kibibytes << 10) + (rlim_t{300} << 20);  // for the pixels of both, not for a pass
  const rlimit limit{bytes, bytes};
  REQUIRE(::prlimit(server.process(), RLIMIT_AS, &limit, nullptr) == 0);
  const std::string small = "\"" + data_uri(folder / "a.ppm") + "\"";
  const HttpAnswer answer = server.post("/v1/embeddings",
                                        R"({"modality": "image", "input": [)" + small + ", \"" +
                                            data_uri(folder / "large.ppm") + "\", " + small + "]}",
                                        {"Content-Type: application/json", "Accept: application/x-ndjson"});
  const std::vector<std::string> lines = lines_of(answer.body);
  REQUIRE(lines.size() == 3);
  CHECK(contains(lines[0], "\"embedding\": ["));
  CHECK(contains(lines[1], "not enough memory"));
  CHECK(contains(lines[2], "\"embedding\": ["));
}
#endif

TEST_SUITE_END();
