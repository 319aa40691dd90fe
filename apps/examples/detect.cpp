// Finds words in an image.  detect MODEL IMAGE WORD...
#include <cstdio>
#include <string>
#include <vector>

#include "vit/vit.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: detect MODEL IMAGE WORD...\n");
    return 2;
  }
  try {
    const std::vector<std::string> words(argv + 3, argv + argc);
    const auto detector = vit::Detector::of_texts(vit::ImageAndText::load(argv[1]), words);
    for (const vit::Detection& found : detector.detect(argv[2]))
      std::printf("%6.2f %%  %7.1f %7.1f %7.1f %7.1f  %s\n", 100.0 * static_cast<double>(found.score),
                  found.box.x0, found.box.y0, found.box.x1, found.box.y1, found.label.c_str());
  } catch (const vit::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
