// Classes of pixels that are painted on the page: those of vit fit and vit segment.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/rings/serve/work/kept_values.h"
#include "tests/apps/rings/serve/server.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"
#include "vit/pixels.h"

TEST_SUITE_BEGIN("serve");

using namespace vit;
using namespace vit::internal;
using namespace vit::test;

namespace {

struct Number : app::KeptValue {
  explicit Number(int given) : value(given) {}
  std::size_t bytes() const override { return 40; }
  int value;
};
struct Other : app::KeptValue {
  std::size_t bytes() const override { return 0; }
};

std::string model_path() {
  return data_path("model").string();
}

std::string quoted(const std::string& name, const std::string& value) {
  return "\"" + name + "\": \"" + value + "\"";
}

std::string image_request(const std::string& file) {
  return "{" + quoted("image", data_uri(file)) + "}";
}

/// Strokes in the upper left and in the middle of a picture of 40 x 32 pixels.
constexpr const char* kRuns = "[0, 12, 0, 40, 52, 0, 655, 665, 1, 695, 705, 1]";

std::string paint_request(const std::string& key, const std::string& more = "",
                          const std::string& runs = kRuns) {
  return R"({"images": [{)" + quoted("key", key) + R"(, "runs": )" + runs + "}]" + more + "}";
}

Json json_of(const HttpAnswer& answer) {
  CAPTURE(answer.body.substr(0, 300));
  REQUIRE(answer.status == 200);
  return answer.json();
}

std::vector<std::int32_t> classes_of(const Json& answer) {
  const Json runs = answer.at("runs");
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < runs.size(); i += 2)
    out.insert(out.end(), runs[i].as_size(), static_cast<std::int32_t>(runs[i + 1].as_size()));
  return out;
}

}  // namespace

TEST_CASE("serve: what is kept for later requests is bounded, and only found by its key") {
  app::KeptValues kept(100);
  const std::string first = kept.add(std::make_shared<const Number>(1));
  const std::string second = kept.add(std::make_shared<const Number>(2));
  CHECK(first.size() == 32);
  CHECK(first != second);
  CHECK(kept.find<Number>(first)->value == 1);
  CHECK(kept.find<Other>(first) == nullptr);
  CHECK(kept.find<Number>("") == nullptr);
  kept.add(std::make_shared<const Number>(3));  // the second was not used for the longest time
  CHECK(kept.find<Number>(second) == nullptr);
  CHECK(kept.find<Number>(first)->value == 1);
  CHECK(kept.bytes() == 80);
}

TEST_CASE("serve: painted classes are those of the head that is saved, and of vit segment") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 32, 40, 5);
  const ServeProcess server({"--model", model_path()});
  const Json image = json_of(server.post("/page/paint/image", image_request(file)));
  CHECK(image.at("width").as_size() == 40);
  CHECK(image.at("height").as_size() == 32);
  CHECK(app::decode_base64(image.at("picture").as_string())->starts_with("RIFF"));
  const std::string key(image.at("key").as_string());
  for (const std::string way : {"bilinear", "guided"}) {
    const std::string upsample = ", " + quoted("upsample", way);
    const Json answer = json_of(server.post("/page/paint", paint_request(key, upsample)));
    const std::vector<std::int32_t> found = classes_of(answer);
    REQUIRE(found.size() == 40 * 32);
    CHECK(found[3] == 0);
    CHECK(found[660] == 1);
    CHECK(answer.at("rows").as_size() > 1);
    const Json saved = json_of(
        server.post("/page/paint/head", paint_request(key, upsample + R"(, "labels": ["rest", "leaf"])")));
    const std::string head =
        folder.write("head.safetensors", app::decode_base64(saved.at("head").as_string()).value()).string();
    CHECK(to_string(PixelHead::load(head).options.upsampling) == way);
    // the head names its model: no --model is needed
    REQUIRE(run_vit({"segment", "--classifier", head, file, "--output", folder / "s.npz"}).exit_code == 0);
    const NpyArray array = read_npz(folder / "s.npz").at("segmentation.0");
    std::vector<std::int32_t> expected(array.bytes.size() / sizeof(std::int32_t));
    std::memcpy(expected.data(), array.bytes.data(), array.bytes.size());
    REQUIRE(expected.size() == found.size());
    std::size_t num_different = 0;
    for (std::size_t i = 0; i < found.size(); ++i) num_different += found[i] != expected[i];
    CHECK(num_different <= 4);  // the head is at the optimum, the mask of painting near it
  }
}

TEST_CASE("serve: three classes of two images, and of pictures that are shrunk") {
  const TestFolder folder;
  const std::string small = folder / "a.ppm", large = folder / "b.ppm";
  write_picture(small, 32, 40, 5);
  write_picture(large, 400, 1500, 6);
  const ServeProcess server({"--model", model_path()});
  const std::string a(json_of(server.post("/page/paint/image", image_request(small))).at("key").as_string());
  const Json image = json_of(server.post("/page/paint/image", image_request(large)));
  CHECK(image.at("width").as_size() == 1500);
  const std::string b(image.at("key").as_string());
  const std::string body = R"({"classes": 3, "shown": 1, "images": [{)" + quoted("key", a) + R"(, "runs": )" +
                           kRuns + "}, {" + quoted("key", b) + R"(, "runs": [10000, 10040, 2]}]})";
  const std::vector<std::int32_t> found = classes_of(json_of(server.post("/page/paint", body)));
  CHECK(found.size() == 1024 * 273);  // 1500 x 400 with its longer edge 1024
  CHECK(found[10020] == 2);
}

TEST_CASE("serve: what cannot be painted is named") {
  const TestFolder folder;
  const std::string file = folder / "a.ppm";
  write_picture(file, 32, 40, 5);
  const ServeProcess server({"--model", model_path()});
  const std::string key(json_of(server.post("/page/paint/image", image_request(file))).at("key").as_string());
  const auto refusal = [&](const std::string& body) {
    const HttpAnswer answer = server.post("/page/paint", body);
    return std::to_string(answer.status) + " " +
           std::string(answer.json().at("error").at("message").as_string());
  };
  CHECK(contains(refusal(paint_request("0123")), "404 the features of this image are no longer kept"));
  CHECK(server.post("/page/paint", paint_request("0123")).json().at("error").at("code").as_string() ==
        "forgotten");
  CHECK(contains(refusal(paint_request(key, "", "[]")), "no pixel is labeled"));
  CHECK(contains(refusal(paint_request(key, "", "[0, 5, 0]")), "of one class"));
  CHECK(contains(refusal(paint_request(key, "", "[0, 5, 2]")), "400"));
  CHECK(contains(refusal(paint_request(key, "", "[5, 4, 1]")), "400"));
  CHECK(contains(refusal(paint_request(key, "", "[0, 1281, 1]")), "400"));
  CHECK(contains(refusal(paint_request(key, "", "[0, 5]")), "begin, end, class"));
  CHECK(contains(refusal(paint_request(key, R"(, "classes": 65)")), "classes"));
  CHECK(contains(refusal(paint_request(key, R"(, "upsample": "best")")), "upsample must be one of"));
  CHECK(contains(refusal(R"({"images": []})"), "images must be a list of 1 to 16"));
  CHECK(server.post("/page/paint/head", paint_request(key, R"(, "labels": ["a"])")).status == 400);
  CHECK(server.post("/page/paint/image", R"({"image": "AAAA"})").status == 400);
  CHECK(server.post("/page/paint/image", "{}").status == 400);
}

TEST_SUITE_END();
