// Layouts of tensors that are recognized without being read: placeholders, other orders of axes, training
// files of repositories. Part of the message of whatever fails because of them.
#pragma once

#include <string>

#include "vit/base/error.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// One sentence on the layout of the tensors and what to do; "" if it is none of these.
std::string foreign_layout(const TensorFile& tensors);

/// The result of `work`. An Error that it throws has the sentence of foreign_layout() at its end.
template <typename Work>
auto naming_layout(const TensorFile& tensors, const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    const std::string layout = foreign_layout(tensors);
    if (layout.empty() || error.message().find(layout) != std::string_view::npos) throw;
    throw Error(error.where(), std::string(error.message()) + "; " + layout, error.kind());
  }
}

}  // namespace vit::internal
