#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kIndexRequirement = "it needs -DVIT_RING_INDEX=ON when it is built";

}  // namespace

Command index_command() {
  return absent_command("index", "Embed images into an index for search and duplicates", kIndexRequirement);
}
Command search_command() {
  return absent_command("search", "Find the images of an index that are most similar to others, or to texts",
                        kIndexRequirement);
}
Command duplicates_command() {
  return absent_command("duplicates", "Find groups of similar images; deletes nothing", kIndexRequirement);
}

}  // namespace vit::app
