// Results as JSON lines: {"file": ..., NAME: nested lists, ...}, one line per image; can be continued.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/common/output_file.h"
#include "apps/vit/common/result_writer.h"

namespace vit::app {

class JsonlWriter : public ResultWriter {
 public:
  /// With options.resume the lines of PATH.partial, else of PATH, are kept. Throws Error where they are not
  /// results of the same names.
  explicit JsonlWriter(const ResultWriterOptions& options);

  bool take_done(const std::string& file) override;
  std::string add(const std::string& file, std::span<const ResultArray> arrays) override;
  void finish() override;
  std::string summary() const override;

 private:
  /// Reads the names of the lines that are complete and cuts off one that is not.
  void take_over();

  ResultWriterOptions options_;
  ResumableFile::Start start_;
  ResumableFile file_;
  std::map<std::string, std::size_t>
      done_;  // "file" as it stands in the lines -> number of lines not yet taken
  std::map<std::string, std::size_t> kept_widths_;  // numbers of a row, by the first line that was kept
  std::size_t num_kept_ = 0;
  std::size_t num_added_ = 0;
};

/// Puts what --resume continues at PATH.partial, where only PATH exists; returns how to open it.
ResumableFile::Start prepare_resume(const std::filesystem::path& path);

}  // namespace vit::app
