#include "tests/support/amx_emulator.h"

#if defined(__x86_64__) && defined(__linux__)

#include <signal.h>
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "vit/kernels/amx.h"

namespace vit::test {
namespace {

constexpr std::size_t kTiles = 8, kRows = 16, kRowBytes = 64;

/// What LDTILECFG loaded, and the tiles.
struct TileState {
  std::uint8_t palette, start_row;
  std::uint16_t bytes_per_row[kTiles];
  std::uint8_t rows[kTiles];
  alignas(64) std::uint8_t data[kTiles][kRows][kRowBytes];
};

thread_local TileState tiles;
thread_local unsigned long num_instructions;

/// A VEX-encoded instruction of three prefix bytes, map 0F38.
struct Instruction {
  std::uint8_t opcode = 0, prefix = 0;  // prefix: 0 none, 1 66, 2 F3, 3 F2
  std::uint8_t reg = 0, rm = 0, vvvv = 0;
  bool is_memory = false;
  std::uintptr_t base = 0;   // of the memory operand, without the index
  std::ptrdiff_t index = 0;  // times its scale: the stride of tile rows
  std::size_t length = 0;    // bytes
};

/// Registers in the order of their numbers.
constexpr int kRegisters[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

template <typename T>
T read_as(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// False for what is no instruction of this form.
bool decode(const ucontext_t& context, Instruction& out) {
  const auto* const code = reinterpret_cast<const std::uint8_t*>(context.uc_mcontext.gregs[REG_RIP]);
  if (code[0] != 0xC4 || (code[1] & 0x1F) != 2 || (code[2] & 0x84) != 0) return false;
  const bool r = (code[1] & 0x80) == 0, x = (code[1] & 0x40) == 0,
             b = (code[1] & 0x20) == 0;  // stored inverted
  const auto value_of = [&](unsigned number) {
    return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[kRegisters[number]]);
  };
  out.vvvv = static_cast<std::uint8_t>(~(code[2] >> 3) & 15);
  out.prefix = code[2] & 3;
  out.opcode = code[3];
  const std::uint8_t modrm = code[4];
  const unsigned mod = modrm >> 6, rm = modrm & 7;
  out.reg = static_cast<std::uint8_t>((modrm >> 3 & 7) | (r ? 8u : 0u));
  out.rm = static_cast<std::uint8_t>(rm | (b ? 8u : 0u));
  out.length = 5;
  if (mod == 3) return true;
  out.is_memory = true;
  if (rm == 4) {
    const std::uint8_t sib = code[out.length++];
    const unsigned index = (sib >> 3 & 7u) | (x ? 8u : 0u), base = (sib & 7u) | (b ? 8u : 0u);
    if (index != 4) out.index = static_cast<std::ptrdiff_t>(value_of(index) << (sib >> 6));
    if ((sib & 7) == 5 && mod == 0) {
      out.base = static_cast<std::uintptr_t>(read_as<std::int32_t>(code + out.length));
      out.length += 4;
    } else {
      out.base = value_of(base);
    }
  } else if (rm == 5 && mod == 0) {
    const auto displacement = read_as<std::int32_t>(code + out.length);
    out.length += 4;
    out.base =
        reinterpret_cast<std::uintptr_t>(code) + out.length + static_cast<std::uintptr_t>(displacement);
  } else {
    out.base = value_of(out.rm);
  }
  if (mod == 1) out.base += static_cast<std::uintptr_t>(static_cast<std::int8_t>(code[out.length++]));
  if (mod == 2) {
    out.base += static_cast<std::uintptr_t>(read_as<std::int32_t>(code + out.length));
    out.length += 4;
  }
  return true;
}

/// What the manual's palette_table allows.
bool load_config(const std::uint8_t* from) {
  TileState loaded{};
  loaded.palette = from[0];
  loaded.start_row = from[1];
  if (loaded.palette > 1) return false;
  if (loaded.palette == 1) {
    for (std::size_t i = 2; i < 16; ++i) {
      if (from[i] != 0) return false;
    }
    for (std::size_t t = 0; t < 16; ++t) {
      const auto bytes = read_as<std::uint16_t>(from + 16 + 2 * t);
      const std::uint8_t rows = from[48 + t];
      if (bytes > kRowBytes || rows > kRows || (bytes == 0) != (rows == 0) || (t >= kTiles && rows != 0))
        return false;
      if (t < kTiles) loaded.bytes_per_row[t] = bytes, loaded.rows[t] = rows;
    }
  }
  tiles = loaded;
  return true;
}

void store_config(std::uint8_t* to) {
  std::memset(to, 0, 64);
  if (tiles.palette == 0) return;
  to[0] = tiles.palette;
  to[1] = tiles.start_row;
  for (std::size_t t = 0; t < kTiles; ++t) {
    std::memcpy(to + 16 + 2 * t, &tiles.bytes_per_row[t], 2);
    to[48 + t] = tiles.rows[t];
  }
}

bool is_configured(unsigned tile) {
  return tiles.palette == 1 && tile < kTiles && tiles.rows[tile] != 0;
}

/// Rows beyond those configured, and bytes beyond, become zero.
void load_tile(unsigned tile, const Instruction& instruction) {
  std::uint8_t(&data)[kRows][kRowBytes] = tiles.data[tile];
  std::memset(data, 0, sizeof(data));
  for (std::size_t row = 0; row < tiles.rows[tile]; ++row) {
    const std::uintptr_t from =
        instruction.base + static_cast<std::uintptr_t>(static_cast<std::ptrdiff_t>(row) * instruction.index);
    std::memcpy(data[row], reinterpret_cast<const void*>(from), tiles.bytes_per_row[tile]);
  }
}

void store_tile(unsigned tile, const Instruction& instruction) {
  for (std::size_t row = 0; row < tiles.rows[tile]; ++row) {
    const std::uintptr_t to =
        instruction.base + static_cast<std::uintptr_t>(static_cast<std::ptrdiff_t>(row) * instruction.index);
    std::memcpy(reinterpret_cast<void*>(to), tiles.data[tile][row], tiles.bytes_per_row[tile]);
  }
}

/// Denormal numbers count as zero, on the way in and on the way out.
float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

float bf16_at(const std::uint8_t* from) {
  return flushed(std::bit_cast<float>(static_cast<std::uint32_t>(read_as<std::uint16_t>(from)) << 16));
}

/// A product needs sums (m, n), inputs (m, k) and weights (k, n) of sizes that fit.
bool fits(unsigned sums, unsigned inputs, unsigned weights) {
  return is_configured(sums) && is_configured(inputs) && is_configured(weights) && sums != inputs &&
         sums != weights && inputs != weights && tiles.rows[sums] == tiles.rows[inputs] &&
         tiles.bytes_per_row[inputs] == 4 * tiles.rows[weights] &&
         tiles.bytes_per_row[sums] == tiles.bytes_per_row[weights] && tiles.bytes_per_row[sums] % 4 == 0;
}

void multiply_bf16(unsigned sums, unsigned inputs, unsigned weights) {
  const std::size_t pairs = tiles.bytes_per_row[inputs] / 4, columns = tiles.bytes_per_row[sums] / 4;
  for (std::size_t m = 0; m < tiles.rows[sums]; ++m) {
    float chains[2][16] = {};
    for (std::size_t k = 0; k < pairs; ++k) {
      for (std::size_t n = 0; n < columns; ++n) {
        for (std::size_t half = 0; half < 2; ++half) {
          chains[half][n] =
              flushed(std::fma(bf16_at(tiles.data[inputs][m] + 4 * k + 2 * half),
                               bf16_at(tiles.data[weights][k] + 4 * n + 2 * half), chains[half][n]));
        }
      }
    }
    for (std::size_t n = 0; n < columns; ++n) {
      std::uint8_t* const at = tiles.data[sums][m] + 4 * n;
      const float sum = flushed(flushed(read_as<float>(at)) + flushed(chains[0][n] + chains[1][n]));
      std::memcpy(at, &sum, 4);
    }
  }
}

template <typename Input, typename Weight>
void multiply_bytes(unsigned sums, unsigned inputs, unsigned weights) {
  const std::size_t quads = tiles.bytes_per_row[inputs] / 4, columns = tiles.bytes_per_row[sums] / 4;
  for (std::size_t m = 0; m < tiles.rows[sums]; ++m) {
    for (std::size_t k = 0; k < quads; ++k) {
      for (std::size_t n = 0; n < columns; ++n) {
        std::uint8_t* const at = tiles.data[sums][m] + 4 * n;
        auto sum = read_as<std::uint32_t>(at);  // wraps around
        for (std::size_t i = 0; i < 4; ++i) {
          const auto a = static_cast<Input>(tiles.data[inputs][m][4 * k + i]);
          const auto b = static_cast<Weight>(tiles.data[weights][k][4 * n + i]);
          sum += static_cast<std::uint32_t>(std::int32_t{a} * std::int32_t{b});
        }
        std::memcpy(at, &sum, 4);
      }
    }
  }
}

/// False for what is no valid instruction of AMX.
bool execute(const Instruction& i) {
  enum : std::uint8_t { kNone, k66, kF3, kF2 };
  if (i.opcode == 0x49) {
    if (i.is_memory && i.prefix == kNone)
      return load_config(
          reinterpret_cast<const std::uint8_t*>(i.base + static_cast<std::uintptr_t>(i.index)));
    if (i.is_memory && i.prefix == k66)
      return store_config(reinterpret_cast<std::uint8_t*>(i.base + static_cast<std::uintptr_t>(i.index))),
             true;
    if (i.is_memory) return false;
    if (i.prefix == kNone) return tiles = TileState{}, true;
    if (i.prefix != kF2 || !is_configured(i.reg)) return false;
    std::memset(tiles.data[i.reg], 0, sizeof(tiles.data[i.reg]));
    return true;
  }
  if (i.opcode == 0x4B) {
    if (!i.is_memory || !is_configured(i.reg)) return false;
    if (i.prefix == kF2 || i.prefix == k66) return load_tile(i.reg, i), true;
    return i.prefix == kF3 && (store_tile(i.reg, i), true);
  }
  if (i.is_memory || !fits(i.reg, i.rm, i.vvvv)) return false;
  if (i.opcode == 0x5C && i.prefix == kF3) return multiply_bf16(i.reg, i.rm, i.vvvv), true;
  if (i.opcode != 0x5E) return false;
  switch (i.prefix) {
    case kF2: return multiply_bytes<std::int8_t, std::int8_t>(i.reg, i.rm, i.vvvv), true;
    case kF3: return multiply_bytes<std::int8_t, std::uint8_t>(i.reg, i.rm, i.vvvv), true;
    case k66: return multiply_bytes<std::uint8_t, std::int8_t>(i.reg, i.rm, i.vvvv), true;
    default: return multiply_bytes<std::uint8_t, std::uint8_t>(i.reg, i.rm, i.vvvv), true;
  }
}

void on_illegal_instruction(int, siginfo_t*, void* context_address) {
  auto& context = *static_cast<ucontext_t*>(context_address);
  Instruction instruction;
  if (!decode(context, instruction) || !execute(instruction)) {
    ::signal(SIGILL, SIG_DFL);  // and raise it again
    return;
  }
  context.uc_mcontext.gregs[REG_RIP] += static_cast<greg_t>(instruction.length);
  ++num_instructions;
}

}  // namespace

namespace {

bool is_native = false;

}  // namespace

void emulate_amx() {
  static const bool is_installed = [] {
    is_native = internal::kernels::amx_support() == internal::kernels::Amx::permitted;
    struct sigaction action = {};
    action.sa_sigaction = on_illegal_instruction;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    return ::sigaction(SIGILL, &action, nullptr) == 0;
  }();
  static_cast<void>(is_installed);
}

bool runs_on_tiles(unsigned long before) noexcept {
  return is_native || num_instructions > before;
}

unsigned long num_emulated() noexcept {
  return num_instructions;
}

}  // namespace vit::test

#else

namespace vit::test {
void emulate_amx() {}
bool runs_on_tiles(unsigned long) noexcept {
  return false;
}
unsigned long num_emulated() noexcept {
  return 0;
}
}  // namespace vit::test

#endif
