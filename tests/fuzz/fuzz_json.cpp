// JSON text: parse it and touch every value in every way.
#include "tests/fuzz/fuzz_json.h"

#include "vit/base/error.h"
#include "vit/io/json.h"
#include "vit/io/json_writer.h"

namespace vit::fuzz {
using namespace internal;
namespace {

template <typename Access>
void allow_refusal(Access&& access) {
  try {
    access();
  } catch (const Error&) {
  }
}

void touch(const Json& value) {
  allow_refusal([&] { value.as_size(); });
  allow_refusal([&] { value.as_integer(); });
  allow_refusal([&] { value.as_double(); });
  allow_refusal([&] { value.as_bool(); });
  allow_refusal([&] { json_string(value.as_string()); });
  allow_refusal([&] { value.at("absent"); });
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value.is_object() && !value[i].is_null() && value.at(value[i].key()).where() != value[i].where()) {
      throw std::logic_error("a member is not found under its own key");
    }
    touch(value[i]);
  }
}

}  // namespace

void run_json(std::string_view input) {
  touch(parse_json(input, "input"));
}

std::vector<std::string> json_seeds() {
  return {
      R"({"architecture":"vit_tiny","num_classes":10,"mean":[0.5,-1e-3,2E+5],"x":null,"y":[true,false,{}]})",
      R"( [ "\u00e9\n\ud83d\ude00", 18446744073709551615, -9223372036854775808, 0.1, [], [[[1]]] ] )"};
}

}  // namespace vit::fuzz
