#include "vit/weights/checkpoint/layout_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"read_layout", ErrorKind::format};
constexpr std::size_t kMaxName = 512, kMaxPieces = 64;

/// Takes a number from the front of `text`; `fallback` if there is none.
std::uint8_t take_number(std::string_view& text, std::uint8_t fallback) {
  std::uint8_t number = fallback;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc()) text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

/// "layers.{2*block+1}.x" -> "layers.{}.x", step 2, first 1.
void set_source(const Json& value, LayoutTables& tables, Row& row) {
  const std::string_view name = value.as_string();
  VIT_CHECK(!name.empty() && name.size() <= kMaxName, kWhere, value.where(), " must be a name of 1 to ",
            kMaxName, " characters");
  std::string& text = tables.texts.emplace_back(name);
  const std::size_t open = text.find('{'), close = text.find('}');
  if (is_numbered(row.part)) {
    VIT_CHECK(open != std::string::npos && close != std::string::npos && open < close, kWhere, value.where(),
              " must have {block} for the number of the block, found ", in_quotes(name));
    std::string_view inside = std::string_view(text).substr(open + 1, close - open - 1);
    row.step = take_number(inside, 1);
    if (inside.starts_with('*')) inside.remove_prefix(1);
    const bool named = inside.starts_with("block");
    if (named) inside.remove_prefix(5);
    if (named && inside.starts_with('+')) {
      inside.remove_prefix(1);
      row.first = take_number(inside, 0);
    }
    VIT_CHECK(named && inside.empty() && row.step != 0, kWhere, value.where(),
              ": between the braces block, N*block or N*block+M is expected, found ", in_quotes(name));
    text.replace(open, close - open + 1, "{}");
    VIT_CHECK(text.find_first_of("{}", open + 2) == std::string::npos, kWhere, value.where(),
              " has more than one {block}");
  } else {
    VIT_CHECK(open == std::string::npos && close == std::string::npos, kWhere, value.where(),
              ": this tensor is of no block, found ", in_quotes(name));
  }
  const std::size_t star = text.find('*');
  VIT_CHECK(star == std::string::npos || star + 1 == text.size(), kWhere, value.where(),
            ": * is allowed only at the end, found ", in_quotes(name));
  row.source = text;
}

void set_form(const Json& value, Row& row, Form form) {
  VIT_CHECK(row.form == Form::as_stored, kWhere, value.where(), ": only one such form can be asked for");
  row.form = form;
}

void set_rows(const Json& value, Row& row) {
  value.expect_array(2, "[index, of]");
  row.from.of = static_cast<std::uint8_t>(value[1].as_size({1, kMaxPieces}));
  row.from.index = static_cast<std::uint8_t>(value[0].as_size({0, row.from.of - std::size_t{1}}));
}

void read_member(const Json& value, LayoutTables& tables, Row& row) {
  const std::string_view key = value.key();
  if (key == "source") return set_source(value, tables, row);
  if (key == "rows") return set_rows(value, row);
  if (key == "mask") {
    Row mask{.part = row.part};
    set_source(value, tables, mask);
    row.mask = mask.source;
    return;
  }
  if (key == "constant" || key == "sincos_2d") {
    const double number = value.as_double();
    VIT_CHECK(std::abs(number) <= 1e6, kWhere, value.where(), " must be at most 1e6, found ", number);
    row.constant = static_cast<float>(number);
    if (key == "constant") return;
    VIT_CHECK(row.part == Part::position_table && number > 0, kWhere, value.where(),
              " means a positive base, and is only for position_table");
    return set_form(value, row, Form::sincos);
  }
  VIT_CHECK(key == "transposed" || key == "channels_last" || key == "head_rows", kWhere, value.where(),
            ": unknown key; source, rows, transposed, channels_last, head_rows, mask, constant and sincos_2d "
            "are known");
  if (!value.as_bool()) return;
  set_form(value, row,
           key == "transposed"      ? Form::transposed
           : key == "channels_last" ? Form::pixels
                                    : Form::head_rows);
}

Row read_piece(const Json& value, Part part, LayoutTables& tables) {
  Row row{.part = part};
  if (value.is_string()) {
    set_source(value, tables, row);
    return row;
  }
  VIT_CHECK(value.is_object(), kWhere, value.where(), " must be a name, an object, or an array of these");
  bool has_numbers = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    read_member(value[i], tables, row);
    const std::string_view key = value[i].key();
    has_numbers = has_numbers || key == "source" || key == "constant" || key == "sincos_2d";
  }
  VIT_CHECK(has_numbers, kWhere, value.where(), " lacks source, constant or sincos_2d");
  VIT_CHECK(row.source.empty() || row.form != Form::sincos, kWhere, value.where(),
            " cannot have both source and sincos_2d");
  return row;
}

/// A part by its name, or a pair of weight and bias by what both names begin with.
struct Named {
  Part part{};
  bool pair = false;
};

Named find_named(const Json& value) {
  const std::string key(value.key());
  if (const auto part = find_part(key)) return {.part = *part};
  for (const char* ending : {".weight", ".gamma"}) {
    if (const auto part = find_part(key + ending)) return {.part = *part, .pair = true};
  }
  fail(kWhere, value.where(), ": no model has a tensor ", in_quotes(key),
       "; vit/weights/layouts.md lists them");
}

void read_tensor(const Json& value, LayoutTables& tables) {
  const Named named = find_named(value);
  const std::size_t pieces = value.is_array() ? value.size() : 1;
  VIT_CHECK(pieces >= 1 && pieces <= kMaxPieces, kWhere, value.where(), " must have 1 to ", kMaxPieces,
            " pieces, found ", pieces);
  for (std::size_t i = 0; i < pieces; ++i) {
    const Json piece = value.is_array() ? value[i] : value;
    Row row = read_piece(piece, named.part, tables);
    VIT_CHECK(applies(row.form, named.part), kWhere, piece.where(), ": its form has no meaning for ",
              part_name(named.part));
    row.into = {.index = static_cast<std::uint8_t>(i), .of = static_cast<std::uint8_t>(pieces)};
    VIT_CHECK(row.source.ends_with('*') == named.pair || row.source.empty(), kWhere, piece.where(),
              named.pair ? " means weight and bias: its name must end with *"
                         : ": only a name for both weight and bias ends with *");
    tables.rows.push_back(row);
    if (!named.pair || !row.source.empty()) continue;
    row.part = next(named.part);  // a constant for both
    tables.rows.push_back(row);
  }
}

}  // namespace

std::shared_ptr<LayoutTables> read_layout_tables(const Json& layout) {
  auto tables = std::make_shared<LayoutTables>();
  const Json tensors = layout.at("tensors");
  tensors.expect(Json::Kind::object);
  for (std::size_t i = 0; i < tensors.size(); ++i) read_tensor(tensors[i], *tables);
  VIT_CHECK(is_sound(tables->rows), kWhere, tensors.where(),
            ": a tensor is listed there twice, by itself and in a pair");
  if (const auto ignore = layout.find("ignore")) {
    ignore->expect(Json::Kind::object);
    for (std::size_t i = 0; i < ignore->size(); ++i) {
      const Json reason = (*ignore)[i];
      VIT_CHECK(!reason.key().empty() && !reason.as_string().empty(), kWhere, reason.where(),
                " must say why the tensor is ignored");
      const std::string_view name = tables->texts.emplace_back(reason.key());
      tables->ignored.push_back({name, tables->texts.emplace_back(reason.as_string())});
    }
  }
  return tables;
}

}  // namespace vit::internal
