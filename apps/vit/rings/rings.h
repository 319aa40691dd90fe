// What the rings add to the program: commands, and measures of vit evaluate. A ring that is not built has its
// names in rings/without/, which refuse to run.
#pragma once

#include <memory>

#include "apps/vit/commands/commands.h"
#include "apps/vit/commands/measure.h"
#include "apps/vit/ground/command_line.h"
#include "apps/vit/options/page_vectors.h"

namespace vit::app {

// dense
Command depth_command();
Command segment_command();
Command detect_command();
Command pose_command();
/// --phrase of bench: a look at an image, and each further phrase.
int bench_prompts(const CommonOptions& common, const PromptBench& options);
/// --task depth|segment of evaluate: maps compared with those of a data set.
std::shared_ptr<Measure> map_measure();

// pages
std::unique_ptr<PageVectors> load_page_vectors(const CommonOptions& options);
/// The same; null for a model that gives no vectors of pages.
std::unique_ptr<PageVectors> open_page_vectors(const CommonOptions& options);
/// The scores of pages for the vectors (m, E) of a question.
PageVectors::Score page_score(TensorView<const float> question);
/// --features page of embed.
int embed_pages(const EmbedPages& job);

// show
Command show_command();

// fit
Command fit_command();

// index
Command index_command();
Command search_command();
Command duplicates_command();

// anomaly
Command anomaly_command();
/// --anomaly of evaluate: the separation of good images and damaged ones by a bank.
std::shared_ptr<Measure> anomaly_measure();

// serve
Command serve_command();
/// --serve of bench: prints what a server of the model holds.
int bench_server(const CommonOptions& common, const ServerBench& options);

}  // namespace vit::app
