// Views of temporaries, one for each value of VIT_CASE; none of them may compile. Case 0 is the same with
// objects that live on, and compiles.
#include <span>

#include "vit/vit.h"

namespace {

using namespace vit;

Outputs forward();
BatchOutputs run();
FeatureExtractor open_model();

[[maybe_unused]] void use(Session& session) {
  const ImageView view;
  const Request request{Output::tokens};
#if VIT_CASE == 0
  FeatureExtractor extractor = open_model();
  static_cast<void>(extractor.extract(view).patches());
  const Outputs outputs = forward();
  static_cast<void>(outputs[0].patches());
  const BatchOutputs results = session.run(std::span(&view, 1), request);
  static_cast<void>(results[0].class_token());
  const Image image = session.decode("photo.jpg");
  static_cast<void>(image.view());
#elif VIT_CASE == 1
  static_cast<void>(open_model().extract(view));
#elif VIT_CASE == 2
  static_cast<void>(open_model().extract("photo.jpg"));
#elif VIT_CASE == 3
  static_cast<void>(forward()[0].patches());
#elif VIT_CASE == 4
  static_cast<void>(session.run(std::span(&view, 1), request)[0].class_token());
#elif VIT_CASE == 5
  static_cast<void>(session.decode("photo.jpg").view());
#endif
}

}  // namespace
