// vit serve with clients that mean no good, and with decoding processes that end.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::test;

namespace {

std::string model_argument() {
  return "m=" + golden_model("rope-axial");
}

std::string embed_body(const std::string& file, std::size_t count = 1) {
  std::string uris;
  const std::string uri = data_uri(file);
  for (std::size_t i = 0; i < count; ++i) uris += (i == 0 ? "\"" : ", \"") + uri + "\"";
  return R"({"modality": "image", "input": [)" + uris + "]}";
}

/// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> out;
  const std::string process = std::to_string(parent);
  std::ifstream list("/proc/" + process + "/task/" + process + "/children");
  for (pid_t child = 0; list >> child;) out.push_back(child);
  return out;
}

/// The processes that decode: children of the supervisor, which is the only child of the server.
std::vector<pid_t> decoders_of(const ServeProcess& server) {
  std::vector<pid_t> out;
  for (const pid_t supervisor : children_of(server.process())) {
    for (const pid_t child : children_of(supervisor)) out.push_back(child);
  }
  return out;
}

bool is_well(const ServeProcess& server) {
  return server.get("/health").status == 200;
}

}  // namespace

TEST_CASE("serve: a request cannot hide another one") {
  const ServeProcess server({"--model", model_argument()});
  const std::string hidden = "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string first = "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& head :
       {std::string("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"),
        std::string("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
        std::string("Content-Length: 5\r\nContent-Length: 6\r\n"), std::string("Content-Length: 5, 6\r\n"),
        std::string("Content-Length: 5\r\n Transfer-Encoding: chunked\r\n"),
        std::string("Content-Length : 5\r\n"), std::string("Transfer-Encoding: identity, chunked\r\n"),
        std::string("Transfer-Encoding:\x0b"
                    "chunked\r\n"),
        std::string("X: a\nContent-Length: 5\r\n"), std::string("X: a\rContent-Length: 5\r\n"),
        std::string("Content-Length: -5\r\n")}) {
    CAPTURE(head);
    Client client(server.port());
    client.send(first + head + "\r\n0\r\n\r\n" + hidden);
    const HttpAnswer answer = client.read();
    CHECK(answer.status == 400);
    CHECK(answer.headers.at("connection") == "close");
    CHECK(client.read(std::chrono::milliseconds(200)).status == 0);  // no second answer
  }
  for (const std::string& chunks :
       {std::string("x\r\n"), std::string("-1\r\n"), std::string("ffffffffffffffffff\r\n"),
        std::string("2\r\nabc\r\n0\r\n\r\n")}) {
    CAPTURE(chunks);
    Client client(server.port());
    client.send(first + "Transfer-Encoding: chunked\r\n\r\n" + chunks + hidden);
    CHECK(client.read().status == 400);
    CHECK(client.read(std::chrono::milliseconds(200)).status == 0);
  }
  CHECK(is_well(server));
}

TEST_CASE("serve: chunked bodies, expectations and bodies that come byte by byte") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 20, 20, 1);
  const ServeProcess server({"--model", model_argument()});
  const std::string body = embed_body(folder / "a.ppm");
  const HttpAnswer whole = server.post("/v1/embeddings", body);
  REQUIRE(whole.status == 200);
  const std::string first = "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\n";
  SUBCASE("chunked") {
    Client client(server.port());
    client.send(first + "Transfer-Encoding: chunked\r\n\r\n");
    for (std::size_t at = 0; at < body.size(); at += 1000) {
      const std::string part = body.substr(at, 1000);
      char size[16];
      std::snprintf(size, sizeof size, "%zx\r\n", part.size());
      client.send(size + part + "\r\n");
    }
    client.send("0\r\n\r\n");
    CHECK(client.read().body == whole.body);
  }
  SUBCASE("Expect: 100-continue") {
    Client client(server.port());
    client.send(first + "Expect: 100-continue\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n");
    CHECK(client.read().status == 100);
    client.send(body);
    CHECK(client.read().body == whole.body);
  }
  SUBCASE("refused before the body is sent") {
    Client client(server.port());
    client.send("POST /v1/nothing HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n");
    CHECK(client.read().status == 404);
  }
  SUBCASE("slowly") {
    Client client(server.port());
    const std::string request = http_request("POST", "/v1/embeddings", body);
    for (std::size_t at = 0; at < 60; ++at) {
      client.send(request.substr(at, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    client.send(request.substr(60));
    CHECK(client.read().body == whole.body);
  }
}

TEST_CASE("serve: limits of heads, bodies, pixels and inputs") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 20, 20, 1);
  const ServeProcess server({"--model", model_argument(), "--max-body", "1", "--max-pixels", "1000"});
  SUBCASE("a head of more than 16 KiB") {
    CHECK(server.get("/health", {"X: " + std::string(20'000, 'x')}).status == 431);
    CHECK(server.get("/health", {"X: " + std::string(15'000, 'x')}).status == 200);
  }
  SUBCASE("a body of more than --max-body, announced or not") {
    const HttpAnswer announced = server.post("/v1/embeddings", std::string((1 << 20) + 1, 'x'));
    CHECK(announced.status == 413);
    CHECK(announced.json().at("error").at("message").is_string());
    Client client(server.port());
    client.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    const std::string chunk = "10000\r\n" + std::string(0x10000, 'x') + "\r\n";
    for (int i = 0; i < 20 && client.send(chunk); ++i) {
    }
    CHECK(client.read().status == 413);
  }
  SUBCASE("an image of more pixels") {
    write_picture(folder / "b.ppm", 40, 40, 1);
    CHECK(server.post("/v1/embeddings", embed_body(folder / "a.ppm")).status == 200);
    const HttpAnswer answer = server.post("/v1/embeddings", embed_body(folder / "b.ppm"));
    CHECK(answer.status == 400);
    CHECK(answer.json().at("error").at("param").as_string() == "input[0]");
  }
  SUBCASE("too many inputs") {
    std::string texts;
    for (int i = 0; i < 2049; ++i) texts += (i == 0 ? "\"a\"" : ", \"a\"");
    CHECK(server.post("/v1/embeddings", "{\"input\": [" + texts + "]}").status == 400);
  }
  CHECK(is_well(server));
}

TEST_CASE("serve: what does not come is not waited for") {
  const ServeProcess server({"--model", model_argument(), "--timeout", "2"});
  SUBCASE("a head that does not come") {
    Client client(server.port());
    client.send("GET /health HT");
    CHECK(client.read().status == 408);
  }
  SUBCASE("a body that does not come") {
    Client client(server.port());
    client.send("POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    CHECK(client.read().status == 408);
    CHECK(client.awaits_end());
  }
  CHECK(is_well(server));
}

TEST_CASE("serve: what does not fit the queue is answered 429, and later taken") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 300, 300, 1);
  const ServeProcess server(
      {"--model", "m=" + data_path("model").string(), "--max-requests", "2", "--log", "none"});
  const std::string large = http_request("POST", "/v1/embeddings", embed_body(folder / "a.ppm", 64));
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(large);
  }
  std::size_t num_done = 0, num_refused = 0;
  for (const auto& client : clients) {
    const HttpAnswer answer = client->read();
    if (answer.status == 200) ++num_done;
    if (answer.status != 429) continue;
    ++num_refused;
    CHECK(answer.headers.contains("retry-after"));
  }
  CHECK(num_done >= 2);
  CHECK(num_done + num_refused == 6);
  CHECK(num_refused > 0);
  CHECK(server.post("/v1/embeddings", embed_body(folder / "a.ppm")).status == 200);
}

TEST_CASE("serve: clients that go away cost nothing more") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 100, 100, 1);
  const ServeProcess server({"--model", "m=" + data_path("model").string(), "--log", "none"});
  const std::string request = http_request("POST", "/v1/embeddings", embed_body(folder / "a.ppm", 100));
  const std::string num_gone = "vit_rejected_total{reason=\"client_gone\"}";
  for (std::size_t i = 0; i < 10; ++i) {
    {
      Client client(server.port());
      client.send(request);
      REQUIRE(server.await_metric("vit_queue_depth", [](std::size_t inputs) { return inputs > 0; }));
    }
    CHECK(server.await_metric(num_gone, [&](std::size_t count) { return count == i + 1; }));
  }
  CHECK(server.post("/v1/embeddings", embed_body(folder / "a.ppm")).status == 200);
  CHECK(server.metric("vit_images_total") < 500);  // of 1001
}

TEST_CASE("serve: many connections at a time") {
  const ServeProcess server({"--model", model_argument(), "--max-connections", "200", "--log", "none"});
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 400; ++i) {
    idle.push_back(std::make_unique<Client>(server.port()));
    if (i % 50 == 0) CHECK(is_well(server));
  }
  CHECK(is_well(server));
  CHECK(idle.front()->awaits_end());  // the one that waited longest made room
  idle.back()->send(http_request("GET", "/health"));
  CHECK(idle.back()->read().status == 200);
}

TEST_CASE("serve: processes that decode are killed and come again") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 200, 200, 1);
  const ServeProcess server({"--model", model_argument(), "--threads", "2", "--log", "none"});
  const std::string body = embed_body(folder / "a.ppm", 4);
  const HttpAnswer before = server.post("/v1/embeddings", body);
  REQUIRE(before.status == 200);
  for (int i = 0; i < 8; ++i) {
    const std::vector<pid_t> decoders = decoders_of(server);
    for (const pid_t decoder : decoders) ::kill(decoder, SIGKILL);
    CHECK(server.post("/v1/embeddings", body).body == before.body);
  }
  std::atomic<bool> is_done{false};
  std::thread killer([&] {  // while they work: a request may be lost, the server is not
    while (!is_done) {
      for (const pid_t decoder : decoders_of(server)) ::kill(decoder, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  for (int i = 0; i < 8; ++i) {
    const HttpAnswer answer = server.post("/v1/embeddings", body);
    const bool is_same = answer.status == 200 && answer.body == before.body;
    CHECK((is_same || answer.status == 400 || answer.status == 503));
  }
  is_done = true;
  killer.join();
  CHECK(server.post("/v1/embeddings", body).body == before.body);
}

#if !defined(__SANITIZE_ADDRESS__)  // which keeps what is freed
TEST_CASE("serve: memory does not grow with the requests") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 100, 100, 1);
  const ServeProcess server({"--model", model_argument(), "--log", "none"});
  const std::string request = http_request("POST", "/v1/embeddings", embed_body(folder / "a.ppm"));
  const auto run = [&](int count) {
    Client client(server.port());
    for (int i = 0; i < count; ++i) {
      client.send(request);
      REQUIRE(client.read().status == 200);
    }
  };
  const auto resident_pages = [&] {
    std::ifstream file("/proc/" + std::to_string(server.process()) + "/statm");
    long total = 0, resident = 0;
    file >> total >> resident;
    return resident;
  };
  run(200);
  const long before = resident_pages();
  run(600);
  CHECK(resident_pages() - before < 256);  // 1 MiB
}
#endif

TEST_CASE("serve: what is announced and does not come takes nothing from others") {
  const ServeProcess server({"--model", model_argument(), "--max-requests", "8", "--log", "none"});
  const std::string path = "POST /v1/embeddings HTTP/1.1\r\nHost: a\r\n";
  std::vector<std::unique_ptr<Client>> clients;
  SUBCASE("large bodies") {
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Client>(server.port()));
      clients.back()->send(path + "Content-Length: 33554432\r\n\r\n{");
    }
  }
  SUBCASE("many small bodies") {
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Client>(server.port()));
      clients.back()->send(path + "Content-Length: 99\r\n\r\n{");
    }
  }
  SUBCASE("chunked bodies") {
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<Client>(server.port()));
      clients.back()->send(path + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n");
    }
  }
  const TestFolder folder;
  write_picture(folder / "a.ppm", 20, 20, 1);
  CHECK(server.post("/v1/embeddings", embed_body(folder / "a.ppm")).status == 200);
}

TEST_CASE("serve: heads that are begun make room for whole requests") {
  const ServeProcess server({"--model", model_argument(), "--max-connections", "100", "--log", "none"});
  std::vector<std::unique_ptr<Client>> begun;
  for (int i = 0; i < 120; ++i) {
    begun.push_back(std::make_unique<Client>(server.port()));
    begun.back()->send("GET /health HT");
  }
  CHECK(is_well(server));
}

TEST_CASE("serve: inputs are counted before they take memory") {
  const ServeProcess server({"--model", model_argument(), "--log", "none"});
  std::string texts;
  for (int i = 0; i < 500'000; ++i) texts += i == 0 ? "\"\"" : ",\"\"";
  CHECK(server.post("/vectorize", "{\"texts\": [" + texts + "]}").status == 400);
  CHECK(server.post("/v1/embeddings", "{\"input\": [" + texts + "]}").status == 400);
  std::ifstream status("/proc/" + std::to_string(server.process()) + "/status");
  std::size_t kibibytes = 0;
  for (std::string word; status >> word && word != "VmHWM:";) {
  }
  status >> kibibytes;
#if !defined(__SANITIZE_ADDRESS__)
  CHECK(kibibytes < 100'000);
#endif
  CHECK(kibibytes > 0);
}

TEST_CASE("serve: classes in words end at the deadline, and others have turns meanwhile") {
  const TestFolder folder;
  const std::string model = clip_model(folder);
  write_picture(folder / "a.ppm", 20, 20, 1);
  const ServeProcess server({"--model", "clip=" + model, "--timeout", "5", "--log", "none"});
  std::string labels, templates;
  for (int i = 0; i < 10'000; ++i) labels += (i == 0 ? "\"l" : ", \"l") + std::to_string(i) + "\"";
  for (int i = 0; i < 100; ++i) templates += (i == 0 ? "\"t" : ", \"t") + std::to_string(i) + " {}\"";
  const std::string body = R"({"modality": "image", "input": [")" + data_uri(folder / "a.ppm") +
                           R"("], "candidate_labels": [)" + labels + R"(], "template": [)" + templates + "]}";
  Client client(server.port());
  client.send(http_request("POST", "/v1/classify", body));
  CHECK(server.post("/v1/embeddings", R"({"input": "a cat"})").status == 200);
  const HttpAnswer answer = client.read();  // refused by the time of the first part, or late
  CHECK((answer.status == 413 || answer.status == 503));
  if (answer.status == 413) CHECK(answer.json().at("error").at("param").as_string() == "candidate_labels");
  CHECK(server.post("/v1/embeddings", R"({"input": "a dog"})").status == 200);
}

TEST_CASE("serve: a single image does not wait for a batch of the same client") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 100, 100, 1);
  const ServeProcess server(
      {"--model", "m=" + data_path("model").string(), "--log", "none", "--timeout", "600"});
  const std::string one = embed_body(folder / "a.ppm");
  Client batch(server.port());
  batch.send(http_request("POST", "/v1/embeddings", embed_body(folder / "a.ppm", 512 / kSlowness)));
  REQUIRE(
      server.await_metric("vit_queue_depth", [](std::size_t inputs) { return inputs > 128 / kSlowness; }));
  CHECK(server.post("/v1/embeddings", one).status == 200);
  CHECK(server.metric("vit_queue_depth") > 0);  // the batch is not done
  SUBCASE("a bulk request comes after it") {
    CHECK(server.post("/v1/embeddings", one, {"Content-Type: application/json", "X-Priority: bulk"}).status ==
          200);
    CHECK(server.metric("vit_queue_depth") == 0);
  }
  CHECK(batch.read().status == 200);
}

TEST_CASE("serve: the end of what reads the log is not that of the server") {
  const TestFolder folder;
  const std::string socket = folder / "s", log = folder / "log";
  REQUIRE(::mkfifo(log.c_str(), 0600) == 0);
  const int reader = ::open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  const pid_t process =
      start_vit({"serve", "--unix", socket, "--model", model_argument()}, {}, folder / "out", log);
  while (!std::filesystem::exists(socket)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::close(reader);
  bool answers = false;
  for (int i = 0; i < 600 && !answers; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    if (!std::filesystem::exists(socket)) continue;
    Client client(socket);
    client.send(http_request("GET", "/health"));
    answers = client.read(std::chrono::seconds(5)).status == 200;
  }
  CHECK(answers);
  ::kill(process, SIGTERM);
  int status = 0;
  ::waitpid(process, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

TEST_CASE("serve: without the process that starts decoders it ends, so that it is started again") {
  ServeProcess server({"--model", model_argument()});
  for (const pid_t supervisor : children_of(server.process())) ::kill(supervisor, SIGKILL);
  CHECK(server.end(0) == 1);
  CHECK(server.log().find("the processes that decode images were ended") != std::string::npos);
}

TEST_CASE("serve: several keys, what each may use, and a reload") {
  const TestFolder folder;
  const std::string keys = folder / "keys";
  write_text(keys, "# of the photo manager\nfirst models=a routes=/v1/,/metrics\nsecond\n");
  const ServeProcess server({"--model", "a=" + golden_model("rope-axial"), "--model",
                             "b=" + golden_model("rope-axial"), "--api-keys", keys});
  const auto status = [&](const std::string& path, const std::string& key) {
    return server.get(path, {"Authorization: Bearer " + key}).status;
  };
  CHECK(server.get("/v1/models").status == 401);
  CHECK(status("/v1/models", "third") == 401);
  CHECK(status("/v1/models/a", "first") == 200);
  CHECK(status("/v1/models/b", "first") == 403);
  CHECK(status("/v1/models/b", "second") == 200);
  CHECK(status("/meta", "first") == 403);
  CHECK(status("/meta", "second") == 200);
  write_text(keys, "third\n");
  ::kill(server.process(), SIGHUP);
  for (int i = 0; i < 600 && status("/v1/models", "third") != 200; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(status("/v1/models", "third") == 200);
  CHECK(status("/v1/models", "first") == 401);
}
