#include "apps/vit/run/sandbox.h"
#include "vit/base/check.h"

namespace vit::app {

void enter_sandbox(const SandboxRules& /*rules*/) {
  fail(Where{"sandbox", ErrorKind::unsupported},
       "vit was built without it: on Linux it needs libseccomp (Debian: libseccomp-dev)");
}

}  // namespace vit::app
