// The list of targets.
#include "tests/fuzz/fuzz_targets.h"

#include "tests/fuzz/fuzz_configs.h"
#include "tests/fuzz/fuzz_decode.h"
#include "tests/fuzz/fuzz_json.h"
#include "tests/fuzz/fuzz_tar.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/fuzz/fuzz_weights.h"

namespace vit::fuzz {

std::span<const Target> targets() {
  static constexpr Target kTargets[] = {
      {"json", run_json, json_seeds},
      {"safetensors", run_safetensors, safetensors_seeds},
      {"safetensors_header", run_safetensors_header, safetensors_header_seeds},
      {"pickle", run_pickle, pickle_seeds},
      {"pickle_program", run_pickle_program, pickle_program_seeds},
      {"timm_config", run_timm_config, timm_config_seeds},
      {"hf_config", run_hf_config, hf_config_seeds},
      {"open_clip_config", run_open_clip_config, open_clip_config_seeds},
      {"layout", run_layout, layout_seeds},
      {"timm_preprocess", run_timm_preprocess, timm_config_seeds},
      {"hf_preprocess", run_hf_preprocess, hf_preprocess_seeds},
      {"decode", run_decode, decode_seeds},
      {"decode_rows", run_decode_rows, decode_seeds},
      {"tokenizer_json", run_tokenizer_json, tokenizer_json_seeds},
      {"sentencepiece", run_sentencepiece, sentencepiece_seeds},
      {"merges", run_merges, merges_seeds},
      {"clean", run_clean, clean_seeds},
#ifdef VIT_FUZZ_TAR
      {"tar", run_tar, tar_seeds},
#endif
  };
  return kTargets;
}

}  // namespace vit::fuzz
