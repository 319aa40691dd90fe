// Runs targets without a fuzzing engine. "vit_fuzz_smoke TARGET SECONDS" mutates the seeds of a target;
// "vit_fuzz_smoke TARGET FILE..." replays inputs. Fails when anything but vit::Error comes out.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/mutator.h"
#include "vit/base/error.h"

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

int mutate(const Target& target, double seconds) {
  const auto seeds = target.seeds();
  if (seeds.empty()) {
    std::printf("%s: not in this build\n", target.name.data());
    return 0;
  }
  for (const std::string& seed : seeds) {
    const Result result = run(target, seed);
    if (result.outcome != Outcome::accepted) return report(target, seed, result.message);
  }
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
    std::ifstream file(paths[i], std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    const Result result = run(target, input);
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
    return *end == '\0' ? mutate(target, seconds) : replay(target, argc - 2, argv + 2);
  }
  std::printf("usage: vit_fuzz_smoke TARGET SECONDS | vit_fuzz_smoke TARGET FILE...\ntargets:");
  for (const Target& target : vit::fuzz::targets()) std::printf(" %s", target.name.data());
  std::printf("\n");
  return 2;
}
