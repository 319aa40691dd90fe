// Prompts in a build without them: the options remain in --help, and refuse to run.
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/rings/dense/prompt_options.h"
#include "apps/vit/rings/rings.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

[[noreturn]] void refuse_prompts() {
  fail(Where("prompts", ErrorKind::unsupported),
       "this program was built without prompts: they need -DVIT_RING_PROMPTS=ON when it is built");
}

}  // namespace

int segment_prompts(const PromptJob& /*job*/) {
  refuse_prompts();
}

bool is_prompt_model(const CommonOptions& /*common*/) {
  return false;
}

int bench_prompts(const CommonOptions& /*common*/, const PromptBench& /*options*/) {
  refuse_prompts();
}

int detect_prompts(const PromptJob& /*job*/) {
  refuse_prompts();
}

}  // namespace vit::app
