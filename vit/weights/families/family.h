// What a family adapter is: it recognises a checkpoint, states its config, and says where each canonical
// tensor lies in the file. One page per family in weights/families/; nothing else in the library knows a
// family's names.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vit/config.h"
#include "vit/weights/checkpoint/loader.h"
#include "vit/weights/files/json.h"
#include "vit/weights/files/tensor_file.h"

namespace vit::internal {

/// A checkpoint as found on disk, before anybody interprets it.
struct SourceFiles {
  const TensorFile& tensors;
  const LoadOptions& options;
  std::optional<Json> config;  // config.json or open_clip_config.json; nothing for a bare file
  std::string weights_name;    // path of the weight file, for messages
  std::string prefix;          // in front of every tensor name of the image tower: "", "module.", "vit.", ...

  /// The tensor called prefix + name, or null.
  const TensorEntry* find(const std::string& name) const;
  /// Sets `prefix` to what precedes `anchor` in some tensor's name, if that is one of `allowed`; false where
  /// none is.
  bool find_prefix(std::string_view anchor, std::span<const std::string_view> allowed);
  /// Number of blocks whose names start with prefix + `stem` + index + ".", counted without gaps from 0.
  std::size_t count_blocks(const std::string& stem) const;
};

/// Where a canonical tensor, or some of its leading rows, lies in the file. Several pieces are joined row
/// after row.
struct Piece {
  std::string source{};              // name without the prefix; empty for zeros
  std::vector<std::size_t> shape{};  // the shape it must have there
  std::size_t first_row = 0;         // takes num_rows rows from here; num_rows = 0 takes all
  std::size_t num_rows = 0;
  bool transposed = false;  // stored (in, out), wanted (out, in)
  bool absolute = false;    // the name stands without the prefix
  std::size_t zeros = 0;    // that many zeros instead of a source
  std::string mask{};       // multiplied element by element, every value must be 0 or 1; empty = none
};

/// One checkpoint seen through its family.
class Adapter {
 public:
  virtual ~Adapter() = default;
  /// Validated config, without labels.
  virtual ModelConfig config() const = 0;
  /// Pieces of a canonical tensor of model_weights.h, for example "blocks.3.qkv.weight", of this shape.
  virtual std::vector<Piece> pieces(const std::string& canonical, const Shape& shape) const = 0;
  /// Why a tensor that no piece uses may be left unused; empty where it may not. `name` is without the prefix
  /// where it has it.
  virtual std::string ignore_reason(const std::string& name, bool has_prefix) const = 0;
  /// Facts for `vit info`: whose rules apply, what was assumed.
  virtual std::vector<std::string> notes() const { return {}; }
};

struct Family {
  const char* name;
  const char* anchor;  // the tensor by which a file of this family is known, without prefix
  /// Says whether this family reads the checkpoint, and sets files.prefix if so.
  bool (*matches)(SourceFiles& files);
  std::unique_ptr<Adapter> (*adapt)(const SourceFiles& files);
};

/// All adapters in the order in which they are asked.
std::span<const Family* const> families();

extern const Family kTimmFamily;        // families/timm_vit.cpp
extern const Family kNaverFamily;       // families/naver_rope_vit.cpp
extern const Family kBaaiFamily;        // families/baai_eva02.cpp
extern const Family kMetaDinov2Family;  // families/meta_dino.cpp
extern const Family kMetaDinov3Family;
extern const Family kOpenAiFamily;    // families/openai_names.cpp
extern const Family kOpenClipFamily;  // families/open_clip.cpp
extern const Family kHfVitFamily;     // families/hf_vit.cpp
extern const Family kHfDinov2Family;  // families/hf_dinov2.cpp
extern const Family kHfDinov3Family;  // families/hf_dinov3.cpp
extern const Family kHfClipFamily;    // families/hf_clip.cpp

/// Whether some block has a tensor called "blocks.N." + rest, under the file's own names. Looks at all
/// tensors: to be asked once, not for every block.
bool any_block_has(const SourceFiles& files, const std::string& rest);

/// "blocks.3.qkv.weight" -> {3, "qkv.weight"}; nothing where the name is not a block's.
struct BlockTensor {
  std::size_t block;
  std::string rest;
};
std::optional<BlockTensor> split_block(const std::string& canonical);

/// The piece of a tensor whose name is `front` + stems[stem] + ending, where canonical = stem + ending and
/// the ending is that of torch_ending(); a stem may also be the whole name. Throws Error where `stems` has no
/// entry.
Piece renamed_piece(const std::string& canonical, const Shape& shape,
                    const std::map<std::string, std::string>& stems, const std::string& front = "");

/// Sizes of a shape as Piece wants them.
std::vector<std::size_t> sizes_of(const Shape& shape);

struct JoinedBias {
  bool q_bias = true, k_bias = true, v_bias = true;  // zeros where the file has none
};
/// Three projections (C, C), or their biases (C), joined into q, k, v. `ending` is ".weight" or ".bias".
std::vector<Piece> joined_qkv(const std::array<std::string, 3>& stems, const std::string& ending,
                              std::size_t width, JoinedBias biases = {});

/// One matrix (2M, C), or its bias, that holds gate rows, then value rows: the half that canonical "gate.*"
/// or "fc1.*" is.
Piece half_of_rows(const std::string& stem, const std::string& canonical, const Shape& shape);

/// The rows of a joined in_proj (3C, C), or of its bias, that "pool.q.*" (q) or "pool.kv.*" (k, v) is.
/// `front` is the tensor's name up to "weight".
Piece pool_rows(const std::string& front, const std::string& canonical, std::size_t width);

/// Why a tensor of a text tower may be left unused; empty where the name is not one of a text tower's.
std::string text_tower_reason(const std::string& name);

/// "norm1.gamma" -> "norm1.weight", "norm1.beta" -> "norm1.bias"; other endings stay.
std::string torch_ending(const std::string& name);

}  // namespace vit::internal
