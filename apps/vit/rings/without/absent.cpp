#include "apps/vit/rings/without/absent.h"

#include "apps/vit/ground/option_values.h"
#include "vit/base/check.h"

namespace vit::app {
using namespace internal;
void fail_absent(const std::string& name, const std::string& requirement) {
  fail(Where{std::string_view(name), ErrorKind::unsupported}, "vit ", name,
       " is not in this build: ", requirement);
}

namespace {

class AbsentMeasure : public Measure {
 public:
  AbsentMeasure(std::string option, std::string requirement)
      : option_(std::move(option)), requirement_(std::move(requirement)) {}

  void add_options(std::vector<Option>& list, CommonOptions& /*common*/) override {
    list.push_back({.name = option_,
                    .type_name = "VALUE",
                    .help = "Not in this build, which requires " + requirement_,
                    .target = text_target(value_)});
  }
  bool is_requested() const override { return !value_.empty(); }
  const char* excludes() const override { return "an option that this vit was built without"; }
  int run(const EvaluateRun& /*run*/) override { fail_absent("evaluate " + option_, requirement_); }

 private:
  const std::string option_, requirement_;
  std::string value_;
};

}  // namespace

Command absent_command(const std::string& name, const std::string& summary, const std::string& requirement) {
  return {.name = name,
          .summary = summary + " (not in this build)",
          .footer = "It is not in this build: " + requirement,
          .options = {},
          .run = [name, requirement]() -> int { fail_absent(name, requirement); },
          .ignores_arguments = true};
}

std::shared_ptr<Measure> absent_measure(const std::string& option, const std::string& requirement) {
  return std::make_shared<AbsentMeasure>(option, requirement);
}

}  // namespace vit::app
