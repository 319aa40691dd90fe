// Turns the fenced blocks of pages into tests: every `cpp` block into a test case, all `sh` blocks into one
// script, and all `python` blocks into another. Blocks of other kinds are left alone. Usage: extract
// snippets.cpp commands.sh snippets.py PAGE.md...
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct Block {
  std::string page;     // path of the file
  std::string kind;     // word behind the opening fence
  std::string heading;  // nearest heading above
  int line = 0;         // of the first line inside, counted from 1
  std::vector<std::string> lines;
};

void read_blocks(const std::string& page, std::vector<Block>& blocks) {
  std::ifstream in(page);
  std::string heading;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (line.starts_with("```")) {
      if (!inside) blocks.push_back({page, line.substr(3), heading, number + 1, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(line);
    } else if (line.starts_with("#")) {
      heading = line.substr(line.find_first_not_of("# "));
    }
  }
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
    out << "#line " << block.line << " \"" << block.page << "\"\n";
    for (const std::string& line : block.lines) out << (line.starts_with("#include") ? "" : line) << "\n";
    out << "}\n";
  }
}

void write_commands(const std::vector<Block>& blocks, std::ostream& out) {
  out << "set -euo pipefail\n";
  for (const Block& block : blocks) {
    if (block.kind != "sh") continue;
    out << "echo '== " << block.page << ", line " << block.line << "'\n";
    for (const std::string& line : block.lines) out << line << "\n";
  }
}

void write_python(const std::vector<Block>& blocks, std::ostream& out) {
  for (const Block& block : blocks) {
    if (block.kind != "python") continue;
    out << "print('== " << block.page << ", line " << block.line << "')\n";
    for (const std::string& line : block.lines) out << line << "\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::vector<Block> blocks;
  for (int i = 4; i < argc; ++i) {
    const std::size_t before = blocks.size();
    read_blocks(argv[i], blocks);
    if (blocks.size() > before) continue;
    std::cerr << "extract: no blocks in " << argv[i] << "\n";
    return 1;
  }
  std::ofstream snippets(argv[1]);
  std::ofstream commands(argv[2]);
  std::ofstream python(argv[3]);
  write_snippets(blocks, snippets);
  write_commands(blocks, commands);
  write_python(blocks, python);
  snippets.flush();
  commands.flush();
  python.flush();
  if (!snippets || !commands || !python) {
    std::cerr << "extract: the results could not be written\n";
    return 1;
  }
  return 0;
}
