// The list of targets.
#include "tests/fuzz/fuzz_targets.h"

#include "tests/fuzz/fuzz_configs.h"
#include "tests/fuzz/fuzz_decode.h"
#include "tests/fuzz/fuzz_dense.h"
#include "tests/fuzz/fuzz_json.h"
#include "tests/fuzz/fuzz_model.h"
#include "tests/fuzz/fuzz_pixels.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzz_rope.h"
#include "tests/fuzz/fuzz_serve.h"
#include "tests/fuzz/fuzz_tar.h"
#include "tests/fuzz/fuzz_text.h"
#include "tests/fuzz/fuzz_weights.h"

namespace vit::fuzz {

bool is_fit_for_a_line(std::string_view message) {
  constexpr std::size_t kMaxBytes = 20'000;
  return message.find('\n') == message.npos && message.size() < kMaxBytes;
}

std::span<const Target> targets() {
  static const Target kTargets[] = {
      {"json", run_json, json_seeds},
      {"safetensors", run_safetensors, safetensors_seeds},
      {"safetensors_header", run_safetensors_header, safetensors_header_seeds},
      {"shards", run_shards, shards_seeds},
      {"pickle", run_pickle, pickle_seeds},
      {"pickle_program", run_pickle_program, pickle_program_seeds},
      {"npz", run_npz, npz_seeds},
      {"head", run_head, head_seeds},
      {"head_facts", run_head_facts, head_facts_seeds},
      {"bank", run_bank, bank_seeds},
      {"bank_facts", run_bank_facts, bank_facts_seeds},
      {"class_vectors", run_class_vectors, class_vectors_seeds},
      {"timm_config", run_timm_config, timm_config_seeds},
      {"hf_config", run_hf_config, hf_config_seeds},
      {"box_config", run_box_config, box_config_seeds},
      {"open_clip_config", run_open_clip_config, open_clip_config_seeds},
      {"model_folder", run_model_folder, model_folder_seeds},
      {"model_bytes", run_model_bytes, model_bytes_seeds, kModelStructure},
      {"tensor_names", run_tensor_names, tensor_names_seeds},
      {"timm_preprocess", run_timm_preprocess, timm_config_seeds},
      {"hf_preprocess", run_hf_preprocess, hf_preprocess_seeds},
      {"layout", run_layout, layout_seeds},
      {"rope_scaling", run_rope_scaling, rope_scaling_seeds},
      {"rope_identify", run_rope_identify, rope_identify_seeds},
      {"dense_config", run_dense_config, dense_config_seeds},
      {"dense_head", run_dense_head, dense_head_seeds},
      {"decode", run_decode_file, decode_seeds},
      {"decode_rows", run_decode_rows, decode_seeds},
      {"jpeg", run_decode, jpeg_seeds, kJpegStructure},
      {"png", run_decode, png_seeds, kPngStructure},
      {"tiff", run_decode, tiff_seeds, kTiffStructure},
      {"webp", run_decode, webp_seeds, kWebpStructure},
      {"bmp", run_decode, bmp_seeds, kBmpStructure},
      {"ico", run_decode, ico_seeds, kIcoStructure},
      {"pnm", run_decode, pnm_seeds, kPnmStructure},
      {"gif", run_decode, gif_seeds, kGifStructure},
      {"jpeg2000", run_decode, jpeg2000_seeds, kBoxStructure},
      {"codestream", run_decode, codestream_seeds, kCodestreamStructure},
      {"avif", run_decode, avif_seeds, kBoxStructure},
      {"heif", run_decode, heif_seeds, kBoxStructure},
      {"metadata", run_metadata, metadata_seeds},
      {"tokenizer_json", run_tokenizer_json, tokenizer_json_seeds},
      {"tokenizer_folder", run_tokenizer_folder, tokenizer_folder_seeds},
      {"sentencepiece", run_sentencepiece, sentencepiece_seeds, kMessageStructure},
      {"vocabulary", run_vocabulary, vocabulary_seeds},
      {"merges", run_merges, merges_seeds, kLineStructure},
      {"token_list", run_token_list, token_list_seeds, kLineStructure},
      {"clean", run_clean, clean_seeds},
#ifdef VIT_FUZZ_PIXELS
      {"pixel_labels", run_pixel_labels, pixel_labels_seeds},
      {"pixel_head", run_pixel_head, pixel_head_seeds},
      {"upsampler", run_upsampler, upsampler_seeds},
#endif
#ifdef VIT_FUZZ_PROGRAM
      {"npy", run_npy, npy_seeds},
      {"truth_map", run_truth_map, truth_map_seeds},
      {"labels", run_labels, labels_seeds, kLineStructure},
      {"index_facts", run_index_facts, index_facts_seeds},
      {"index_files", run_index_files, index_files_seeds, kLineStructure},
      {"index_vectors", run_index_vectors, index_vectors_seeds},
      {"index_partial", run_index_partial, index_partial_seeds, kLineStructure},
      {"page_index", run_page_index, page_index_seeds, kLineStructure},
      {"page_index_partial", run_page_index_partial, page_index_partial_seeds, kLineStructure},
      {"jsonl_partial", run_jsonl_partial, jsonl_partial_seeds, kLineStructure},
      {"paths", run_paths, paths_seeds, kLineStructure},
      {"texts", run_texts, texts_seeds, kLineStructure},
      {"boxes", run_boxes, boxes_seeds, kLineStructure},
      {"prompts", run_prompts, prompts_seeds, kLineStructure},
      {"video_header", run_video_header, video_header_seeds, kBoxStructure},
      {"run_facts", run_run_facts, run_facts_seeds},
#endif
#ifdef VIT_FUZZ_SERVE
      {"base64", run_base64, base64_seeds},
      {"form", run_form, form_seeds},
      {"http_head", run_http_head, http_head_seeds},
      {"openai_body", run_openai_body, openai_body_seeds},
      {"openai_lines", run_openai_lines, openai_lines_seeds},
      {"accept_encoding", run_accept_encoding, accept_encoding_seeds},
      {"weaviate_body", run_weaviate_body, weaviate_body_seeds},
      {"page_body", run_page_body, page_body_seeds},
      {"immich_entries", run_immich_entries, immich_entries_seeds},
      {"binary_tensors", run_binary_tensors, binary_tensors_seeds},
      {"infer_body", run_infer_body, infer_body_seeds},
#endif
#ifdef VIT_FUZZ_TAR
      {"tar", run_tar, tar_seeds, kTarStructure},
#endif
  };
  return kTargets;
}

}  // namespace vit::fuzz
