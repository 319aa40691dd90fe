#include "apps/vit/rings/without/absent.h"

namespace vit::app {
namespace {

constexpr const char* kServeRequirement =
    "it needs -DVIT_SERVE=ON when it is built, and Boost.Beast (Debian: libboost-dev)";

}  // namespace

Command serve_command() {
  return absent_command("serve", "Answer programs over HTTP: OpenAI's embeddings, immich, Weaviate, browsers",
                        kServeRequirement);
}

int bench_server(const CommonOptions& /*common*/, const ServerBench& /*options*/) {
  fail_absent("bench --serve", kServeRequirement);
}

}  // namespace vit::app
