#include "apps/vit/ground/sandbox.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_sandbox() {
  fail(Where{"sandbox", ErrorKind::unsupported},
       "--sandbox: vit was built without it: on Linux it needs libseccomp (Debian: libseccomp-dev)");
}

}  // namespace

struct Confinement::Parts {};

Confinement::Confinement() {
  fail_without_sandbox();
}
Confinement::~Confinement() = default;

void Confinement::enter(const SandboxRules& /*rules*/) const {}

void enter_sandbox(const SandboxRules& /*rules*/) {
  fail_without_sandbox();
}

}  // namespace vit::app
