// Reloads under load and what the log says of them; servers of vit bench --serve.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

bool holds_within(std::chrono::seconds time, const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return condition();
}

/// Processes that run and whose command line holds this text.
std::vector<pid_t> processes_with(const std::string& part) {
  std::vector<pid_t> out;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "cmdline");
    const std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (line.find(part) != std::string::npos) out.push_back(static_cast<pid_t>(std::stoi(name)));
  }
  return out;
}

/// The objects of a log in JSON that are events of this name.
std::vector<Json> events_of(const ServeProcess& server, const std::string& name) {
  std::vector<Json> out;
  for (const std::string& line : lines_of(server.log())) {
    const Json object = parse_json(line, "log");
    if (object.find_string("event") == name) out.push_back(object);
  }
  return out;
}

}  // namespace

TEST_CASE("serve: a reload comes after what is computed now, however much waits") {
  const TestFolder folder;
  write_picture(folder / "a.ppm", 40, 40, 1);
  const ServeProcess server(
      {"--model", "m=" + data_path("model").string(), "--size", "160", "--threads", "2", "--timeout", "600"});
  const std::string body = R"({"modality": "image", "input": ")" + data_uri(folder / "a.ppm") + "\"}";
  std::atomic<bool> is_done{false};
  std::atomic<int> num_answers{0};
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i)
    clients.emplace_back([&] {
      while (!is_done) {
        if (server.post("/v1/embeddings", body).status == 200) ++num_answers;
      }
    });
  CHECK(holds_within(std::chrono::seconds(60), [&] { return num_answers >= 16; }));  // all of them wait
  ::kill(server.process(), SIGHUP);
  CHECK(holds_within(std::chrono::seconds(15), [&] { return contains(server.log(), "read again"); }));
  const int before = num_answers;
  CHECK(holds_within(std::chrono::seconds(60), [&] { return num_answers >= before + 16; }));
  is_done = true;
  for (std::thread& client : clients) client.join();
}

TEST_CASE("serve: the log in JSON says what a reload read and what stays as it was") {
  const TestFolder folder;
  const std::string keys = folder / "keys";
  write_text(keys, "first\n");
  std::filesystem::copy(golden_model("rope-axial"), folder / "m", std::filesystem::copy_options::recursive);
  const ServeProcess server({"--model", "a=" + golden_model("rope-axial"), "--model", "b=" + (folder / "m"),
                             "--api-keys", keys, "--log", "json"});
  const auto reload = [&](std::size_t num_events, const std::string& event) {
    ::kill(server.process(), SIGHUP);
    CHECK(holds_within(std::chrono::seconds(30),
                       [&] { return events_of(server, event).size() >= num_events; }));
  };
  const auto message = [&](const std::string& event, std::size_t i) {
    const std::vector<Json> events = events_of(server, event);
    return i < events.size() ? std::string(events[i].find_string("message").value_or("")) : std::string();
  };
  CHECK(contains(message("listening", 0), "http://127.0.0.1:"));
  reload(2, "reload");
  CHECK(message("reload", 0) == "the keys are read again");
  CHECK(message("reload", 1) == "the models are read again");
  write_text(keys, "\n");
  std::filesystem::remove_all(folder / "m");
  reload(3, "reload_failed");
  CHECK(contains(message("reload_failed", 0), "the keys stay as they were: "));
  CHECK(contains(message("reload_failed", 1), "the model 'b' stays as it was: "));
  CHECK(message("reload_failed", 2) == "1 of 2 models are read again");
  CHECK(events_of(server, "reload").size() == 2);
}

TEST_CASE("serve: the server of vit bench --serve ends with it") {
  const TestFolder folder;
  const std::string model = folder / "model_of_bench";
  std::filesystem::copy(golden_model("rope-axial"), model, std::filesystem::copy_options::recursive);
  write_picture(folder / "a.ppm", 40, 40, 1);
  const std::string served = "m=" + std::filesystem::absolute(model).string();
  for (const int signal : {SIGKILL, SIGTERM, SIGINT}) {
    CAPTURE(signal);
    const pid_t bench =
        start_vit({"bench", "--serve", "--model", model, "--image", folder / "a.ppm", "--seconds", "60"}, {},
                  folder / "out", folder / "err");
    const bool starts =
        holds_within(std::chrono::seconds(60), [&] { return !processes_with(served).empty(); });
    CAPTURE(read_text(folder / "err"));
    CHECK(starts);
    ::kill(bench, signal);
    int status = 0;
    ::waitpid(bench, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    CHECK(code == 128 + signal);
    // A server that starts just then ends before the processes that decode for it.
    CHECK(holds_within(std::chrono::seconds(30), [&] { return processes_with(served).empty(); }));
  }
}

TEST_SUITE_END();
