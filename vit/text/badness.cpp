// Characters that occur in damaged texts have classes; rules list the classes, or single characters, that
// follow each other.
#include "vit/text/badness.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

using Classes = std::uint32_t;

constexpr Classes kCommon = 1u << 0;   // spaces, hyphens, dashes, dots that are frequent anywhere
constexpr Classes kControl = 1u << 1;  // U+0080 to U+009F
constexpr Classes kBad = 1u << 2;      // signs that hardly occur in intact texts
constexpr Classes kLaw = 1u << 3;      // paragraph and section
constexpr Classes kCurrency = 1u << 4;
constexpr Classes kOpening = 1u << 5;  // marks in front of words
constexpr Classes kClosing = 1u << 6;  // marks after words
constexpr Classes kNumeric = 1u << 7;
constexpr Classes kFaces = 1u << 8;  // letters used to draw faces
constexpr Classes kUpper = 1u << 9;  // Latin capitals with an accent
constexpr Classes kLower = 1u << 10;
constexpr Classes kCapital = 1u << 11;  // Greek and Cyrillic
constexpr Classes kSmall = 1u << 12;
constexpr Classes kBox = 1u << 13;  // lines and blocks
// Of ASCII and of Unicode.
constexpr Classes kLatinUpper = 1u << 14;
constexpr Classes kLatinLower = 1u << 15;
constexpr Classes kWord = 1u << 16;
constexpr Classes kSpace = 1u << 17;
constexpr Classes kNotLatin = 1u << 18;  // anything but ASCII letters
constexpr Classes kNotBreak = 1u << 19;  // anything but a line feed
constexpr Classes kLatin = kLatinUpper | kLatinLower;
constexpr Classes kAccented = kUpper | kLower;

struct ClassRange {
  char16_t first, last;
  Classes classes;
};
constexpr ClassRange kRanges[] = {
    {0xA0, 0xA0, kCommon},       {0xAD, 0xAD, kCommon},      {0xB4, 0xB4, kCommon},
    {0xB7, 0xB7, kCommon},       {0x2013, 0x2015, kCommon},  {0x2019, 0x2019, kCommon},
    {0x2026, 0x2026, kCommon},   {0x80, 0x9F, kControl},     {0xA4, 0xA4, kBad},
    {0xA6, 0xA6, kBad},          {0xA8, 0xA8, kBad},         {0xAA, 0xAA, kBad},
    {0xAC, 0xAC, kBad},          {0xAF, 0xAF, kBad},         {0xB8, 0xB8, kBad},
    {0xBA, 0xBA, kBad},          {0x192, 0x192, kBad},       {0x2C6, 0x2C7, kBad},
    {0x2D8, 0x2D8, kBad},        {0x2DB, 0x2DC, kBad},       {0x2020, 0x2021, kBad},
    {0x2030, 0x2030, kBad},      {0x2310, 0x2310, kBad},     {0x25CA, 0x25CA, kBad},
    {0xFFFD, 0xFFFD, kBad},      {0xA7, 0xA7, kLaw},         {0xB6, 0xB6, kLaw},
    {0xA2, 0xA3, kCurrency},     {0xA5, 0xA5, kCurrency},    {0x20A7, 0x20A7, kCurrency},
    {0x20AC, 0x20AC, kCurrency}, {0xA1, 0xA1, kOpening},     {0xA9, 0xA9, kOpening},
    {0xAB, 0xAB, kOpening},      {0xBF, 0xBF, kOpening},     {0x384, 0x385, kOpening},
    {0x2018, 0x2018, kOpening},  {0x201A, 0x201A, kOpening}, {0x201C, 0x201C, kOpening},
    {0x201E, 0x201E, kOpening},  {0x2022, 0x2022, kOpening}, {0x2039, 0x2039, kOpening},
    {0xF8FF, 0xF8FF, kOpening},  {0xAE, 0xAE, kClosing},     {0xBB, 0xBB, kClosing},
    {0x2DD, 0x2DD, kClosing},    {0x201D, 0x201D, kClosing}, {0x203A, 0x203A, kClosing},
    {0x2122, 0x2122, kClosing},  {0xB1, 0xB3, kNumeric},     {0xB5, 0xB5, kNumeric},
    {0xB9, 0xB9, kNumeric},      {0xBC, 0xBE, kNumeric},     {0xD7, 0xD7, kNumeric},
    {0xF7, 0xF7, kNumeric},      {0x2044, 0x2044, kNumeric}, {0x2116, 0x2116, kNumeric},
    {0x2202, 0x2202, kNumeric},  {0x2206, 0x2206, kNumeric}, {0x220F, 0x220F, kNumeric},
    {0x2211, 0x2211, kNumeric},  {0x221A, 0x221A, kNumeric}, {0x221E, 0x221E, kNumeric},
    {0x2229, 0x2229, kNumeric},  {0x222B, 0x222B, kNumeric}, {0x2248, 0x2248, kNumeric},
    {0x2260, 0x2261, kNumeric},  {0x2264, 0x2265, kNumeric}, {0xB0, 0xB0, kFaces},
    {0xD2, 0xD6, kFaces},        {0xD9, 0xDC, kFaces},       {0xF2, 0xF6, kFaces},
    {0xF8, 0xFC, kFaces},        {0x14C, 0x14C, kFaces},     {0x150, 0x150, kFaces},
    {0x16A, 0x16A, kFaces},      {0x172, 0x172, kFaces},     {0xC0, 0xD1, kUpper},
    {0xD8, 0xD8, kUpper},        {0xDC, 0xDD, kUpper},       {0xDF, 0xF1, kLower},
    {0xFC, 0xFC, kLower},        {0x152, 0x152, kUpper},     {0x153, 0x153, kLower},
    {0x178, 0x178, kUpper},      {0x490, 0x490, kUpper},     {0x491, 0x491, kLower},
    {0xFB01, 0xFB02, kLower},    {0xDE, 0xDE, kCapital},     {0x386, 0x386, kCapital},
    {0x388, 0x38A, kCapital},    {0x38C, 0x38C, kCapital},   {0x38E, 0x38F, kCapital},
    {0x391, 0x3AB, kCapital},    {0x401, 0x42F, kCapital},   {0x3AC, 0x3C9, kSmall},
    {0x430, 0x45F, kSmall},      {0x2502, 0x2502, kBox},     {0x250C, 0x250C, kBox},
    {0x2510, 0x2510, kBox},      {0x2518, 0x2518, kBox},     {0x251C, 0x251C, kBox},
    {0x2524, 0x2524, kBox},      {0x252C, 0x252C, kBox},     {0x253C, 0x253C, kBox},
    {0x2550, 0x256C, kBox},      {0x2580, 0x2580, kBox},     {0x2584, 0x2584, kBox},
    {0x2588, 0x2588, kBox},      {0x258C, 0x258C, kBox},     {0x2590, 0x2593, kBox},
};
/// Letters of Latin Extended-A.
constexpr std::u16string_view kUpperExtended =
    u"\u0100\u0102\u0104\u0106\u010C\u010E\u0110\u0112\u0116\u0118\u011A\u011E\u0122\u012A\u0130\u0136\u0139"
    u"\u013B\u013D\u0141\u0143\u0145\u0147\u0158\u015A\u015E\u0160\u0162\u0164\u016E\u0170\u0179\u017B\u017D";
constexpr std::u16string_view kLowerExtended =
    u"\u0101\u0103\u0105\u0107\u010D\u010F\u0111\u0113\u0117\u0119\u011B\u011F\u0123\u012B\u012F\u0137\u013A"
    u"\u013C\u013E\u0142\u0155\u015B\u015F\u0161\u0165\u017A\u017C\u017E";

Classes classes_of(char32_t c) {
  constexpr std::size_t kTable = 0x2600;
  static const std::vector<Classes> table = [] {
    std::vector<Classes> made(kTable);
    for (const ClassRange& range : kRanges) {
      for (std::size_t i = range.first; i <= range.last && i < kTable; ++i) made[i] |= range.classes;
    }
    for (const char16_t letter : kUpperExtended) made[letter] |= kUpper;
    for (const char16_t letter : kLowerExtended) made[letter] |= kLower;
    for (std::size_t i = 0; i < kTable; ++i) {
      const auto at = static_cast<char32_t>(i);
      if (at >= U'A' && at <= U'Z') made[i] |= kLatinUpper;
      if (at >= U'a' && at <= U'z') made[i] |= kLatinLower;
      if (is_letter(at) || is_number(at) || at == U'_') made[i] |= kWord;
      if (is_python_space(at)) made[i] |= kSpace;
      if ((made[i] & kLatin) == 0) made[i] |= kNotLatin;
      if (at != U'\n') made[i] |= kNotBreak;
    }
    return made;
  }();
  if (c < kTable) return table[c];
  Classes classes = kNotLatin | kNotBreak;
  for (const ClassRange& range : kRanges) {
    if (c >= range.first && c <= range.last) classes |= range.classes;
  }
  if (is_letter(c) || is_number(c)) classes |= kWord;
  if (is_python_space(c)) classes |= kSpace;
  return classes;
}

/// One place of a rule: a character of one of the classes, or one of `characters`.
struct Place {
  Classes classes = 0;
  std::u16string_view characters = {};

  bool is_unused() const { return classes == 0 && characters.empty(); }
  bool has(char32_t c, Classes of_c) const {
    return (classes & of_c) != 0 ||
           (c <= 0xFFFF && characters.find(static_cast<char16_t>(c)) != std::u16string_view::npos);
  }
};
constexpr std::size_t kLongest = 7;
using Rule = std::array<Place, kLongest>;  // those after the last place are unused

constexpr std::u16string_view kAOrA = u"\u00C2\u00C3";
// Second bytes of Arabic letters, next to the classes.
constexpr std::u16string_view kArabic = u"\u0178\u0160\u00AE\u00B0\u00B5\u00BB";
constexpr Place kArabicLead{0, u"\u00D8\u00D9"};
constexpr Place kArabicSecond{kCommon | kCurrency | kBad | kNumeric | kOpening, kArabic};
constexpr Place kCyrillicLead{0, u"\u0412\u0413\u0420\u0421"};
constexpr Place kGreekLead{0, u"\u0392\u0393\u039E\u039F"};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> list = {
      {{{kControl}}},
      {{{kBad | kAccented | kBox | kOpening | kClosing | kCurrency | kNumeric | kLaw}, {kBad}}},
      {{{kLatin}, {kSmall | kCapital}, {kBad}}},
      {{{kBad}, {kAccented | kBox | kOpening | kClosing | kCurrency | kNumeric | kLaw}}},
      {{{kLower | kSmall | kBox | kClosing | kCurrency | kNumeric}, {kUpper}}},
      {{{kBox | kClosing | kCurrency | kNumeric}, {kLower}}},
      {{{kLower | kBox | kClosing}, {kCurrency}}},
      {{{kSpace}, {kUpper}, {kCurrency}}},
      {{{kUpper | kBox}, {kNumeric | kLaw}}},
      {{{kAccented | kBox | kCurrency | kClosing}, {kOpening}, {kNumeric}}},
      {{{kAccented | kCurrency | kNumeric | kBox | kLaw}, {kClosing}, {kOpening}}},
      {{{kCurrency | kNumeric | kBox}, {kOpening}}},
      {{{kLatinLower}, {kUpper}, {kOpening | kCurrency}}},
      {{{kBox}, {kFaces}}},
      {{{kAccented | kCurrency | kNumeric | kOpening | kClosing | kLaw}, {kBox}}},
      {{{kBox}, {kClosing}}},
      {{{kAccented}, {kOpening | kClosing}, {kWord}}},
      {{{0, u"\u0152\u0153"}, {kNotLatin}}},
      {{{kUpper}, {0, u"\u00B0"}}},
      // Windows-1252: frequent pairs, Arabic, South Asian scripts, spaces after a capital A.
      {{{0, u"\u00C2\u00C3\u00CE\u00D0"},
        {kOpening | kClosing,
         u"\u20AC\u0153\u0160\u0161\u00A2\u00A3\u0178\u017E\u00A0\u00AD\u00AE\u00A9\u00B0\u00B7\u00BB\u2013"
         u"\u2014\u00B4"}}},
      {{{0, u"\u00D7"}, {0, u"\u00B2\u00B3"}}},
      {{kArabicLead, kArabicSecond, kArabicLead, kArabicSecond}},
      {{{0, u"\u00E0"}, {0, u"\u00B2\u00B5\u00B9\u00BC\u00BD\u00BE"}}},
      {{{0, u"\u00C3"}, {0, u"\u00A0\u00A1"}}},
      {{{kLatinLower}, {0, kAOrA}, {0, u" "}}},
      {{{kLatinLower}, {kSpace}, {0, kAOrA}, {0, u" "}}},
      {{{kLatinLower | kClosing, u".,?!"}, {0, u"\u00C2"}, {kOpening | kClosing, u" "}}},
      // Mac Roman.
      {{{0, u"\u221A"}, {0, u"\u00B1\u2202\u2020\u2260\u00AE\u2122\u00B4\u2264\u2265\u00A5\u00B5\u00F8"}}},
      {{{0, u"\u2248"}, {0, u"\u00B0\u00A2"}}},
      {{{0, u"\u201A"},
        {0, u"\u00C4"},
        {0, u"\u00EC\u00EE\u00EF\u00F2\u00F4\u00FA\u00F9\u00FB\u2020\u00B0\u00A2\u03C0"}}},
      {{{0, u"\u201A"}, {0, u"\u00E2\u00F3"}, {0, u"\u00E0\u00E4\u00B0\u00EA"}}},
      // Windows-1251: U+2000 and more, letters of Latin-1 and Cyrillic ones, the former read wrong twice.
      {{{0, u"\u0432"}, {0, u"\u0402"}}},
      {{kCyrillicLead, {kControl | kBad | kOpening | kClosing | kCurrency, u"\u00B0\u00B5"}, kCyrillicLead}},
      {{{0, u"\u0413"},
        {0, u"\u045E"},
        {0, u"\u0412"},
        {0, u"\u0402"},
        {0, u"\u0412"},
        {kNotBreak},
        {kLatin, u" "}}},
      // Windows-1253 and -1257.
      {{{0, u"\u03B2"}, {0, u"\u20AC"}, {0, u"\u2122\u00A0\u0386\u00AD\u00AE\u00B0"}}},
      {{kGreekLead, {kControl | kBad | kOpening | kClosing | kCurrency, u"\u00B0"}, kGreekLead}},
      {{{0, u"\u0101"}, {0, u"\u20AC"}}},
  };
  return list;
}

struct Character {
  char32_t c;
  Classes classes;
};

bool matches(const Rule& rule, std::span<const Character> text) {
  for (std::size_t i = 0; i < rule.size() && !rule[i].is_unused(); ++i) {
    if (i == text.size() || !rule[i].has(text[i].c, text[i].classes)) return false;
  }
  return true;
}

}  // namespace

bool is_bad(std::u32string_view text) {
  // At the start these two need nothing in front of them.
  if (text.size() > 1 && (text[0] == 0xC2 || text[0] == 0xC3) && text[1] == U' ') return true;
  const auto is_ascii = [&text](std::size_t i) { return i >= text.size() || text[i] < 0x80; };
  std::array<Character, kLongest> window{};
  for (std::size_t at = 0; at < text.size(); ++at) {
    // Every rule has one of its first three places beyond ASCII.
    if (is_ascii(at) && is_ascii(at + 1) && is_ascii(at + 2)) continue;
    const std::size_t length = std::min(kLongest, text.size() - at);
    for (std::size_t i = 0; i < length; ++i) window[i] = {text[at + i], classes_of(text[at + i])};
    const std::span<const Character> here(window.data(), length);
    for (const Rule& rule : rules()) {
      if (matches(rule, here)) return true;
    }
  }
  return false;
}

}  // namespace vit::internal
