// One Classifier for the classes of a model, of a fitted head and of texts.
#include "vit/classifier.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/shared_data.h"
#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/image/image.h"

namespace vit {
namespace {

std::shared_ptr<const Model> tiny_model() {
  return Model::load(test::data_path("golden/models/rope-axial"));
}

Image picture(unsigned char seed) {
  Image image(40, 52);
  for (std::size_t i = 0; i < 3 * 40 * 52; ++i)
    image.data()[i] = static_cast<unsigned char>((i * 31 + seed * 101) % 251);
  return image;
}

/// A head whose class k is the mean of the features of one image.
ClassifierHead fitted_head(const Model& model, Session& session) {
  Outputs outputs;
  Tensor<float> features(Shape{2, model.config().embed_dim});
  for (std::size_t i = 0; i < 2; ++i) {
    const Image image = picture(static_cast<unsigned char>(i));
    session.run(image, Output::pooled, outputs);
    std::ranges::copy(outputs[0].pooled(), features.view().row(i));
  }
  for (std::size_t i = 0; i < 2; ++i) normalize_vector({features.view().row(i), features.dim(1)});
  ClassifierHead head;
  head.method = FitMethod::knn;
  head.vectors = std::move(features);
  head.classes = {0, 1};
  head.neighbors = 1;
  head.labels = {"first", "second"};
  head.attach(model, Output::pooled);
  return head;
}

}  // namespace

TEST_CASE("classifier: the classes of a model") {
  const auto model = tiny_model();
  const Classifier classifier = Classifier::of_model(model);
  Session session(model, {.threads = 1});
  const Image image = picture(3);
  Outputs outputs;
  session.run(image, classifier.request(), outputs);
  REQUIRE(classifier.size() == model->config().head.num_classes);
  CHECK(classifier.labels()[1] == model->label(1));

  SUBCASE("values are the logits") {
    std::vector<float> values(classifier.size());
    classifier.values(outputs[0], values);
    CHECK(std::ranges::equal(values, outputs[0].logits()));
    values.pop_back();
    CHECK_ERROR(ErrorKind::argument, ("room for"), classifier.values(outputs[0], values));
  }
  SUBCASE("with a session and without one") {
    const std::vector<Prediction> kept = classifier.classify(session, image, 2),
                                  fresh = classifier.classify(image, 2);
    REQUIRE(kept.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) CHECK(kept[i].logit == fresh[i].logit);
  }
  SUBCASE("thresholds") {
    std::vector<float> thresholds(classifier.size(), 0.0f);
    CHECK(classifier.predict(outputs[0], ClassSelection::above(thresholds)).size() == classifier.size());
    thresholds[0] = std::numeric_limits<float>::infinity();
    CHECK(classifier.predict(outputs[0], ClassSelection::above(thresholds)).size() == classifier.size() - 1);
  }
  SUBCASE("another activation") {
    ClassSelection selection(1);
    selection.activation = ClassActivation::sigmoid;
    const Prediction best = classifier.predict(outputs[0], selection).front();
    CHECK(best.probability == doctest::Approx(1.0 / (1.0 + std::exp(-static_cast<double>(best.logit)))));
  }
  SUBCASE("other names") {
    std::vector<std::string> names(classifier.size(), "x");
    CHECK(classifier.with_labels(names).predict(outputs[0], 1).front().label == "x");
    names.pop_back();
    CHECK_ERROR(ErrorKind::argument, ("labels"), static_cast<void>(classifier.with_labels(names)));
  }
  SUBCASE("threads share it") {
    const std::vector<Prediction> expected = classifier.classify(session, image, 3);
    std::vector<int> same(4);
    std::vector<std::thread> threads;
    for (int& found : same) {
      threads.emplace_back([&] {
        Session own(model, {.threads = 1});
        found = classifier.classify(own, image, 3).front().logit == expected.front().logit;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(std::ranges::count(same, 1) == 4);
  }
  SUBCASE("a session over another model") {
    Session other(tiny_model());
    CHECK_ERROR(ErrorKind::argument, ("different models"),
                static_cast<void>(classifier.classify(other, image)));
  }
}

TEST_CASE("classifier: those of a fitted head, and of no other model") {
  const auto model = tiny_model();
  Session session(model, {.threads = 1});
  const Classifier classifier = Classifier::of_head(model, fitted_head(*model, session));
  CHECK(classifier.activation() == ClassActivation::softmax);
  const Image first = picture(0), second = picture(1);
  CHECK(classifier.classify(session, first, 1).front().label == "first");
  CHECK(classifier.classify(session, second, 1).front().label == "second");
  const auto other = Model::load(test::data_path("golden/models/timm-vit"));
  CHECK_ERROR(ErrorKind::mismatch, ("fitted on features of"),
              static_cast<void>(Classifier::of_head(other, fitted_head(*model, session))));
}

TEST_CASE("classifier: a model without classes is an Error, and so is none") {
  CHECK_ERROR(ErrorKind::mismatch, ("has no classifier"),
              Classifier(test::data_path("golden/models/hf-dinov3")));
  CHECK_ERROR(ErrorKind::argument, ("no model"), static_cast<void>(Classifier::of_model(nullptr)));
}

TEST_CASE("classifier: texts, of a file in one call") {
  const ImageAndText towers = ImageAndText::load(test::data_path("golden/text/openclip-siglip"));
  const Classifier classifier = Classifier::of_texts(towers, {"a cat", "a dog"});
  CHECK(classifier.activation() == ClassActivation::sigmoid);
  REQUIRE(classifier.class_vectors() != nullptr);
  const std::vector<Prediction> top = classifier.classify(test::data_path("images/cat_tabby.jpg"));
  REQUIRE(top.size() == 2);
  CHECK(top[0].logit >= top[1].logit);

  const Classifier kept =
      Classifier::of_texts(towers.image,
                           {classifier.class_vectors()->names,
                            [&] {
                              Tensor<float> vectors(classifier.class_vectors()->vectors.shape());
                              std::ranges::copy(classifier.class_vectors()->vectors.flat(), vectors.data());
                              return vectors;
                            }()},
                           vit::Checkpoint(test::data_path("golden/text/openclip-siglip")).text_score());
  CHECK(kept.classify(test::data_path("images/cat_tabby.jpg")).front().logit ==
        doctest::Approx(top[0].logit));
  CHECK_ERROR(ErrorKind::argument, ("twice"), static_cast<void>(Classifier::of_texts(towers, {"a", "a"})));
  CHECK_ERROR(ErrorKind::mismatch, ("no text tower"),
              static_cast<void>(vit::Checkpoint(test::data_path("golden/models/rope-axial")).text_score()));
}

}  // namespace vit
