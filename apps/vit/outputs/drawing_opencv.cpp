// The drawing with OpenCV. Matrices hold B, G, R.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "apps/vit/outputs/drawing.h"
#include "vit/base/check.h"
#include "vit/opencv.h"

namespace vit::app {
namespace {

constexpr int kMargin = 10;
constexpr int kLineHeight = 18;
constexpr int kBarHeight = 12;
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
constexpr double kFontScale = 0.42;
constexpr double kColorShare = 0.6;  // of an overlay; the rest is the gray image
constexpr double kMinEdge = 320;     // of a panel: small images are enlarged to this
constexpr int kMaxPictureEdge = 30000;
const cv::Scalar kPaper(255, 255, 255), kInk(40, 40, 40), kPadding(128, 128, 128);

/// Sizes as OpenCV expects them.
int to_int(double value) {
  return static_cast<int>(std::lround(value));
}

/// Size in which the part of an image covered by patches is shown.
cv::Size panel_size(const PatchLayout& layout, std::size_t max_edge) {
  const double longer = std::max(layout.width(), layout.height());
  const double most = static_cast<double>(max_edge);
  const double scale = std::clamp(longer, std::min(kMinEdge, most), most) / longer;
  return {std::max(1, to_int(layout.width() * scale)), std::max(1, to_int(layout.height() * scale))};
}

/// The part of an image that the patches cover; padding is gray.
cv::Mat draw_source(const SeenImage& image, cv::Size size) {
  cv::Mat source = to_mat(image.source);
  const PatchLayout& layout = image.layout;
  double x_scale = size.width / layout.width(), y_scale = size.height / layout.height();
  const bool is_reduced = x_scale < 1 && y_scale < 1;
  if (is_reduced) {  // first, by averaging: interpolation would skip pixels
    const cv::Size whole(std::max(1, to_int(source.cols * x_scale)),
                         std::max(1, to_int(source.rows * y_scale)));
    const double columns = source.cols, rows = source.rows;
    cv::resize(source, source, whole, 0, 0, cv::INTER_AREA);
    x_scale = whole.width / columns;
    y_scale = whole.height / rows;
  } else {
    x_scale = y_scale = 1;
  }
  // from a pixel of the panel to one of `source`; both relative to pixel centers
  const double x_step = layout.width() / size.width * x_scale,
               y_step = layout.height() / size.height * y_scale;
  const cv::Matx23d to_source(x_step, 0, layout.origin().x * x_scale + 0.5 * x_step - 0.5, 0, y_step,
                              layout.origin().y * y_scale + 0.5 * y_step - 0.5);
  cv::Mat out;
  cv::warpAffine(source, out, to_source, size, cv::INTER_LINEAR | cv::WARP_INVERSE_MAP, cv::BORDER_REPLICATE);
  const double left = -layout.origin().x / layout.width(), top = -layout.origin().y / layout.height();
  const double right = left + static_cast<double>(layout.source.width) / layout.width();
  const double bottom = top + static_cast<double>(layout.source.height) / layout.height();
  const cv::Rect inside(cv::Point(to_int(left * size.width), to_int(top * size.height)),
                        cv::Point(to_int(right * size.width), to_int(bottom * size.height)));
  cv::Mat padding(size, CV_8UC1, cv::Scalar(255));
  padding(inside & cv::Rect({0, 0}, size)).setTo(0);
  out.setTo(kPadding, padding);
  return out;
}

/// The values of a map as a matrix (h, w) of one or three channels, blue first.
cv::Mat values_of(const PatchMap& map, GridSize grid) {
  const int rows = static_cast<int>(grid.rows), columns = static_cast<int>(grid.columns);
  const bool is_color = map.values.size() == 3 * grid.rows * grid.columns;
  const cv::Mat values(rows, columns, is_color ? CV_32FC3 : CV_32FC1, const_cast<float*>(map.values.data()));
  if (!is_color) return (values - map.low) / (map.high > map.low ? map.high - map.low : 1.0);
  cv::Mat bgr;
  cv::cvtColor(values, bgr, cv::COLOR_RGB2BGR);
  return bgr;
}

cv::Mat color_scale(const cv::Mat& from_0_to_1) {
  cv::Mat bytes, colors;
  from_0_to_1.convertTo(bytes, CV_8U, 255.0);  // saturates
  if (bytes.channels() == 3) return bytes;
  cv::applyColorMap(bytes, colors, cv::COLORMAP_VIRIDIS);
  return colors;
}

cv::Mat draw_map(const PatchMap& map, GridSize grid, const cv::Mat& source, DrawStyle style) {
  cv::Mat numbers, colors, grey;
  cv::resize(values_of(map, grid), numbers, source.size(), 0, 0,
             style == DrawStyle::plain ? cv::INTER_NEAREST : cv::INTER_LINEAR);
  colors = color_scale(numbers);
  cv::cvtColor(source, grey, cv::COLOR_BGR2GRAY);
  cv::cvtColor(grey, grey, cv::COLOR_GRAY2BGR);
  if (style == DrawStyle::overlay) cv::addWeighted(colors, kColorShare, grey, 1 - kColorShare, 0, colors);
  if (!map.is_shown.empty()) {
    cv::Mat hidden, flags(static_cast<int>(grid.rows), static_cast<int>(grid.columns), CV_8UC1,
                          const_cast<std::uint8_t*>(map.is_shown.data()));
    cv::resize(flags == 0, hidden, source.size(), 0, 0, cv::INTER_NEAREST);
    if (style == DrawStyle::overlay) {
      cv::Mat(grey * (1 - kColorShare)).copyTo(colors, hidden);
    } else {
      colors.setTo(cv::Scalar::all(0), hidden);
    }
  }
  return colors;
}

/// Characters of the font; others become a question mark.
std::string ascii(const std::string& text) {
  std::string out = text;
  for (char& c : out) {
    if (c < ' ' || c > '~') c = '?';
  }
  return out;
}

int width_of(const std::string& text) {
  int baseline = 0;
  return cv::getTextSize(text, kFont, kFontScale, 1, &baseline).width;
}

/// Breaks words into lines of at most `width` pixels; a longer word is truncated.
std::vector<std::string> wrapped(const std::string& text, int width) {
  std::vector<std::string> lines(1);
  std::istringstream words(ascii(text));
  for (std::string word; words >> word;) {
    while (word.size() > 1 && width_of(word) > width) word.pop_back();
    const std::string longer = lines.back().empty() ? word : lines.back() + " " + word;
    if (lines.back().empty() || width_of(longer) <= width) {
      lines.back() = longer;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

/// A picture on a white background that grows downwards.
class Page {
 public:
  explicit Page(int width) : sheet_(kMargin, width + 2 * kMargin, CV_8UC3, kPaper), width_(width) {}

  /// Panels of one size side by side, each with its title below.
  void add_row(std::span<const cv::Mat> panels, std::span<const std::string> titles) {
    int top = sheet_.rows, lines = 0;
    grow(panels[0].rows);
    for (std::size_t i = 0; i < panels.size(); ++i) {
      const cv::Rect place(left_of(i, panels[0]), top, panels[i].cols, panels[i].rows);
      panels[i].copyTo(sheet_(place));
    }
    for (const std::string& title : titles) {
      if (!title.empty()) lines = std::max(lines, static_cast<int>(wrapped(title, panels[0].cols).size()));
    }
    top = sheet_.rows;
    grow(lines * kLineHeight + kMargin / 2);
    for (std::size_t i = 0; i < titles.size(); ++i)
      put(wrapped(titles[i], panels[0].cols), left_of(i, panels[0]), top);
  }
  /// Rows of the full width.
  void add_sheet(const cv::Mat& sheet) { sheet_.push_back(sheet); }
  void add_text(const std::string& text) {
    const std::vector<std::string> lines = wrapped(text, width_);
    const int top = sheet_.rows;
    grow(static_cast<int>(lines.size()) * kLineHeight);
    put(lines, kMargin, top);
  }
  /// The color scale, with the values at its ends.
  void add_bar(const std::string& low, const std::string& high) {
    const int text_width = std::max(width_of(low), width_of(high)) + kMargin;
    const int bar_width = std::min(256, width_ - 2 * text_width);
    if (bar_width < 8) return add_text(low + " to " + high);
    cv::Mat ramp(1, bar_width, CV_32FC1), bar;
    for (int x = 0; x < bar_width; ++x)
      ramp.at<float>(0, x) = (static_cast<float>(x) + 0.5f) / static_cast<float>(bar_width);
    cv::resize(color_scale(ramp), bar, {bar_width, kBarHeight}, 0, 0, cv::INTER_NEAREST);
    const int top = sheet_.rows;
    grow(kLineHeight + 4);
    put({low}, kMargin, top);
    bar.copyTo(sheet_(cv::Rect(kMargin + text_width, top + 3, bar_width, kBarHeight)));
    put({high}, kMargin + text_width + bar_width + kMargin, top);
  }
  Image finish() {
    grow(kMargin / 2);
    return to_image(sheet_);
  }
  static int left_of(std::size_t column, const cv::Mat& panel) {
    return kMargin + static_cast<int>(column) * (panel.cols + kMargin);
  }

 private:
  void grow(int rows) { sheet_.push_back(cv::Mat(rows, sheet_.cols, CV_8UC3, kPaper)); }
  void put(const std::vector<std::string>& lines, int left, int top) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      cv::putText(sheet_, lines[i], {left, top + static_cast<int>(i) * kLineHeight + kLineHeight - 5}, kFont,
                  kFontScale, kInk, 1, cv::LINE_AA);
    }
  }

  cv::Mat sheet_;
  int width_;
};

std::string number_text(double value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, 3).ptr};
}

void mark_patch(cv::Mat& panel, GridSize grid, std::size_t patch) {
  const double width = panel.cols / static_cast<double>(grid.columns),
               height = panel.rows / static_cast<double>(grid.rows);
  const double column = static_cast<double>(patch % grid.columns),
               row = static_cast<double>(patch / grid.columns);
  const cv::Rect place(cv::Point(to_int(column * width), to_int(row * height)),
                       cv::Point(to_int((column + 1) * width), to_int((row + 1) * height)));
  cv::rectangle(panel, place, {255, 255, 255}, 3);
  cv::rectangle(panel, place, {0, 0, 255}, 1);
}

cv::Scalar hue(double share) {
  const cv::Mat hsv(1, 1, CV_8UC3, cv::Scalar(179.0 * share, 220, 255));
  cv::Mat bgr;
  cv::cvtColor(hsv, bgr, cv::COLOR_HSV2BGR);
  return bgr.at<cv::Vec3b>(0, 0);
}

cv::Point on_panel(SourcePoint point, const PatchLayout& layout, cv::Size size) {
  return {to_int((point.x - layout.origin().x) / layout.width() * size.width),
          to_int((point.y - layout.origin().y) / layout.height() * size.height)};
}

}  // namespace

void check_can_draw() {}

Image draw_colors(TensorView<const float> map, double low, double high, const Image* source) {
  const cv::Mat numbers(static_cast<int>(map.dim(0)), static_cast<int>(map.dim(1)), CV_32FC1,
                        const_cast<float*>(map.data()));
  cv::Mat bytes, colors;
  numbers.convertTo(bytes, CV_8U, 255.0 / std::max(high - low, 1e-12),
                    -255.0 * low / std::max(high - low, 1e-12));
  cv::applyColorMap(bytes, colors, cv::COLORMAP_INFERNO);
  colors.setTo(cv::Scalar::all(128), numbers != numbers);  // NaN: nothing is known there
  if (source != nullptr) {
    cv::Mat gray;
    cv::cvtColor(to_mat(*source), gray, cv::COLOR_BGR2GRAY);
    cv::cvtColor(gray, gray, cv::COLOR_GRAY2BGR);
    cv::addWeighted(colors, kColorShare, gray, 1 - kColorShare, 0, colors);
  }
  return to_image(colors);
}

Image draw_maps(const MapPicture& picture, const DrawOptions& options) {
  const PatchLayout& layout = picture.image.layout;
  std::vector<cv::Mat> panels{draw_source(picture.image, panel_size(layout, options.max_edge))};
  std::vector<std::string> titles{picture.maps.front().title.empty() ? "" : "image"};
  for (const PatchMap& map : picture.maps) {
    panels.push_back(draw_map(map, layout.grid, panels.front(), options.style));
    titles.push_back(map.title);
  }
  if (picture.marked_patch) {
    for (cv::Mat& panel : panels) mark_patch(panel, layout.grid, *picture.marked_patch);
  }
  const auto columns = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(panels.size()))));
  Page page(Page::left_of(columns, panels.front()) - 2 * kMargin);
  for (std::size_t first = 0; first < panels.size(); first += columns) {
    const std::size_t count = std::min(columns, panels.size() - first);
    page.add_row(std::span(panels).subspan(first, count), std::span(titles).subspan(first, count));
  }
  const PatchMap& map = picture.maps.front();
  if (picture.maps.size() == 1 && map.values.size() == layout.num_patches())
    page.add_bar(number_text(map.low), number_text(map.high));
  for (const std::string& line : picture.caption) page.add_text(line);
  return page.finish();
}

Image draw_matches(const SeenImage& first, const SeenImage& second, std::span<const MatchLine> lines,
                   std::span<const std::string> caption, const DrawOptions& options) {
  const cv::Size size = panel_size(first.layout, options.max_edge);
  cv::Size other = panel_size(second.layout, options.max_edge);
  other = cv::Size(std::max(1, to_int(static_cast<double>(other.width) * size.height / other.height)),
                   size.height);
  const int gap = 2 * kMargin;
  cv::Mat both(size.height, size.width + gap + other.width, CV_8UC3, kPaper);
  draw_source(first, size).copyTo(both(cv::Rect({0, 0}, size)));
  draw_source(second, other).copyTo(both(cv::Rect({size.width + gap, 0}, other)));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const cv::Scalar color = hue(static_cast<double>(i) / static_cast<double>(lines.size()));
    const cv::Point from = on_panel(lines[i].from, first.layout, size);
    const cv::Point to = on_panel(lines[i].to, second.layout, other) + cv::Point(size.width + gap, 0);
    cv::line(both, from, to, color, 1, cv::LINE_AA);
    cv::circle(both, from, 3, color, cv::FILLED, cv::LINE_AA);
    cv::circle(both, to, 3, color, cv::FILLED, cv::LINE_AA);
  }
  Page page(both.cols);
  page.add_row(std::span(&both, 1), {});
  for (const std::string& line : caption) page.add_text(line);
  return page.finish();
}

Image draw_sheet(std::span<const Image> pictures, std::span<const std::string> caption) {
  int width = 0, height = 0;
  for (const Image& picture : pictures) {
    width = std::max(width, static_cast<int>(picture.width()));
    height = std::max(height, static_cast<int>(picture.height()));
  }
  const double count = static_cast<double>(pictures.size());
  const int columns =
      std::max(1, std::min(static_cast<int>(pictures.size()),
                           to_int(std::ceil(std::sqrt(count * height / std::max(width, 1))))));
  const int rows = (static_cast<int>(pictures.size()) + columns - 1) / columns;
  VIT_CHECK(columns * width <= kMaxPictureEdge && rows * height <= kMaxPictureEdge, "draw", pictures.size(),
            " images do not fit one picture; give a folder as --output");
  cv::Mat sheet(rows * height, columns * width, CV_8UC3, kPaper);
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    const cv::Mat picture = to_mat(pictures[i]);
    const int index = static_cast<int>(i);
    picture.copyTo(
        sheet(cv::Rect(index % columns * width, index / columns * height, picture.cols, picture.rows)));
  }
  Page page(sheet.cols - 2 * kMargin);
  page.add_sheet(sheet);
  for (const std::string& line : caption) page.add_text(line);
  return page.finish();
}

}  // namespace vit::app
