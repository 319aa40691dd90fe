// Results as JSON lines: {"file": ..., NAME: nested lists, ...}, one line per image; can be resumed.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/ground/output_file.h"
#include "apps/vit/outputs/result_writer.h"

namespace vit::app {

/// How each line begins.
inline constexpr std::string_view kLineStart = "{\"file\": ";

class JsonlWriter : public ResultWriter {
 public:
  /// With options.resume the lines of PATH.partial, else of PATH, are kept. Throws Error if they are not
  /// results of the same names, or options.facts differ from `.NAME.run.json` next to PATH.
  explicit JsonlWriter(const ResultWriterOptions& options);

  bool take_done(const std::string& file) override;
  std::string add(const std::string& file, std::span<const ResultArray> arrays) override;
  void add_texts(NamedVectors texts) override;
  void finish() override;
  std::string summary() const override;

 private:
  /// Throws Error if the run facts left by the last run differ.
  void check_facts();
  /// Writes the facts of this run, before its first line.
  void write_facts();
  /// Throws Error if the finished file does not start with results of the same names: it may be large, and
  /// is copied only then.
  void check_finished();
  /// Throws Error if this first line has other result names. Messages call its file `read_file`.
  void check_first_line(const std::string& line, const std::string& read_file);
  /// Reads the names of complete lines and truncates an incomplete one. Messages call the file
  /// `read_path`.
  void take_over(const std::filesystem::path& read_path);

  ResultWriterOptions options_;
  ResumableFile file_;
  std::map<std::string, std::size_t>
      done_;  // "file" as written in the lines -> number of lines not yet taken
  std::map<std::string, std::size_t> kept_widths_;  // numbers of a row, by the first line that was kept
  std::size_t num_kept_ = 0;
  std::size_t num_added_ = 0;
  std::size_t num_texts_ = 0;
  bool has_written_facts_ = false;
};

}  // namespace vit::app
