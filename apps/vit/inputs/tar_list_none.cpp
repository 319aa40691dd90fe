// Replacement for builds without libarchive.
#include "apps/vit/inputs/tar_archive.h"
#include "vit/base/check.h"

namespace vit::app {

void TarArchive::list(const std::function<void(const TarEntry&)>&) const {
  fail(Where{"tar", ErrorKind::unsupported}, path_.string(),
       ": this build of vit has no libarchive: install libarchive-dev and configure again");
}

}  // namespace vit::app
