// Exact search among pages, which have many vectors each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "apps/vit/rings/index/index_folder.h"
#include "apps/vit/rings/index/scan.h"

namespace vit::app {

/// The `top` pages with the highest scores for a question (m, E), best first; ties in index order. Reads the
/// vectors once, those of a page at a time in each thread. Throws Error for vectors that are not finite.
/// `threads`: 0 = all.
std::vector<Hit> search_pages(const IndexContents& contents, std::span<const float> question, std::size_t top,
                              int threads);

}  // namespace vit::app
