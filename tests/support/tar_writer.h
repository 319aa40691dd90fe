// Builds .tar files (ustar, POSIX.1-1988) byte by byte, so that a test can break any field it likes.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace vit::test {

struct TarMemberToWrite {
  std::string name;
  std::string data;
  char type =
      '0';  // '0' file, '1' hard link, '2' symbolic link, '3' device, '5' folder, 'x' pax, 'L' GNU name
  std::string size{};       // octal digits in place of the length of the data
  std::string link{};       // what a link leads to
  bool is_damaged = false;  // a wrong checksum
};

/// A record of a pax header: "LENGTH KEY=VALUE\n", its own length counted.
inline std::string pax_record(const std::string& key, const std::string& value) {
  const std::size_t rest = key.size() + value.size() + 3;  // blank, equals sign, end of line
  std::size_t length = rest;
  while (rest + std::to_string(length).size() != length) length = rest + std::to_string(length).size();
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

inline std::string tar_member(const TarMemberToWrite& member) {
  constexpr std::size_t kBlock = 512;
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t offset, const std::string& text) {
    header.replace(offset, text.size(), text);
  };
  const auto octal = [](std::size_t value, int digits) {
    char out[16];
    std::snprintf(out, sizeof out, "%0*zo", digits, value);
    return std::string(out);
  };
  put(0, member.name.substr(0, 100));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, member.size.empty() ? octal(member.data.size(), 11) : member.size);
  put(136, "00000000000");
  put(148, "        ");
  header[156] = member.type;
  put(157, member.link);
  put(257, std::string("ustar\0"
                       "00",
                       8));
  std::size_t sum = member.is_damaged ? 1 : 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  std::string data = member.data;
  data.resize((data.size() + kBlock - 1) / kBlock * kBlock);
  return header + data;
}

/// Members, and the two empty blocks of the end.
inline std::string tar(const std::vector<TarMemberToWrite>& members) {
  std::string out;
  for (const TarMemberToWrite& member : members) out += tar_member(member);
  return out + std::string(1024, '\0');
}

}  // namespace vit::test
