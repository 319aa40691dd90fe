// vit serve as its clients see it.
#include <doctest/doctest.h>
#include <signal.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/outputs.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

/// The bits of numbers that JSON holds.
std::vector<std::uint32_t> bits_of(const Json& list) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; i < list.size(); ++i)
    out.push_back(std::bit_cast<std::uint32_t>(static_cast<float>(list[i].as_double())));
  return out;
}

/// The bits of the vector of length one in the direction of these.
std::vector<std::uint32_t> bits_of_length_one(std::vector<std::uint32_t> bits) {
  std::vector<float> vector(bits.size());
  std::memcpy(vector.data(), bits.data(), bits.size() * sizeof(float));
  normalize_vector(vector);
  std::memcpy(bits.data(), vector.data(), bits.size() * sizeof(float));
  return bits;
}

/// Objects of a .jsonl file.
std::vector<Json> objects_of(const std::string& path) {
  std::vector<Json> out;
  for (const std::string& line : lines_of(read_text(path))) out.push_back(parse_json(line, path));
  return out;
}

std::string quoted_list(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "[\"" : ", \"") + text + "\"";
  return out + "]";
}

std::string image_request(const std::string& model, const std::vector<std::string>& files,
                          const std::string& more = "") {
  std::vector<std::string> uris;
  for (const std::string& file : files) uris.push_back(data_uri(file));
  return R"({"model": ")" + model + R"(", "modality": "image", "input": )" + quoted_list(uris) + more + "}";
}

struct Form {
  std::string content_type, body;
};
/// A form as Node's FormData writes it; an image is a file named blob.
Form form_of(const std::vector<std::pair<std::string, std::string>>& fields) {
  const std::string boundary = "----formdata-undici-067329448156";
  Form out{"Content-Type: multipart/form-data; boundary=" + boundary, ""};
  for (const auto& [name, value] : fields) {
    out.body += "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"";
    if (name == "image") out.body += "; filename=\"blob\"\r\nContent-Type: application/octet-stream";
    out.body += "\r\n\r\n" + value + "\r\n";
  }
  out.body += "--" + boundary + "--\r\n";
  return out;
}

/// Images of several sizes.
std::vector<std::string> write_pictures(const TestFolder& folder, std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back(folder / ("p" + std::to_string(i) + ".ppm"));
    write_picture(out.back(), 20 + 7 * i, 40 + 3 * i, static_cast<unsigned>(i));
  }
  return out;
}

}  // namespace

TEST_CASE("serve: embeddings have the bits of vit embed, in every dialect and from many clients at once") {
  const TestFolder folder;
  const std::string model = clip_model(folder);
  const std::vector<std::string> files = write_pictures(folder, 6);
  std::vector<std::string> embed{"embed",  "--model", model, "--output", folder / "e.jsonl",
                                 "--text", "a cat"};
  embed.insert(embed.end(), files.begin(), files.end());
  REQUIRE(run_vit(embed).exit_code == 0);
  std::vector<std::vector<std::uint32_t>> images;
  std::vector<std::uint32_t> text;
  for (const Json& object : objects_of(folder / "e.jsonl")) {
    if (object.find("file")) images.push_back(bits_of(object.at("projected")));
    if (object.find("name")) text = bits_of(object.at("text"));
  }
  REQUIRE(images.size() == files.size());
  REQUIRE(!text.empty());
  const ServeProcess server({"--model", "clip=" + model});

  const HttpAnswer all = server.post("/v1/embeddings", image_request("clip", files));
  REQUIRE(all.status == 200);
  const Json body = all.json();
  CHECK(body.at("object").as_string() == "list");
  CHECK(body.at("model").as_string() == "clip");
  for (std::size_t i = 0; i < files.size(); ++i) {
    CHECK(body.at("data")[i].at("object").as_string() == "embedding");
    CHECK(body.at("data")[i].at("index").as_size() == i);
    CHECK(bits_of(body.at("data")[i].at("embedding")) == images[i]);
  }
  CHECK(body.at("usage").at("total_tokens").as_size() == body.at("usage").at("prompt_tokens").as_size());

  const Json mixed =
      server
          .post("/v1/embeddings", R"({"model": "clip", "input": [{"text": "a cat"}, {"image": ")" +
                                      data_uri(files[1]) + R"("}]})")
          .json();
  CHECK(bits_of(mixed.at("data")[0].at("embedding")) == text);
  CHECK(bits_of(mixed.at("data")[1].at("embedding")) == images[1]);
  const Json message =
      server
          .post("/v1/embeddings", R"({"messages": [{"role": "user", "content": [{"type": "image_url",
                                 "image_url": {"url": ")" +
                                      data_uri(files[2]) + R"("}}]}]})")
          .json();
  CHECK(bits_of(message.at("data")[0].at("embedding")) == images[2]);
  const Json encoded =
      server.post("/v1/embeddings", image_request("clip", {files[3]}, R"(, "encoding_format": "base64")"))
          .json();
  const std::string bytes = app::decode_base64(encoded.at("data")[0].at("embedding").as_string()).value();
  REQUIRE(bytes.size() == 4 * images[3].size());
  CHECK(std::memcmp(bytes.data(), images[3].data(), bytes.size()) == 0);
  const std::string weaviate =
      R"({"texts": ["a cat"], "images": [")" + app::encode_base64(read_text(files[4])) + R"("]})";
  const Json vectors = server.post("/vectorize", weaviate).json();
  CHECK(bits_of(vectors.at("textVectors")[0]) == bits_of_length_one(text));
  CHECK(bits_of(vectors.at("imageVectors")[0]) == bits_of_length_one(images[4]));

  std::vector<std::thread> clients;
  std::atomic<int> num_same{0};
  for (std::size_t c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      Client client(server.port());
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t which = (c + i) % files.size();
        client.send(http_request("POST", "/v1/embeddings", image_request("clip", {files[which]})));
        const HttpAnswer answer = client.read();
        if (answer.status == 200 && bits_of(answer.json().at("data")[0].at("embedding")) == images[which])
          ++num_same;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(num_same == 48);
  const std::string metrics = server.get("/metrics").body;
  CHECK(contains(metrics, "vit_requests_total{route=\"/v1/embeddings\",status=\"200\"} 52\n"));
  CHECK(contains(metrics, "vit_queue_depth 0\n"));
  CHECK(contains(metrics, "vit_images_total 58\n"));
}

TEST_CASE("serve: an answer does not depend on other requests at the same time") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 3);
  const ServeProcess server({"--model", "clip=" + clip_model(folder), "--model",
                             "vit=" + data_path("model").string(), "--threads", "2"});
  const std::vector<std::pair<std::string, std::string>> asked{
      {"/v1/embeddings", image_request("clip", {files[0]})},
      {"/v1/embeddings", image_request("vit", files)},
      {"/v1/embeddings", R"({"model": "clip", "input": ["a cat", "a dog"]})"},
      {"/v1/classify", image_request("clip", {files[1]}, R"(, "candidate_labels": ["a cat", "a dog"])")},
      {"/v1/classify", image_request("vit", {files[2]})},
      {"/page/look", R"({"model": "vit", "image": ")" + data_uri(files[0]) + R"("})"}};
  std::vector<std::string> expected;  // of a server that does nothing else
  for (const auto& [path, body] : asked) {
    const HttpAnswer answer = server.post(path, body);
    REQUIRE(answer.status == 200);
    expected.push_back(answer.body);
  }
  std::vector<std::thread> clients;
  std::atomic<std::size_t> num_same{0};
  constexpr std::size_t kClients = 8, kRounds = 4;
  for (std::size_t c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      Client client(server.port());
      for (std::size_t i = 0; i < kRounds * asked.size(); ++i) {
        const std::size_t which = (c + i) % asked.size();
        client.send(http_request("POST", asked[which].first, asked[which].second));
        if (client.read().body == expected[which]) ++num_same;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(num_same == kClients * kRounds * asked.size());
  CHECK(contains(server.get("/metrics").body, "vit_queue_depth 0\n"));
}

TEST_CASE("serve: classes are those of vit classify") {
  const TestFolder folder;
  const std::string model = clip_model(folder);
  const std::vector<std::string> files = write_pictures(folder, 1);
  const ServeProcess server({"--model", "clip=" + model, "--model", "vit=" + data_path("model").string()});
  const auto check = [&](const Json& served, const std::vector<std::string>& arguments) {
    const Json printed = parse_json(run_vit(arguments).out, "stdout").at("top");
    const Json labels = served.at("data")[0].at("labels");
    REQUIRE(labels.size() == printed.size());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      CHECK(labels[i].at("label").as_string() == printed[i].at("label").as_string());
      CHECK(labels[i].at("score").as_double() == printed[i].at("probability").as_double());
    }
  };
  check(server.post("/v1/classify", image_request("vit", files, R"(, "top_k": 3)")).json(),
        {"classify", "--format", "json", "--top", "3", files[0]});
  check(
      server
          .post("/v1/classify", image_request("clip", files, R"(, "candidate_labels": ["a cat", "a dog", "x"],
                    "template": "one {}.")"))
          .json(),
      {"classify", "--model", model, "--classes", "a cat,a dog,x", "--template", "one {}.", "--format",
       "json", files[0]});
  const auto refusal = [&](const std::string& name, const std::string& more) {
    const HttpAnswer answer = server.post("/v1/classify", image_request(name, files, more));
    return std::to_string(answer.status) + " " +
           std::string(answer.json().at("error").at("param").as_string());
  };
  CHECK(refusal("clip", "") == "400 candidate_labels");
  CHECK(refusal("vit", R"(, "candidate_labels": ["a"])") == "400 candidate_labels");
  CHECK(refusal("clip", R"(, "candidate_labels": ["a", "a"])") == "400 candidate_labels");
  CHECK(refusal("clip", R"(, "candidate_labels": ["a"], "template": "b")") == "400 template");
  CHECK(refusal("vit", R"(, "top_k": 0)") == "400 top_k");
}

TEST_CASE("serve: what immich's server sends") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 3);
  const ServeProcess server({"--model", "ViT-B-32__openai=" + clip_model(folder)});
  CHECK(server.get("/ping").body == "pong");
  CHECK(server.get("/").json().at("message").as_string() == "Immich ML");
  const auto predict = [&](const std::vector<std::pair<std::string, std::string>>& fields) {
    const Form form = form_of(fields);
    return server.post("/predict", form.body, {form.content_type});
  };
  const std::string visual = R"({"clip":{"visual":{"modelName":"ViT-B-32__openai"}}})";
  const std::string textual =
      R"({"clip":{"textual":{"modelName":"ViT-B-32__openai","options":{"language":"en"}}}})";
  const HttpAnswer image = predict({{"entries", visual}, {"image", read_text(files[2])}});
  REQUIRE(image.status == 200);
  CHECK(image.json().at("imageHeight").as_size() == 34);
  CHECK(image.json().at("imageWidth").as_size() == 46);
  const Json vector = parse_json(image.json().at("clip").as_string(), "clip");
  double length = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) length += vector[i].as_double() * vector[i].as_double();
  CHECK(length == doctest::Approx(1.0));
  const HttpAnswer text = predict({{"entries", textual}, {"text", "a  cat"}});
  CHECK(text.status == 200);
  CHECK(!text.json().find("imageHeight"));
  CHECK(text.body == predict({{"entries", textual}, {"text", " a cat "}}).body);

  CHECK(predict({{"entries", visual}}).status == 400);
  CHECK(predict({{"entries", visual}, {"text", "a"}}).status == 400);
  CHECK(predict({{"entries", "{"}, {"text", "a"}}).status == 422);
  CHECK(predict({{"entries", R"({"clip":{"visual":{}}})"}, {"image", "x"}}).status == 422);
  CHECK(predict({{"text", "a"}}).json().find("detail"));
  CHECK(predict({{"entries", R"({"clip":{"visual":{"modelName":"other"}}})"}, {"image", "x"}}).status == 404);
  CHECK(predict({{"entries", visual}, {"image", "no image"}}).status == 400);
  CHECK(predict({{"entries", R"({"ocr":{"detection":{"modelName":"x"}}})"}, {"image", "x"}}).status == 501);
  CHECK(server.post("/predict", "{}").status == 422);
}

TEST_CASE("serve: tasks of immich that are not CLIP go to the other server") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 1);
  const std::string model = clip_model(folder);
  const ServeProcess upstream({"--model", "faces=" + model});
  const ServeProcess server(
      {"--model", "a=" + model, "--immich-upstream", "http://127.0.0.1:" + std::to_string(upstream.port())});
  // the other server refuses every request; that a request came is what counts
  const Form form =
      form_of({{"entries", R"({"ocr":{"detection":{"modelName":"x","options":{"minScore":0.5}}}})"},
               {"image", read_text(files[0])}});
  const HttpAnswer answer = server.post("/predict", form.body, {form.content_type});
  CHECK(answer.status == 501);
  CHECK(contains(upstream.get("/metrics").body, "vit_requests_total{route=\"/predict\",status=\"501\"} 1\n"));
}

TEST_CASE("serve: keys, methods, paths and request ids") {
  const TestFolder folder;
  write_text(folder / "key", "secret\n");
  ServeProcess server(
      {"--model", "m=" + golden_model("rope-axial"), "--api-key-file", folder / "key", "--log", "json"});
  CHECK(server.get("/health").status == 200);
  const HttpAnswer refused = server.get("/v1/models");
  CHECK(refused.status == 401);
  CHECK(refused.json().at("error").at("code").as_string() == "invalid_api_key");
  CHECK(server.get("/v1/models", {"Authorization: Bearer secre"}).status == 401);
  CHECK(server.get("/v1/models", {"Authorization: bearer secret"}).status == 200);
  CHECK(server.get("/metrics").status == 401);
  CHECK(server.get("/metrics", {"X-Api-Key: secret"}).status == 200);
  const HttpAnswer method = server.get("/v1/embeddings", {"Authorization: Bearer secret"});
  CHECK(method.status == 405);
  CHECK(method.headers.at("allow") == "POST");
  CHECK(server.get("/nothing", {"Authorization: Bearer secret"}).status == 404);
  CHECK(server.get("http://test/v1/models?x=/health", {"Authorization: Bearer secret"}).status == 200);
  CHECK(server.post("/v1/embeddings", "{}", {"Authorization: Bearer secret", "Content-Encoding: gzip"})
            .status == 415);
  CHECK(server.get("/v1/models/m", {"Authorization: Bearer secret"}).json().at("id").as_string() == "m");
  CHECK(server.get("/v1/models/x", {"Authorization: Bearer secret"}).status == 404);
  CHECK(server.get("/health", {"X-Request-Id: abc-1"}).headers.at("x-request-id") == "abc-1");
  CHECK(server.get("/health", {"X-Request-Id: a b"}).headers.at("x-request-id") != "a b");
  Client client(server.port());
  client.send(http_request("HEAD", "/health"));
  const HttpAnswer head = client.read(std::chrono::seconds(10), false);
  CHECK(head.status == 200);
  CHECK(head.body.empty());
  CHECK(server.end() == 0);
  for (const std::string& line : lines_of(server.log())) {
    CAPTURE(line);
    CHECK(parse_json(line, "log").is_object());
  }
}

TEST_CASE("serve: pages of other servers may send requests only where allowed") {
  const ServeProcess server(
      {"--model", "m=" + golden_model("rope-axial"), "--allow-origin", "https://photos.example"});
  constexpr const char* kAllowed = "access-control-allow-origin";
  const auto asked_from = [&](const std::string& origin) {
    return server.get("/v1/models", {"Origin: " + origin});
  };
  CHECK(asked_from("https://photos.example").headers.at(kAllowed) == "https://photos.example");
  CHECK(!asked_from("https://photos.example.org").headers.contains(kAllowed));
  CHECK(!server.get("/v1/models").headers.contains(kAllowed));
  const auto preflight = [&](const std::string& origin) {
    Client client(server.port());
    client.send(http_request("OPTIONS", "/v1/embeddings", "",
                             {"Origin: " + origin, "Access-Control-Request-Method: POST"}));
    return client.read();
  };
  const HttpAnswer may = preflight("https://photos.example");
  CHECK(may.status == 204);
  CHECK(contains(may.headers.at("access-control-allow-headers"), "Authorization"));
  CHECK(preflight("https://b").status == 405);
  const HttpAnswer refused = server.post("/v1/embeddings", "{", {"Origin: https://photos.example"});
  CHECK(refused.status == 400);
  CHECK(refused.headers.contains(kAllowed));  // so that the page sees why
}

TEST_CASE("serve: a socket in the file system, several requests of one connection") {
  const TestFolder folder;
  ServeProcess server({"--model", "m=" + golden_model("rope-axial"), "--unix", folder / "s"},
                      {{"VIT_API_KEY", "k"}});
  Client client(folder / "s");
  for (int i = 0; i < 3; ++i) {
    client.send(http_request("GET", "/v1/models", "", {"Authorization: Bearer k"}));
    CHECK(client.read().status == 200);
  }
  client.send(http_request("GET", "/health") + http_request("GET", "/v1/models"));  // at once
  CHECK(client.read().status == 200);
  CHECK(client.read().status == 401);
  CHECK(server.end() == 0);
  CHECK(!std::filesystem::exists(folder / "s"));
}

TEST_CASE("serve: SIGTERM waits for the answers, and no longer") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 4);
  std::vector<std::string> many;
  for (std::size_t i = 0; i < 120 / kSlowness; ++i) many.push_back(files[i % files.size()]);
  ServeProcess server({"--model", "m=" + data_path("model").string(), "--log", "none", "--timeout", "600"});
  Client busy(server.port()), idle(server.port());
  busy.send(http_request("POST", "/v1/embeddings", image_request("m", many)));
  REQUIRE(server.await_metric("vit_queue_depth", [](std::size_t inputs) { return inputs > 0; }));
  ::kill(server.process(), SIGTERM);
  CHECK(idle.awaits_end());
  const HttpAnswer answer = busy.read(std::chrono::seconds(600));
  CHECK(answer.status == 200);
  CHECK(answer.headers.at("connection") == "close");
  CHECK(server.end() == 0);
}

TEST_CASE("serve: models that are idle are given back and come again") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 1);
  const ServeProcess server({"--model", "m=" + golden_model("rope-axial"), "--idle-unload", "1"});
  const std::string before = server.post("/v1/embeddings", image_request("m", files)).body;
  CHECK(server.await_metric("vit_models_loaded", [](std::size_t models) { return models == 0; }));
  CHECK(server.get("/v1/models").status == 200);
  CHECK(server.post("/v1/embeddings", image_request("m", files)).body == before);
}

TEST_CASE("serve: a model that was exchanged while it was not in memory is refused") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 1);
  const std::string place = folder / "model";
  const auto put = [&](const std::string& model) {
    std::filesystem::remove_all(place);
    std::filesystem::copy(golden_model(model), place, std::filesystem::copy_options::recursive);
  };
  put("rope-axial");
  const ServeProcess server({"--model", "m=" + place, "--idle-unload", "1"});
  const auto ask = [&] { return server.post("/v1/embeddings", image_request("m", files)); };
  const std::string before = ask().body;
  REQUIRE(server.await_metric("vit_models_loaded", [](std::size_t models) { return models == 0; }));
  put("rope-mixed");
  const HttpAnswer exchanged = ask();
  CHECK(exchanged.status == 503);
  CHECK(contains(exchanged.body, "start the server again"));
  CHECK(contains(server.get("/metrics").body, "vit_models_loaded 0\n"));
  put("rope-axial");
  CHECK(ask().body == before);
}

TEST_CASE("serve: the page for a browser, and what it requests") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 1);
  const ServeProcess server({"--model", "m=" + data_path("model").string()});
  const HttpAnswer page = server.get("/", {"Accept: text/html,application/xhtml+xml"});
  CHECK(page.headers.at("content-type") == "text/html; charset=utf-8");
  CHECK(contains(page.headers.at("content-security-policy"), "default-src 'none'"));
  CHECK(contains(page.body, "<title>vit serve</title>"));
  CHECK(!contains(page.body, "@SCRIPT@"));
  for (const char* const part : {"id=\"example\"", "id=\"no-image\"", "id=\"search-form\"", "id=\"failures\"",
                                 "value=\"depth\"", "value=\"segment\""})
    CHECK_MESSAGE(contains(page.body, part), part);
  const HttpAnswer models = server.get("/v1/models");
  const Json tasks = models.json().at("data")[0].at("tasks");  // no map, and no index
  for (std::size_t i = 0; i < tasks.size(); ++i) CHECK(tasks[i].as_string() == "paint");
  const Json look = server.post("/page/look", R"({"image": ")" + data_uri(files[0]) + R"("})").json();
  const std::size_t count = look.at("rows").as_size() * look.at("columns").as_size();
  CHECK(look.at("pca").size() == 3 * count);
  CHECK(look.at("attention").size() == count);
  const Json box = look.at("box");  // of 40 x 20 pixels the model sees the whole, or its middle
  REQUIRE(box.size() == 4);
  CHECK(box[0].as_double() + box[2].as_double() == doctest::Approx(look.at("imageWidth").as_double()));
  CHECK(box[1].as_double() + box[3].as_double() == doctest::Approx(look.at("imageHeight").as_double()));
}

TEST_CASE("serve: nearest images of an index, for the model that made it") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 4);
  const std::string model = golden_model("rope-axial");
  std::vector<std::string> index{"index", "--model", model, "--output", folder / "i"};
  index.insert(index.end(), files.begin(), files.end());
  if (run_vit(index).exit_code != 0) {
    MESSAGE("built without FAISS");
    return;
  }
  const ServeProcess server(
      {"--model", "other=" + data_path("model").string(), "--model", "m=" + model, "--index", folder / "i"});
  const auto results = [&](const std::string& name) {
    return server
        .post("/page/nearest", R"({"model": ")" + name + R"(", "image": ")" + data_uri(files[2]) + R"("})")
        .json()
        .at("results");
  };
  const Json found = results("m");
  REQUIRE(found.size() == 4);
  CHECK(found[0].at("file").as_string() == files[2]);
  CHECK(found[0].at("score").as_double() == doctest::Approx(1.0));
  CHECK(results("other").size() == 0);
  // of a page whose name was made to lead here; http_request() calls the server localhost
  for (const char* const path : {"/page/picture/0", "/page/picture/9"}) {
    Client client(server.port());
    client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    CHECK(client.read().status == 421);
  }
  const RunResult mismatch = run_vit({"serve", "--port", "0", "--log", "none", "--index", folder / "i"});
  CHECK(mismatch.exit_code == 1);
  CHECK(run_vit({"serve", "--check", "--index", folder / "i"}).exit_code == 1);
  CHECK(run_vit({"serve", "--check", "--model", model, "--index", folder / "i"}).exit_code == 0);
}

TEST_CASE("serve: the page finds images of an index by words") {
  const TestFolder folder;
  const std::vector<std::string> files = write_pictures(folder, 3);
  const std::string model = clip_model(folder);
  std::vector<std::string> index{"index", "--model", model, "--output", folder / "i"};
  index.insert(index.end(), files.begin(), files.end());
  if (run_vit(index).exit_code != 0) {
    MESSAGE("built without FAISS");
    return;
  }
  const ServeProcess server({"--model", "m=" + model, "--index", folder / "i"});
  CHECK(server.get("/v1/models").json().at("data")[0].at("tasks")[0].as_string() == "search");
  const Json found =
      server.post("/page/nearest", R"({"model": "m", "text": "a cat", "top": 2})").json().at("results");
  REQUIRE(found.size() == 2);
  CHECK(found[0].at("score").as_double() >= found[1].at("score").as_double());
  const Json searched = server.post("/v1/search", R"({"model": "m", "text": ["a cat"], "top": 2})").json();
  CHECK(searched.at("data")[0].at("results")[0].at("file").as_string() == found[0].at("file").as_string());
  CHECK(server.post("/page/nearest", R"({"model": "m"})").status == 400);
  CHECK(
      server.post("/page/nearest", R"({"model": "m", "text": "a", "image": ")" + data_uri(files[0]) + R"("})")
          .status == 400);
}

TEST_CASE("serve: wrong usage, and models that cannot be served") {
  const TestFolder folder;
  const std::string model = "m=" + golden_model("rope-axial");
  CHECK(run_vit({"serve", "--check", "--model", model}).exit_code == 0);
  const RunResult twice = run_vit({"serve", "--check", "--model", model, "--model", model});
  CHECK(twice.exit_code == 2);
  CHECK(contains(twice.err, "'m'"));
  CHECK(run_vit({"serve", "--check", "--model", folder / "none"}).exit_code == 1);
  CHECK(run_vit({"serve", "--immich-upstream", "https://a", "--model", model}).exit_code == 2);
  CHECK(run_vit({"serve", "--port", "70000"}).exit_code == 2);
  CHECK(run_vit({"serve", "--check", "--model", model, "--host", "no such host"}).exit_code == 1);
  const RunResult origin = run_vit({"serve", "--allow-origin", "photos.example"});
  CHECK(origin.exit_code == 2);
  CHECK(origin.err.starts_with("vit: --allow-origin: expected"));
  write_text(folder / "file", "x");
  for (const std::string& socket : {folder / "none/s", folder / "file", folder / std::string(200, 's')}) {
    CAPTURE(socket);
    const RunResult refused = run_vit({"serve", "--check", "--model", model, "--unix", socket});
    CHECK(refused.exit_code == 1);
    CHECK(contains(refused.err, socket));
  }
  CHECK(run_vit({"serve", "--check", "--model", model, "--api-key-file", folder / "none"}).exit_code == 1);
  // found out while it already listens
  std::filesystem::copy(golden_model("rope-axial"), folder / "damaged",
                        std::filesystem::copy_options::recursive);
  std::filesystem::resize_file(folder / "damaged/model.safetensors", 1000);
  const RunResult damaged = run_vit({"serve", "--port", "0", "--log", "none", "--model", folder / "damaged"});
  CHECK(damaged.exit_code == 1);
  CHECK(contains(damaged.err, "model.safetensors"));
  const ServeProcess server({"--model", model});
  const RunResult taken = run_vit({"serve", "--model", model, "--port", std::to_string(server.port())});
  CHECK(taken.exit_code == 1);
  CHECK(contains(taken.err, std::to_string(server.port())));
}

TEST_CASE("serve: embeddings in the dialects of other servers have the same numbers") {
  const TestFolder folder;
  const std::string model = clip_model(folder);
  const std::vector<std::string> files = write_pictures(folder, 1);
  const ServeProcess server({"--model", "clip=" + model});
  const Json plain = server.post("/v1/embeddings", R"({"input": ["a cat"]})").json();
  const std::vector<std::uint32_t> text = bits_of(plain.at("data")[0].at("embedding"));
  const std::vector<std::uint32_t> image = bits_of(
      server.post("/v1/embeddings", image_request("clip", files)).json().at("data")[0].at("embedding"));
  const auto post = [&](const std::string& path, const std::string& body) {
    const HttpAnswer answer = server.post(path, body);
    CAPTURE(path);
    CAPTURE(answer.body);
    REQUIRE(answer.status == 200);
    return answer.json();
  };
  SUBCASE("other paths and harmless fields") {
    const std::string body =
        R"({"input": "a cat", "truncate": "END", "input_type": "query", "task": "retrieval", "normalize": true})";
    for (const char* const path : {"/embeddings", "/v1/embeddings/"})
      CHECK(bits_of(post(path, body).at("data")[0].at("embedding")) == bits_of_length_one(text));
    CHECK(server.post("/v1/embeddings", R"({"input": "a", "normalize": true, "normalized": false})").status ==
          400);
  }
  SUBCASE("text-embeddings-inference") {
    CHECK(bits_of(post("/embed", R"({"inputs": "a cat"})")[0]) == bits_of_length_one(text));
    CHECK(bits_of(post("/embed", R"({"inputs": ["a cat"], "normalize": false})")[0]) == text);
  }
  SUBCASE("ollama") {
    const Json answer = post("/api/embed", R"({"model": "clip", "input": ["a cat"], "keep_alive": "5m"})");
    CHECK(answer.at("model").as_string() == "clip");
    CHECK(bits_of(answer.at("embeddings")[0]) == bits_of_length_one(text));
  }
  SUBCASE("infinity and img2vec-neural") {
    const std::string uri = data_uri(files[0]);
    CHECK(bits_of(post("/embeddings_image", R"({"model": "clip", "input": [")" + uri + R"("]})")
                      .at("data")[0]
                      .at("embedding")) == image);
    const Json answer = post("/vectors", R"({"id": "7", "image": ")" + uri + R"("})");
    CHECK(answer.at("id").as_string() == "7");
    CHECK(answer.at("dim").as_size() == image.size());
    CHECK(bits_of(answer.at("vector")) == image);
  }
  SUBCASE("the Open Inference Protocol") {
    const std::string path = "/v2/models/clip";
    CHECK(server.get("/v2/health/ready").status == 200);
    CHECK(server.get(path).json().at("outputs")[0].at("name").as_string() == "embedding");
    const auto infer = [&](const std::string& input) {
      return server.post(path + "/infer", R"({"id": "1", "inputs": [)" + input + "]}");
    };
    const Json texts =
        infer(R"({"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a cat"]})").json();
    CHECK(texts.at("id").as_string() == "1");
    CHECK(bits_of(texts.at("outputs")[0].at("data")) == text);
    const Json images = infer(R"({"name": "image", "shape": [1], "datatype": "BYTES", "data": [")" +
                              data_uri(files[0]) + R"("]})")
                            .json();
    CHECK(bits_of(images.at("outputs")[0].at("data")) == image);
    for (const char* const wrong :
         {R"({"name": "pixels", "shape": [1, 3, 2, 2], "datatype": "FP32", "data": [1, 2]})",
          R"({"name": "pixels", "shape": [0], "datatype": "FP32", "data": []})",
          R"({"name": "pixels", "shape": [1, 3, 8, 8], "datatype": "INT64", "data": []})",
          R"({"name": "text"})", "7"})
      CHECK(infer(wrong).status == 400);
    CHECK(server.post("/v2/models/other/infer", R"({"inputs": []})").status == 404);
  }
  SUBCASE("a line for each input") {
    const std::string body = R"({"modality": "image", "input": [")" + data_uri(files[0]) + R"(", "AAAA"]})";
    const HttpAnswer answer = server.post("/v1/embeddings", body,
                                          {"Content-Type: application/json", "Accept: application/x-ndjson"});
    CHECK(answer.headers.at("content-type") == "application/x-ndjson");
    const std::vector<std::string> lines = lines_of(answer.body);
    REQUIRE(lines.size() == 2);
    CHECK(bits_of(parse_json(lines[0], "line").at("embedding")) == image);
    CHECK(parse_json(lines[1], "line").at("error").at("message").is_string());
  }
  SUBCASE("texts that are cut") {
    std::string words;
    for (int i = 0; i < 200; ++i) words += "cat ";
    const HttpAnswer cut = server.post("/v1/embeddings", "{\"input\": \"" + words + "\"}");
    CHECK(cut.headers.at("x-vit-truncated") == "1");
    CHECK(server.post("/v1/embeddings", "{\"truncate\": false, \"input\": \"" + words + "\"}").status == 400);
  }
  SUBCASE("the description of all routes") {
    const Json paths = server.get("/openapi.json").json().at("paths");
    for (const char* const path : {"/v1/embeddings", "/embed", "/v2/models/{name}", "/predict"})
      CHECK(paths.find(path).has_value());
  }
}
