#include "apps/vit/commands/machine_facts.h"

#include <cstdlib>

#include "apps/vit/ground/text_format.h"
#include "vit/machine.h"
#include "vit/version.h"

namespace vit::app {
namespace {

/// Why these kernels were chosen.
std::string reason_of_choice(const CommonOptions& options) {
  if (!options.model_options.kernels.empty()) return "selected by --kernels";
  const char* const variable = std::getenv("VIT_KERNELS");
  if (variable != nullptr && *variable != '\0') return "selected by VIT_KERNELS";
  return "the fastest that this machine supports";
}

/// Of NAME:portable, what the list has.
std::string table_name(const std::string& name) {
  return name.substr(0, name.find(':'));
}

JsonValue kernels_json(const CommonOptions& options) {
  JsonValue available = JsonValue::array();
  for (const KernelInfo& kernels : available_kernels()) {
    available.push_back({{"name", kernels.name},
                         {"description", kernels.description},
                         {"bfloat16", kernels.bfloat16},
                         {"int8", kernels.int8}});
  }
  return {{"available", available},
          {"chosen", table_name(find_kernels(options.model_options.kernels).name)},
          {"why", reason_of_choice(options)}};
}

/// The contract of reproducible results of the chosen kernels and precision.
void add_bits(JsonValue& out, const ModelOptions& options) {
  const BitsContract bits = bits_contract(options.precision, options.kernels);
  out["bits"] = bits.number != 0 ? JsonValue(bits.number) : JsonValue();
  if (bits.number == 0) out["bits_reason"] = bits.why_not;
}

}  // namespace

JsonValue machine_json(const CommonOptions& options, bool measure_peak) {
  JsonValue out;
  out["version"] = version();
  out["cpu"] = {{"name", cpu_name()}, {"cores", num_threads()}, {"instruction_sets", cpu_instruction_sets()}};
  out["kernels"] = kernels_json(options);
  add_bits(out, options.model_options);
  if (measure_peak) {
    const int threads = num_threads(options.session.threads);
    const std::string kernels = find_kernels(options.model_options.kernels).name;
    out["peak"] = {{"threads", threads}, {"gflops", measure_peak_gflops(threads, kernels)}};
  }
  return out;
}

std::string kernels_text(const JsonValue& kernels) {
  std::string out, arithmetic;
  for (const JsonValue& table : kernels["available"]) {
    const std::string name = table["name"];
    if (name == kernels["chosen"]) {
      for (const char* const dtype : {"bfloat16", "int8"})
        arithmetic += text("  --dtype ", dtype, ": ", table[dtype].get<std::string>(), "\n");
    }
    out += (name == kernels["chosen"] ? "  * " : "    ") + name +
           std::string(name.size() < 12 ? 12 - name.size() : 1, ' ') +
           table["description"].get<std::string>() + "\n";
  }
  return out + "  * chosen: " + kernels["why"].get<std::string>() + "\n" + arithmetic;
}

std::string bits_text(const JsonValue& machine, const std::string& title) {
  if (!machine.contains("bits_reason"))
    return text(title, machine["bits"].get<int>(),
                ": the same on every machine, for any batch and threads\n");
  return text(title, "none across machines: ", machine["bits_reason"].get<std::string>(), "\n");
}

std::string machine_text(const JsonValue& machine) {
  std::string out = "version     " + machine["version"].get<std::string>() + "\n";
  out += "processor   " + machine["cpu"]["name"].get<std::string>() + "\n";
  out += text("cores       ", machine["cpu"]["cores"].get<int>(), "\nsupports   ");
  for (const JsonValue& set : machine["cpu"]["instruction_sets"]) out += " " + set.get<std::string>();
  out += "\nkernels\n" + kernels_text(machine["kernels"]) + bits_text(machine, "bits        ");
  if (machine.contains("peak")) {
    const JsonValue& peak = machine["peak"];
    out += text("peak        ", peak["gflops"].get<double>(), " GFLOP/s with ", peak["threads"].get<int>(),
                " threads\n");
  }
  return out;
}

}  // namespace vit::app
