// Looks through the file of an index before FAISS reads it. FAISS believes what a file says: a wrong length,
// neighbor or list leads it outside of its memory.
#pragma once

#include "vit/io/source_file.h"

namespace vit::app {

/// Throws Error (format) that names the file, the part, what was expected and found unless FAISS reads and
/// searches the index within its memory, by inner product, and the file ends with it; Error (unsupported) for
/// a type of index that is not looked through. Holds a byte for each vector at most, and lengths of lists.
void check_index_file(const internal::SourceFile& file);

}  // namespace vit::app
