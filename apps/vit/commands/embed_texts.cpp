#include <memory>
#include <span>
#include <utility>

#include "apps/vit/commands/embed.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/options/record.h"
#include "vit/base/check.h"
#include "vit/session.h"

namespace vit::app {

TextsToEncode read_texts_to_encode(const EmbedOptions& options) {
  if (!options.texts.are_given()) {
    if (options.templates.are_given()) fail_usage("--template requires --text or --text-file");
    return {};
  }
  TextsToEncode out{.names = read_texts(options.texts), .templates = read_templates(options.templates)};
  // names of classes, as of --classes-file
  if (!out.templates.empty())
    std::erase_if(out.names, [](const std::string& name) { return is_blank(name); });
  VIT_CHECK(!out.names.empty(), "embed", options.texts.file.string(), ": no texts");
  return out;
}

TextJob text_job(const EmbedOptions& options, const TextsToEncode& texts) {
  return {.name = "texts",
          .common = options.common,
          .texts = texts.names,
          .templates = texts.templates,
          .reads = options.text_files(),
          .writes = {options.output}};
}

void add_texts(const EmbedOptions& options, NamedVectors vectors, ResultWriter& writer) {
  for (std::size_t i = 0; options.normalize && i < vectors.names.size(); ++i)
    normalize_vector(std::span(vectors.numbers).subspan(i * vectors.width, vectors.width));
  writer.add_texts(std::move(vectors));
}

RunFacts text_facts(const EmbedOptions& options, const TextTower& tower, const TextsToEncode& texts) {
  RunFacts facts{.model = run_model(options.common, tower), .others = {}};
  std::string templates;
  for (const std::string& pattern : texts.templates) templates += (templates.empty() ? "" : "\n") + pattern;
  facts.others.emplace_back("template", templates);
  facts.others.emplace_back("library", to_string(tower.tokenizer().library()));
  facts.others.emplace_back("normalized", options.normalize ? "yes" : "no");
  return facts;
}

int embed_texts(const EmbedOptions& options, ResultFormat format, const TextsToEncode& texts) {
  std::shared_ptr<const TextTower> tower;
  return run_texts(
      text_job(options, texts), [&] { return tower = load_text_tower(options.common); },
      [&](NamedVectors vectors) {
        ResultWriterOptions writer_options{.path = options.output, .format = format, .names = {}};
        if (options.shard) writer_options.row_shapes.emplace();
        if (format == ResultFormat::safetensors) writer_options.facts = text_facts(options, *tower, texts);
        const auto writer = make_result_writer(writer_options);
        add_texts(options, std::move(vectors), *writer);
        writer->finish();
      });
}

}  // namespace vit::app
