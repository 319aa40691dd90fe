#include "apps/vit/rings/serve/work/member_names.h"

#include <cstddef>

namespace vit::app {

std::string of_members(std::string_view message) {
  const auto is_letter = [&](std::size_t i) {
    return i < message.size() && message[i] >= 'a' && message[i] <= 'z';
  };
  std::string out;
  bool is_name = false;  // of an option
  for (std::size_t i = 0; i < message.size(); ++i) {
    const bool begins_word = out.empty() || out.back() == ' ' || out.back() == '(' || out.back() == '\'';
    if (begins_word && message.substr(i).starts_with("--") && is_letter(i + 2)) {
      is_name = true;
      ++i;
      continue;
    }
    is_name = is_name && (is_letter(i) || message[i] == '-');
    out += is_name && message[i] == '-' && is_letter(i + 1) ? '_' : message[i];
  }
  return out;
}

}  // namespace vit::app
