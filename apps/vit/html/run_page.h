// Shared by commands that write a page of their results, --html: the option, the thumbnails of inputs, and
// the description of the run.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/html/html_page.h"
#include "apps/vit/inputs/inputs.h"
#include "apps/vit/options/options.h"

namespace vit::app {

/// "1 image", "24 images".
std::string count_of(std::size_t count, const std::string& noun);

/// --html FILE
Option html_option(std::filesystem::path& path);
/// Gives every item of the page the thumbnail, the link and, if it has no note, the size of the image with
/// its name: one of `inputs`, or of an earlier run.
void add_pictures(HtmlPage& page, std::span<const Input> inputs, const CommonOptions& options);
/// A URL of the file of an input for browsers; "" if it has no file of its own.
std::string file_link(const Input& input);

/// Takes the inputs that failed, and how many there were.
void set_failures(HtmlPage& page, const Progress& progress);

/// Adds the model to the facts of the page, its thumbnails if it shows them, and writes it.
void write_run_page(const std::filesystem::path& path, HtmlPage page, std::span<const Input> inputs,
                    const CommonOptions& options);

}  // namespace vit::app
