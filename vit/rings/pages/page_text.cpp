// Source: transformers, models/colmodernvbert, ColModernVBertProcessor.
#include "vit/rings/pages/page_text.h"

#include "vit/base/check.h"
#include "vit/io/file_status.h"
#include "vit/io/json.h"

namespace vit::internal {
namespace {

constexpr Where kPageText{"PageModel", ErrorKind::format};
constexpr std::string_view kImage = "<image>", kAround = "<fake_token_around_image>";
constexpr std::size_t kQueryEnds = 10;

/// Visual tokens after what says where they are.
std::string tile_text(std::string_view place, std::size_t tokens) {
  std::string out = std::string(kAround).append(place);
  for (std::size_t i = 0; i < tokens; ++i) out += kImage;
  return out;
}

}  // namespace

std::string PageText::of_page(GridSize tiles) const {
  std::string image;
  if (tiles.rows * tiles.columns > 1) {
    for (std::size_t row = 1; row <= tiles.rows; ++row) {
      for (std::size_t column = 1; column <= tiles.columns; ++column)
        image += tile_text(text("<row_", row, "_col_", column, ">"), tokens_of_tile);
      image += "\n";
    }
    image += "\n";
  }
  image += tile_text("<global-img>", tokens_of_tile).append(kAround);
  std::string out = prompt;
  return out.replace(out.find(kImage), kImage.size(), image);
}

std::string PageText::of_query(std::string_view question) const {
  std::string out = query_prefix;
  out += question;
  for (std::size_t i = 0; i < kQueryEnds; ++i) out += "<end_of_utterance>";
  return out;
}

PageText read_page_text(const std::filesystem::path& folder) {
  PageText out;
  const std::filesystem::path path = folder / "processor_config.json";
  if (!std::filesystem::exists(load_status(path, kPageText))) return out;
  const Json json = load_json(path);
  const auto prompt = json.find_string("visual_prompt_prefix");
  if (prompt && !prompt->empty()) out.prompt = *prompt;
  out.query_prefix = json.find_string("query_prefix").value_or("");
  out.tokens_of_tile = json.find_size("image_seq_len", {1, 1u << 16}).value_or(out.tokens_of_tile);
  const std::size_t first = out.prompt.find(kImage);
  VIT_CHECK(first != std::string::npos && out.prompt.find(kImage, first + 1) == std::string::npos, kPageText,
            path.string(), ": visual_prompt_prefix must have the place of exactly one image, ", kImage);
  return out;
}

}  // namespace vit::internal
