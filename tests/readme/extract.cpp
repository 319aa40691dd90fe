// Turns the fenced blocks of README.md into tests: every `cpp` block into a test case, all `sh` blocks into
// one script. Blocks of other kinds are left alone. Usage: extract README.md snippets.cpp commands.sh
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct Block {
  std::string kind;     // word behind the opening fence
  std::string heading;  // nearest heading above
  int line = 0;         // of the first line inside, counted from 1
  std::vector<std::string> lines;
};

std::vector<Block> read_blocks(std::istream& in) {
  std::vector<Block> blocks;
  std::string heading;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({line.substr(3), heading, number + 1, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(line);
    } else if (line.starts_with("#")) {
      heading = line.substr(line.find_first_not_of("# "));
    }
  }
  return blocks;
}

/// Include lines go to the top of the file, the rest of a block becomes the body of a test case.
void write_snippets(const std::vector<Block>& blocks, std::ostream& out) {
  for (const Block& block : blocks) {
    if (block.kind != "cpp") continue;
    for (const std::string& line : block.lines) {
      if (line.starts_with("#include")) out << line << "\n";
    }
  }
  out << "#include <doctest/doctest.h>\n";
  for (const Block& block : blocks) {
    if (block.kind != "cpp") continue;
    out << "\nTEST_CASE(\"readme: " << block.heading << ", line " << block.line << "\") {\n";
    out << "#line " << block.line << " \"README.md\"\n";
    for (const std::string& line : block.lines) out << (line.starts_with("#include") ? "" : line) << "\n";
    out << "}\n";
  }
}

void write_commands(const std::vector<Block>& blocks, std::ostream& out) {
  out << "set -euo pipefail\n";
  for (const Block& block : blocks) {
    if (block.kind != "sh") continue;
    out << "echo '== README.md, line " << block.line << "'\n";
    for (const std::string& line : block.lines) out << line << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  std::ifstream readme(argv[1]);
  const std::vector<Block> blocks = read_blocks(readme);
  std::ofstream snippets(argv[2]);
  std::ofstream commands(argv[3]);
  write_snippets(blocks, snippets);
  write_commands(blocks, commands);
  snippets.flush();
  commands.flush();
  if (blocks.empty() || !snippets || !commands) {
    std::cerr << "extract: no blocks in " << argv[1] << ", or the results could not be written\n";
    return 1;
  }
  return 0;
}
