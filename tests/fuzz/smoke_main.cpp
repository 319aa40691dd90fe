// Runs targets without a fuzzing engine. "vit_fuzz_smoke TARGET SECONDS [CORPUS]" replays the files of a
// folder and mutates them and the seeds of a target; "vit_fuzz_smoke TARGET FILE..." replays inputs. Fails
// when anything but vit::Error comes out.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/mutator.h"
#include "tests/support/files.h"
#include "vit/base/check.h"

namespace {

using vit::fuzz::Target;

enum class Outcome { accepted, refused, failed };

struct Result {
  Outcome outcome;
  std::string message;
};

Result run(const Target& target, const std::string& input) {
  try {
    target.run(input);
    return {Outcome::accepted, "accepted"};
  } catch (const vit::Error& error) {
    const std::string message = error.what();
    return {vit::fuzz::is_fit_for_a_line(message) ? Outcome::refused : Outcome::failed, message};
  } catch (const std::exception& error) {
    return {Outcome::failed, error.what()};
  }
}

/// Keeps the input that failed, for replay.
int report(const Target& target, const std::string& input, const std::string& message) {
  const std::string path = std::string("fuzz_") + target.name.data() + "_failed";
  std::ofstream(path, std::ios::binary) << input;
  std::printf("%s: %s\ninput kept in %s\n", target.name.data(), message.c_str(), path.c_str());
  return 1;
}

/// The files of a folder, sorted by name; none if there is no such folder.
std::vector<std::string> read_corpus(const std::filesystem::path& folder) {
  std::map<std::filesystem::path, std::string> files;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      files.emplace(entry.path(), vit::test::read_text(entry.path()));
  }
  std::vector<std::string> contents;
  for (auto& [path, bytes] : files) contents.push_back(std::move(bytes));
  return contents;
}

int mutate(const Target& target, double seconds, const std::vector<std::string>& corpus) {
  auto seeds = target.seeds();
  if (seeds.empty()) {
    std::printf("%s: not in this build\n", target.name.data());
    return 0;
  }
  for (const std::string& seed : seeds) {
    const Result result = run(target, seed);
    if (result.outcome != Outcome::accepted) return report(target, seed, result.message);
  }
  for (const std::string& input : corpus) {
    const Result result = run(target, input);
    if (result.outcome == Outcome::failed) return report(target, input, result.message);
  }
  seeds.insert(seeds.end(), corpus.begin(), corpus.end());
  vit::fuzz::Mutator mutator(1);
  std::size_t num_accepted = 0;
  std::size_t num_refused = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    const std::string input = mutator.next(seeds, target.structure);
    const Result result = run(target, input);
    if (result.outcome == Outcome::failed) return report(target, input, result.message);
    ++(result.outcome == Outcome::accepted ? num_accepted : num_refused);
  }
  std::printf("%s: %zu mutations accepted, %zu refused\n", target.name.data(), num_accepted, num_refused);
  return num_refused > 0 ? 0 : 1;
}

int replay(const Target& target, int count, char** paths) {
  for (int i = 0; i < count; ++i) {
    const Result result = run(target, vit::test::read_text(paths[i]));
    std::printf("%s: %s\n", paths[i], result.message.c_str());
    if (result.outcome == Outcome::failed) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (const Target& target : vit::fuzz::targets()) {
    if (argc < 3 || target.name != argv[1]) continue;
    char* end = nullptr;
    const double seconds = std::strtod(argv[2], &end);
    if (*end != '\0') return replay(target, argc - 2, argv + 2);
    return mutate(target, seconds, read_corpus(argc > 3 ? argv[3] : ""));
  }
  std::printf("usage: vit_fuzz_smoke TARGET SECONDS [CORPUS] | vit_fuzz_smoke TARGET FILE...\ntargets:");
  for (const Target& target : vit::fuzz::targets()) std::printf(" %s", target.name.data());
  std::printf("\n");
  return 2;
}
