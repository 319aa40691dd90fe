// Names what a picture shows.  classify MODEL PICTURE
#include <cstdio>

#include "vit/vit.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL PICTURE\n");
    return 2;
  }
  try {
    vit::Classifier classifier(argv[1]);
    const vit::DecodeOptions as_the_model_wants = classifier.session().preprocessor().decode_options();
    for (const vit::Prediction& prediction :
         classifier.classify(vit::decode_file(argv[2], as_the_model_wants))) {
      std::printf("%6.2f %%  %s\n", 100.0 * static_cast<double>(prediction.probability),
                  prediction.label.c_str());
    }
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
