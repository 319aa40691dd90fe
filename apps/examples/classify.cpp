// Classifies an image.  classify MODEL IMAGE
#include <cstdio>

#include "vit/vit.h"

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: classify MODEL IMAGE\n");
    return 2;
  }
  try {
    vit::Classifier classifier(argv[1]);
    for (const vit::Prediction& prediction : classifier.classify(argv[2])) {
      std::printf("%6.2f %%  %s\n", 100.0 * static_cast<double>(prediction.probability),
                  prediction.label.c_str());
    }
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
