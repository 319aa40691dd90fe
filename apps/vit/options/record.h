// The record of how a result was made (outputs/run_facts.h): made from the options of a run, and taken by a
// later one, which does not need them again.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "apps/vit/options/options.h"
#include "apps/vit/outputs/run_facts.h"
#include "vit/model.h"
#include "vit/text_encoder.h"

namespace vit::app {

/// What a run with these options and features computes.
RunModel run_model(const CommonOptions& options, const Model& model, std::span<const std::string> features);
/// Of vectors of texts: the fingerprint is that of the text tower, the feature "text".
RunModel run_model(const CommonOptions& options, const TextTower& tower);

/// Takes the model, how it is loaded, the size, the precision and the preprocessing of a result, unless the
/// command line says them. What it says and contradicts the record is an Error that names both: a value of an
/// option, the size, padding or channels. Whether the model is the same one is decided by the fingerprint,
/// once it is loaded; its path, and those of files that belong to it, may have changed. So may the precision.
/// `place` names the result.
void take_record(const RunModel& made, const std::string& place, CommonOptions& options);
/// The same for the text of a record in a file at `place`; "" = an older file without one, about which a line
/// is printed, unless --quiet.
void take_record(const std::string& record, const std::string& place, CommonOptions& options);

/// The record of a run that is resumed, and takes from it what the command line does not say; nothing if
/// there is none yet.
std::optional<RunFacts> resume_record(const std::filesystem::path& output, bool is_folder,
                                      CommonOptions& options);

}  // namespace vit::app
