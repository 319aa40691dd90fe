// The wire format of protocol buffers, as far as model files use it.
#include "vit/text/sentencepiece.h"

#include <cstring>
#include <optional>

#include "vit/base/check.h"
#include "vit/io/source_file.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::format};
/// The largest published model file has 14 MB.
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;

/// One field after another of a message.
class Fields {
 public:
  Fields(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  /// False at the end.
  bool next() {
    if (at_ >= bytes_.size()) return false;
    const std::uint64_t tag = varint();
    number_ = static_cast<std::uint32_t>(tag >> 3);
    type_ = static_cast<std::uint32_t>(tag & 7);
    VIT_CHECK(tag >> 3 > 0 && tag >> 35 == 0, kWhere, name_,
              ": field number out of range; not a SentencePiece model?");
    switch (type_) {
      case 0: value_ = varint(); break;
      case 1: content_ = take(8); break;
      case 2: content_ = take(varint()); break;
      case 5: content_ = take(4); break;
      default: fail(kWhere, name_, ": wire type ", type_, "; not a SentencePiece model?");
    }
    return true;
  }

  std::uint32_t number() const { return number_; }
  std::string_view bytes() const {
    expect(2);
    return content_;
  }
  std::uint64_t integer() const {
    expect(0);
    return value_;
  }
  float real() const {
    expect(5);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i)
      bits |= std::uint32_t{static_cast<unsigned char>(content_[i])} << (8 * i);
    float value = 0.0f;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }

 private:
  void expect(std::uint32_t type) const {
    VIT_CHECK(type_ == type, kWhere, name_, ": field ", number_, " has wire type ", type_, ", expected ",
              type);
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail(kWhere, name_, ": an integer of more than 64 bits; not a SentencePiece model?");
  }
  std::string_view take(std::uint64_t count) {
    VIT_CHECK(count <= bytes_.size() - at_, kWhere, name_,
              ": the file ends too early (incomplete download?)");
    const std::string_view taken = bytes_.substr(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint32_t number_ = 0, type_ = 0;
  std::uint64_t value_ = 0;
  std::string_view content_;
};

void read_piece(SentencePieceModel& model, std::string_view message, const std::string& name) {
  using Type = SentencePieceModel::Type;
  const auto id = static_cast<TokenId>(model.scores.size());
  std::string_view piece;
  float score = 0.0f;
  Type type = Type::normal;
  for (Fields field(message, name); field.next();) {
    if (field.number() == 1) piece = field.bytes();
    if (field.number() == 2) score = field.real();
    if (field.number() == 3) {
      const std::uint64_t value = field.integer();
      VIT_CHECK(value >= 1 && value <= 6, kWhere.with(ErrorKind::unsupported), name, ": piece ", id,
                " is of type ", value);
      type = static_cast<Type>(value);
    }
  }
  VIT_CHECK(!piece.empty(), kWhere, name, ": piece ", id, " is empty");
  VIT_CHECK(is_utf8(piece), kWhere, name, ": piece ", id, " is not valid UTF-8");
  model.vocabulary.add(piece, id);
  model.scores.push_back(score);
  model.types.push_back(type);
}

void read_trainer(SentencePieceModel& model, std::string_view message, const std::string& name) {
  for (Fields field(message, name); field.next();) {
    if (field.number() == 3) {
      const std::uint64_t value = field.integer();
      VIT_CHECK(value >= 1 && value <= 4, kWhere.with(ErrorKind::unsupported), name, ": model type ", value);
      model.algorithm = static_cast<SentencePieceModel::Algorithm>(value);
    }
    if (field.number() == 24) model.space_as_suffix = field.integer() != 0;
    if (field.number() == 35) model.byte_fallback = field.integer() != 0;
  }
}

void read_normalizer(SentencePieceModel& model, std::string_view message, const std::string& name) {
  for (Fields field(message, name); field.next();) {
    if (field.number() == 2 && !field.bytes().empty()) model.charsmap = Charsmap(field.bytes(), kWhere, name);
    if (field.number() == 3) model.add_dummy_prefix = field.integer() != 0;
    if (field.number() == 4) model.remove_extra_spaces = field.integer() != 0;
    if (field.number() == 5) model.escape_spaces = field.integer() != 0;
  }
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, std::string name) {
  VIT_CHECK(bytes.size() <= kMaxBytes, kWhere.with(ErrorKind::unsupported), name, ": ", bytes.size(),
            " bytes, more than the ", kMaxBytes, " allowed");
  SentencePieceModel model(Vocabulary(kWhere, name));
  for (Fields field(bytes, name); field.next();) {
    if (field.number() == 1) read_piece(model, field.bytes(), name);
    if (field.number() == 2) read_trainer(model, field.bytes(), name);
    if (field.number() == 3) read_normalizer(model, field.bytes(), name);
  }
  model.vocabulary.finish();
  std::size_t unknown = 0;
  for (std::size_t id = 0; id < model.types.size(); ++id) {
    if (model.types[id] != SentencePieceModel::Type::unknown) continue;
    model.unknown = static_cast<TokenId>(id);
    ++unknown;
  }
  VIT_CHECK(unknown == 1, kWhere, name, ": has ", unknown, " unknown pieces, expected one");
  return model;
}

SentencePieceModel load_sentencepiece(const std::filesystem::path& path) {
  const SourceFile file(path, kWhere);
  return parse_sentencepiece(file.text(0, kMaxBytes + 1), path.filename().string());
}

}  // namespace vit::internal
