// Replacement for builds without banks: no file is one.
#include "apps/vit/rings/serve/work/anomaly_bank.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void fail_without_banks() {
  fail(Where{"serve", ErrorKind::unsupported},
       "this vit was built without banks: they need -DVIT_RING_ANOMALY=ON when it is built");
}

}  // namespace

struct AnomalyBank::Parts {};

AnomalyBank::AnomalyBank(const std::filesystem::path& /*file*/, CommonOptions& /*common*/) {
  fail_without_banks();
}
AnomalyBank::~AnomalyBank() = default;

bool AnomalyBank::is_bank(const std::filesystem::path& /*file*/) {
  return false;
}

std::shared_ptr<OutputTask> AnomalyBank::task(const Preprocessor& /*preprocessor*/,
                                              const AnomalyAsked& /*asked*/) const {
  fail_without_banks();
}

}  // namespace vit::app
