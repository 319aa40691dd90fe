// The cost of decoding a JPEG 2000 codestream, computed from its markers before OpenJPEG reads it: OpenJPEG
// allocates what a header specifies before it looks for data, and reports a tile only after allocating it.
// Marker names and geometry are those of ISO 15444-1, annexes A and B. The bounds, and the attack that each
// stops:
//   tiles               a file of 100 bytes with 65535 tiles costs 12 KB per tile, 800 MB
//   components          16384 of them cost 1 KB per component and tile
//   parts per sample    code blocks of 4 x 4 and precincts of 2 x 2 samples cost 600 bytes each: 37 bytes per
//                       sample, 20 GB for an image of 13000 x 13000; in the main header or in that of a tile
//   visits per sample   65535 layers or many orders of packets make OpenJPEG walk over all precincts again
//   and
//                       again, for minutes, although there is no packet
// All other defects of a codestream are left to OpenJPEG.
#include <algorithm>
#include <array>

#include "vit/base/checked.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

enum Marker : std::uint32_t {
  kCap = 0xFF50,
  kSiz = 0xFF51,
  kCod = 0xFF52,
  kCoc = 0xFF53,
  kTlm = 0xFF55,
  kPlm = 0xFF57,
  kPlt = 0xFF58,
  kCpf = 0xFF59,
  kQcd = 0xFF5C,
  kQcc = 0xFF5D,
  kRgn = 0xFF5E,
  kPoc = 0xFF5F,
  kPpm = 0xFF60,
  kPpt = 0xFF61,
  kCrg = 0xFF63,
  kCom = 0xFF64,
  kMct = 0xFF74,
  kMcc = 0xFF75,
  kMco = 0xFF77,
  kCbd = 0xFF78,
  kSot = 0xFF90,  // start of a tile part
  kSod = 0xFF93,  // start of its data
  kEoc = 0xFFD9,
};

constexpr std::size_t kMaxComponents = 4;
constexpr std::size_t kMaxLevels = 32;

/// How one component is coded. Sizes are exponents of 2.
struct Style {
  std::size_t num_levels = 0;
  unsigned block_width = 0;
  unsigned block_height = 0;
  std::array<std::uint8_t, kMaxLevels + 1>
      precincts{};  // per resolution: width, and height in the upper bits
};

struct Styles {
  std::array<Style, kMaxComponents> components;
  double num_layers = 0.0;        // 0 = not read yet
  double num_progressions = 1.0;  // orders of packets; POC brings further ones
};

/// [begin, end) of one axis on the reference grid.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

constexpr std::uint64_t ceil_shift(std::uint64_t value, std::size_t exponent) {
  return (value + (std::uint64_t{1} << exponent) - 1) >> exponent;
}

/// The range on the samples of a band: halved `level` times, taking the lower or upper half at the last.
Range band_range(Range range, std::size_t level, bool upper) {
  const std::uint64_t from = upper ? std::uint64_t{1} << (level - 1) : 0;
  return {ceil_shift(range.begin - std::min(range.begin, from), level),
          ceil_shift(range.end - std::min(range.end, from), level)};
}

/// Number of cells of 2^exponent samples that a range touches.
double num_cells(Range range, std::size_t exponent) {
  if (range.begin >= range.end) return 0.0;
  return static_cast<double>(ceil_shift(range.end, exponent) - (range.begin >> exponent));
}

/// OpenJPEG's cost of one tile: objects that take memory, and steps through the packets.
struct TileWork {
  double num_parts = 0.0;
  double num_visits = 0.0;
  double walk = 0.0;  // visits per progression
};

TileWork tile_work(const Styles& styles, std::size_t num_components, Range x, Range y) {
  TileWork work;
  double most_precincts = 0.0;
  std::size_t most_resolutions = 0;
  std::size_t step_x = 63;
  std::size_t step_y = 63;
  for (std::size_t c = 0; c < num_components; ++c) {
    const Style& style = styles.components[c];
    most_resolutions = std::max(most_resolutions, style.num_levels + 1);
    for (std::size_t r = 0; r <= style.num_levels; ++r) {
      const std::size_t level = style.num_levels - r;
      const unsigned width = style.precincts[r] & 15u;
      const unsigned height = style.precincts[r] >> 4;
      const double num_precincts =
          num_cells(band_range(x, level, false), width) * num_cells(band_range(y, level, false), height);
      most_precincts = std::max(most_precincts, num_precincts);
      step_x = std::min(step_x, width + level);
      step_y = std::min(step_y, height + level);
      // Bands: one at the lowest resolution, three at the others, whose precincts are half as wide.
      for (unsigned band = r == 0 ? 0u : 1u; band < (r == 0 ? 1u : 4u); ++band) {
        const std::size_t depth = r == 0 ? level : level + 1;
        const unsigned halved = r == 0 ? 0u : 1u;
        work.num_parts += num_precincts;
        work.num_parts +=
            num_cells(band_range(x, depth, (band & 1u) != 0), std::min(style.block_width, width - halved)) *
            num_cells(band_range(y, depth, (band & 2u) != 0), std::min(style.block_height, height - halved));
      }
    }
  }
  const auto per_place = static_cast<double>(most_resolutions * num_components);
  // Orders by position step over the tile at the distance of the narrowest precincts.
  work.walk = per_place * (styles.num_layers * most_precincts + num_cells(x, step_x) * num_cells(y, step_y));
  work.num_visits = styles.num_layers * work.num_parts + styles.num_progressions * work.walk;
  return work;
}

class Codestream {
 public:
  Codestream(const Source& source, std::span<const std::uint8_t> code) : source_(source), code_(code) {
    read_size();
  }

  /// `length` bytes certainly belong to the codestream; OpenJPEG reads beyond them.
  void check(std::size_t length) {
    std::size_t at = read_main_header();
    while (true) {
      const std::uint32_t marker = at + 2 <= code_.size() ? be16(code_.data() + at) : 0u;
      if (marker == kSot) {
        at = read_tile_part(at);
        continue;
      }
      if (marker == kEoc || at >= length) return;  // files without the end marker are accepted
      refuse_truncated();
    }
  }

 private:
  [[noreturn]] void refuse_truncated() const {
    refuse(source_, "truncated JPEG 2000: the data end before the image does");
  }
  [[noreturn]] void refuse_style() const { refuse(source_, "corrupt JPEG 2000: impossible coding style"); }

  void read_size() {
    if (code_.size() < 42 || be16(code_.data() + 2) != kSiz)
      refuse(source_, "truncated JPEG 2000: no whole header");
    const std::uint8_t* const siz = code_.data() + 4;  // from its length on
    x_ = {be32(siz + 12), be32(siz + 4)};
    y_ = {be32(siz + 16), be32(siz + 8)};
    const std::uint64_t width = x_.end - std::min(x_.begin, x_.end);
    const std::uint64_t height = y_.end - std::min(y_.begin, y_.end);
    check_size(source_, width, height);
    if (x_.begin != 0 || y_.begin != 0)
      refuse_unsupported(source_,
                         "JPEG 2000 whose image does not start at the origin of its grid is not supported");
    const std::size_t count = be16(siz + 36);
    if (be16(siz) < 38 + 3 * count || code_.size() < 42 + 3 * count)
      refuse(source_, "truncated JPEG 2000: no whole header");
    if (count < 1 || count > kMaxComponents)
      refuse_unsupported(source_, "JPEG 2000 with ", count, " components is not supported");
    for (std::size_t c = 0; c < count; ++c) {
      const std::uint8_t* const component = siz + 38 + 3 * c;
      constexpr std::uint32_t kMaxBits = 16;
      const std::uint32_t bits = (component[0] & 0x7Fu) + 1;  // the highest bit: signed
      if (bits > kMaxBits || component[1] != 1 || component[2] != 1) {
        refuse_unsupported(source_, "JPEG 2000 with a component of ", bits, " bits, sampled ", +component[1],
                           " x ", +component[2], ", is not supported; expected at most ", kMaxBits,
                           " bits in full resolution");
      }
    }
    num_components_ = count;
    tile_width_ = be32(siz + 20);
    tile_height_ = be32(siz + 24);
    tile_x_ = be32(siz + 28);
    tile_y_ = be32(siz + 32);
    if (tile_width_ == 0 || tile_height_ == 0 || tile_x_ > x_.begin || tile_y_ > y_.begin ||
        tile_x_ + tile_width_ <= x_.begin || tile_y_ + tile_height_ <= y_.begin) {
      refuse(source_, "corrupt JPEG 2000: tiles of ", tile_width_, " x ", tile_height_,
             " pixels outside the image");
    }
    columns_ = ceil_div(x_.end - tile_x_, tile_width_);
    const std::uint64_t num_tiles = checked_mul(columns_, ceil_div(y_.end - tile_y_, tile_height_), kDecode);
    constexpr std::uint64_t kMaxTiles = 65535;
    if (num_tiles > kMaxTiles) refuse(source_, "corrupt JPEG 2000: ", num_tiles, " tiles");
    // Some 600 bytes per code block: 300 MB for any image, and as much again as the samples of large ones
    // take. Code blocks of 64 x 64 or 32 x 32 and tiles from 64 x 64 on are far below.
    const double num_samples =
        static_cast<double>(width) * static_cast<double>(height) * static_cast<double>(count);
    max_parts_ = 0x1p19 + num_samples / 128.0;
    // 10 to 100 ns each. 13000 x 13000 pixels in 50 layers of precincts of 128 x 128 make half as many.
    max_visits_ = 0x1p24 + num_samples / 8.0;
    constexpr double kPartsPerTile = 20.0;  // its parameters and index take some 12 KB
    num_parts_ = kPartsPerTile * static_cast<double>(num_tiles);
    check_work();
    walks_.assign(num_tiles, kUnseen);
  }

  void check_work() const {
    if (num_parts_ > max_parts_)
      refuse_unsupported(source_, "JPEG 2000 with too many tiles, precincts or code blocks for its size");
    if (num_visits_ > max_visits_) refuse_unsupported(source_, "JPEG 2000 with too many layers for its size");
  }

  /// Returns where the first tile part starts.
  std::size_t read_main_header() {
    for (std::size_t at = 2; at + 4 <= code_.size();) {
      const std::uint32_t marker = be16(code_.data() + at);
      if (marker == kSot) {
        if (main_.num_layers == 0.0) refuse_style();
        return at;
      }
      if (!is_known(marker)) {  // OpenJPEG searches for the next known marker, word by word
        at += 2;
        continue;
      }
      at = read_segment(at, code_.size(), main_);
    }
    refuse_truncated();
  }

  static bool is_known(std::uint32_t marker) {
    switch (marker) {
      case kCap:
      case kSiz:
      case kCod:
      case kCoc:
      case kTlm:
      case kPlm:
      case kPlt:
      case kCpf:
      case kQcd:
      case kQcc:
      case kRgn:
      case kPoc:
      case kPpm:
      case kPpt:
      case kCrg:
      case kCom:
      case kMct:
      case kMcc:
      case kMco:
      case kCbd: return true;
      default: return false;
    }
  }

  /// Reads one marker and its segment, below `end`; returns where the next starts.
  std::size_t read_segment(std::size_t at, std::size_t end, Styles& styles) const {
    const std::uint32_t marker = be16(code_.data() + at);
    const std::size_t length = be16(code_.data() + at + 2);
    if (length < 2 || length > end - at - 2) refuse_truncated();
    const auto body = code_.subspan(at + 4, length - 2);
    if (marker == kCod) {
      if (body.size() < 5) refuse_style();
      styles.num_layers = be16(body.data() + 2);
      styles.components.fill(read_style(body.subspan(5), body[0]));
      if (styles.num_layers == 0.0) refuse_style();
    } else if (marker == kCoc) {
      if (body.size() < 2 || body[0] >= num_components_) refuse_style();
      styles.components[body[0]] = read_style(body.subspan(2), body[1]);
    } else if (marker == kPoc) {
      constexpr std::size_t kProgressionBytes = 7;
      styles.num_progressions += static_cast<double>(body.size() / kProgressionBytes);
    }
    return at + 2 + length;
  }

  Style read_style(std::span<const std::uint8_t> body, std::uint8_t flags) const {
    const bool own_precincts = (flags & 1) != 0;
    if (body.size() < 5 || body[0] > kMaxLevels) refuse_style();
    Style style{.num_levels = body[0], .block_width = body[1] + 2u, .block_height = body[2] + 2u};
    if (style.block_width > 10 || style.block_height > 10 || style.block_width + style.block_height > 12)
      refuse_style();
    if (own_precincts && body.size() < 5 + style.num_levels + 1) refuse_style();
    style.precincts.fill(0xFF);
    for (std::size_t r = 0; own_precincts && r <= style.num_levels; ++r) {
      style.precincts[r] = body[5 + r];
      if (r > 0 && ((body[5 + r] & 15) == 0 || body[5 + r] >> 4 == 0)) refuse_style();
    }
    return style;
  }

  /// Returns where the next tile part starts.
  std::size_t read_tile_part(std::size_t at) {
    constexpr std::size_t kHeaderBytes = 12;
    if (at + kHeaderBytes > code_.size()) refuse_truncated();
    const std::size_t tile = be16(code_.data() + at + 4);
    const std::size_t length = be32(code_.data() + at + 6);  // of the whole tile part; 0 = up to the end
    if (tile >= walks_.size()) {
      refuse(source_, "corrupt JPEG 2000: tile ", tile, ", but the image has ", walks_.size());
    }
    if (length > code_.size() - at) refuse_truncated();
    const std::size_t end = length == 0 ? code_.size() : at + length;
    Styles styles = main_;
    for (std::size_t inner = at + kHeaderBytes;;) {
      if (inner + 2 > end) refuse_truncated();
      const std::uint32_t marker = be16(code_.data() + inner);
      if (marker == kSod) break;
      if (inner + 4 > end || !is_known(marker)) refuse_truncated();
      if (walks_[tile] != kUnseen && (marker == kCod || marker == kCoc)) refuse_style();
      inner = read_segment(inner, end, styles);
    }
    if (walks_[tile] == kUnseen) {
      const TileWork work =
          tile_work(styles, num_components_, tile_range(x_, tile_x_, tile_width_, tile % columns_),
                    tile_range(y_, tile_y_, tile_height_, tile / columns_));
      num_parts_ += work.num_parts;
      num_visits_ += work.num_visits;
      walks_[tile] = work.walk;
    } else {
      num_visits_ += (styles.num_progressions - main_.num_progressions) * walks_[tile];
    }
    check_work();
    return end;
  }

  static Range tile_range(Range image, std::uint64_t origin, std::uint64_t size, std::uint64_t index) {
    const std::uint64_t begin = origin + index * size;
    return {std::max(begin, image.begin), std::min(begin + size, image.end)};
  }

  static constexpr double kUnseen = -1.0;

  const Source& source_;
  std::span<const std::uint8_t> code_;
  std::size_t num_components_ = 0;
  Range x_;
  Range y_;
  std::uint64_t tile_x_ = 0;
  std::uint64_t tile_y_ = 0;
  std::uint64_t tile_width_ = 0;
  std::uint64_t tile_height_ = 0;
  std::uint64_t columns_ = 0;
  Styles main_;
  std::vector<double> walks_;  // per tile: TileWork::walk, once its first tile part was read
  double num_parts_ = 0.0;
  double num_visits_ = 0.0;
  double max_parts_ = 0.0;
  double max_visits_ = 0.0;
};

}  // namespace

void check_codestream(const Source& source, std::span<const std::uint8_t> code, std::size_t length) {
  Codestream(source, code).check(length);
}

}  // namespace vit::internal::codecs
