// Runs the test cases and keeps account of the skipped ones. The exit status is 77 if every case that ran was
// skipped, which CTest shows as skipped, and otherwise what doctest returns: a failure is never a skip. If
// VIT_SKIPPED_CASES names a file, the names of the skipped cases are written to it, sorted.
// VIT_TESTS_EMULATE_AMX: all cases run as on a processor with AMX, in software where there is none.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // SIGILL is for the emulator; CTest names the cases that crash
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/support/amx_emulator.h"
#include "tests/support/shared_data.h"
#include "vit/kernels/amx.h"

namespace {

constexpr int kSkippedStatus = 77;

struct Account {
  std::vector<std::string> skipped;
  std::size_t num_run = 0;
  std::size_t num_late = 0;  // cases that checked something before they were left
};

Account& account() {
  static Account the_account;
  return the_account;
}

class SkipListener : public doctest::IReporter {
 public:
  explicit SkipListener(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& data) override { name_ = data.m_name; }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    account().num_run += 1;
    const auto path = vit::test::take_skipped();
    if (!path) return;
    if (stats.numAssertsCurrentTest != 0 || stats.failure_flags != 0) {
      account().num_late += 1;
      std::cout << "error: not skipped at the top of the case: " << name_ << "\n";
    } else {
      account().skipped.push_back(name_);
      std::cout << "skipped: no shared data (" << *path << "): " << name_ << "\n";
    }
  }

  void report_query(const doctest::QueryData& /*data*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*data*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*error*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*data*/) override {}  // by the filters of doctest

 private:
  std::string name_;
};

REGISTER_LISTENER("skips", 1, SkipListener);

bool write_skipped(const char* path) {
  std::vector<std::string> names = account().skipped;
  std::ranges::sort(names);
  std::ofstream file(path);
  for (const std::string& name : names) file << name << "\n";
  file.close();
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (std::getenv("VIT_TESTS_EMULATE_AMX") != nullptr) {
    vit::test::emulate_amx();
    vit::internal::kernels::assume_amx();
  }
  const int status = doctest::Context(argc, argv).run();
  if (const char* const path = std::getenv("VIT_SKIPPED_CASES"); path != nullptr && !write_skipped(path)) {
    std::cerr << "error: cannot write " << path << "\n";
    return 1;
  }
  if (status != 0 || account().num_late != 0) return status != 0 ? status : 1;
  return account().num_run != 0 && account().skipped.size() == account().num_run ? kSkippedStatus : 0;
}
