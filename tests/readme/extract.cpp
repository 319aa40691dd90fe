// Turns the fenced blocks of pages and of the comments of public headers into tests: every `cpp` block, and
// every block of a header, into a test case, all `sh` blocks into one
// script, and all `python` blocks into another. Commands in `text` blocks, which need downloads or large
// models, do not run: the script checks that vit has these commands and options. Usage: extract snippets.cpp
// commands.sh snippets.py PAGE.md...
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Block {
  std::string page;     // path of the file
  std::string kind;     // word after the opening fence
  std::string heading;  // nearest heading above
  int line = 0;         // of the first line inside, counted from 1
  std::vector<std::string> lines;
};

/// The text of a comment's line; nothing for other lines.
std::optional<std::string> comment_of(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  if (first == line.npos) return std::nullopt;
  for (const std::string_view mark : {"///", "//", "*"}) {
    const std::string_view rest = std::string_view(line).substr(first);
    if (!rest.starts_with(mark)) continue;
    return std::string(
        rest.substr(rest.starts_with(std::string(mark) + " ") ? mark.size() + 1 : mark.size()));
  }
  return std::nullopt;
}

/// The examples of a header, which take nothing from each other.
void read_examples(const std::string& header, std::vector<Block>& blocks) {
  std::ifstream in(header);
  blocks.push_back({header, "header", header, 1, {"#include \"" + header + "\""}});
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const std::optional<std::string> text = comment_of(line);
    if (text && text->starts_with("```")) {
      if (!inside) blocks.push_back({header, "cpp", header, number + 1, {}});
      inside = !inside;
    } else if (inside) {
      blocks.back().lines.push_back(text.value_or("#error an example that does not end"));
    }
  }
}

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
    if (block.kind != "cpp" && block.kind != "header") continue;
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

/// A call of the script's function `known` with the command of a line and its options; nothing for other
/// lines.
void write_known(const std::string& line, std::ostream& out) {
  if (!line.starts_with("vit ")) return;
  std::istringstream words(line.substr(4, line.find(" #") - 4));
  std::string command, word;
  words >> command;
  if (command == "anomaly" && words >> word) command += " " + word;
  out << "known '" << command << "'";
  while (words >> word) {
    if (word.starts_with("--")) out << " " << word.substr(0, word.find('='));
  }
  out << "\n";
}

/// Servers in the background listen on a port of this process, so that several builds can be tested at once;
/// one in the foreground would never end and only checks its options and models.
std::string as_tested(std::string line) {
  const std::string serve = "vit serve ", usual = ":3003", own = ":${port}";
  const bool in_background = line.substr(0, line.find(" #")).find('&') != std::string::npos;
  if (line.starts_with(serve)) line.insert(serve.size(), in_background ? "--port ${port} " : "--check ");
  for (std::size_t at = line.find(usual); at != std::string::npos; at = line.find(usual, at + own.size())) {
    line.replace(at, usual.size(), own);
  }
  return line;
}

void write_commands(const std::vector<Block>& blocks, std::ostream& out) {
  out << R"sh(set -euo pipefail
port=$((20000 + $$ % 20000))
known() {
  local option help
  help=$(vit $1 --help) || { echo "vit $1: no such command"; exit 1; }
  for option in "${@:2}"; do
    [[ $help =~ (^|[[:space:],])"$option"([[:space:]=,]|$) ]] || { echo "vit $1 has no $option"; exit 1; }
  done
}
)sh";
  for (const Block& block : blocks) {
    if (block.kind != "sh" && block.kind != "text") continue;
    out << "echo '== " << block.page << ", line " << block.line << "'\n";
    for (const std::string& line : block.lines) {
      if (block.kind == "text") {
        write_known(line, out);
      } else {
        out << as_tested(line) << "\n";
      }
    }
  }
}

/// The package that a block needs and a machine may lack; "" if none.
std::string needed_package(const Block& block) {
  for (const std::string& line : block.lines) {
    if (line.find("vitcpp.ray") != std::string::npos) return "ray";
    if (line.find("vitcpp.spark") != std::string::npos) return "pyspark";
  }
  return "";
}

void write_python(const std::vector<Block>& blocks, std::ostream& out) {
  out << "import importlib.util\n";
  for (const Block& block : blocks) {
    if (block.kind != "python") continue;
    const std::string package = needed_package(block);
    out << "print('== " << block.page << ", line " << block.line << "')\n";
    if (!package.empty()) out << "if importlib.util.find_spec('" << package << "'):\n";
    for (const std::string& line : block.lines) out << (package.empty() ? "" : "    ") << line << "\n";
    if (!package.empty()) out << "else:\n    print('skipped: no " << package << "')\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::vector<Block> blocks;
  for (int i = 4; i < argc; ++i) {
    const std::size_t before = blocks.size();
    if (std::string_view(argv[i]).ends_with(".h")) {
      read_examples(argv[i], blocks);
    } else {
      read_blocks(argv[i], blocks);
    }
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
