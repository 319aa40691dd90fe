#include "apps/vit/rings/show/show_run.h"

#include <filesystem>
#include <new>
#include <utility>

#include "apps/vit/ground/interrupt.h"
#include "apps/vit/html/run_page.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"

namespace vit::app {
namespace {

constexpr std::size_t kPageEdge = 512;      // of a panel, in pixels
constexpr std::size_t kMaxPageEdge = 1600;  // of a picture of several panels

OutputKey patch_output(std::size_t layer, const ModelConfig& config) {
  if (layer + 1 == config.encoder.depth) return Output::tokens;
  return {Output::block, layer};
}

}  // namespace

Show::Show(const ShowOptions& options, std::vector<Input> inputs, PatchRun& run, Progress& progress)
    : options_(options),
      inputs_(std::move(inputs)),
      run_(run),
      progress_(progress),
      layer_(resolve_layer(options, run.model().config())),
      patch_output_(patch_output(layer_, run.model().config())),
      numbers_(options.data),
      sink_(options.output, *options.what == What::match ? 1 : inputs_.size(), inputs_) {
  if (is_drawn()) check_can_draw();
  if (*options_.what == What::attention) check_attention();
}

void Show::draw() {
  switch (*options_.what) {
    case What::pca: draw_pca(); break;
    case What::attention: draw_attention(); break;
    case What::similarity: draw_similarity(); break;
    case What::match: draw_match(); break;
    case What::depth: draw_depth(); break;
    case What::segments: draw_segments(); break;
  }
  if (!files_.empty()) numbers_.write(files_);
  sink_.finish();
  if (!options_.html.empty()) write_html();
}

std::string Show::summary() const {
  if (sink_.is_used()) return sink_.summary();
  return (options_.data.empty() ? options_.html : options_.data).string();
}

void Show::for_each(const std::function<void(const Input&)>& work) {
  for (const Input& input : inputs_) {
    if (interrupted()) return;
    try {
      work(input);
      progress_.add_done(1);
    } catch (const Error& error) {
      progress_.add_failed(input.name, error.what());
    } catch (const std::bad_alloc&) {
      progress_.add_failed(input.name, "not enough memory for an image of this size; try a smaller --size");
    }
  }
}

SeenImage Show::see_patches(const Input& input) {
  const auto request = [this](const PatchLayout&) { return Request{patch_output_}; };
  return run_.run(input, request, outputs_);
}

TensorView<const float> Show::patches() const {
  const ImageOutputs image = outputs_[0];
  const TensorView<const float> tokens = image[patch_output_];
  const std::size_t prefix = tokens.dim(0) - image.grid().rows * image.grid().columns;
  const TensorView<const float> patches = tokens.part(prefix, tokens.dim(0) - prefix);
  check_finite(patches.flat(), "show", "the features are");
  return patches;
}

void Show::add_map_picture(const Input& input, MapPicture picture) {
  if (!options_.html.empty()) {
    MapPicture plain = picture;  // the page shows the caption as text
    plain.caption.clear();
    add_to_page(input, picture.caption, draw_maps(plain, {.style = options_.style, .max_edge = kPageEdge}));
  }
  if (!sink_.is_used()) return;
  if (sink_.is_sheet()) {  // only names under each picture
    sink_.set_sheet_caption({picture.caption.begin() + 1, picture.caption.end()});
    picture.caption.resize(1);
  }
  sink_.add(input.name, draw_maps(picture, {.style = options_.style, .max_edge = sink_.max_edge()}));
}

void Show::add_to_page(const Input& input, std::span<const std::string> caption, const Image& picture) {
  PageItem& item = page_.emplace_back(named_item(input.name));
  item.link = file_link(input);
  item.thumbnail = {.webp = encode_thumbnail(picture, kMaxPageEdge), .failure = {}, .size = picture.size()};
  if (inputs_.size() == 2 && *options_.what == What::match) item.name += " and " + inputs_[1].name;
  for (const std::string& line : caption.subspan(1)) item.note += (item.note.empty() ? "" : "; ") + line;
}

void Show::write_html() {
  HtmlPage page{.title = "vit show",
                .facts = {count_of(page_.size(), "image")},
                .images = PageImages::large,
                .sections = {}};
  page.sections.push_back({.title = {}, .note = {}, .leads = {}, .items = std::move(page_)});
  write_run_page(options_.html, std::move(page), inputs_, options_.common);
}

std::string Show::patch_text() const {
  return patch_output_ == Output::tokens ? "patches after the final norm"
                                         : text("patches after block ", layer_);
}

std::string Show::grid_text(const PatchLayout& layout) const {
  return text(layout.grid.columns, " x ", layout.grid.rows, " patches of ", layout.patch_size,
              " pixels of the model's input, ", options_.style == DrawStyle::plain ? "nearest" : "bilinear");
}

std::string Show::array_name(const char* name) const {
  return text(name, ".", files_.size());
}

std::string short_name(const Input& input) {
  return std::filesystem::path(input.name).filename().string();
}

}  // namespace vit::app
