// CIELab to sRGB through Little CMS, by the transform that Pillow's convert() builds.
#include <memory>
#include <new>

#include <lcms2.h>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

struct Close {
  void operator()(void* profile) const { cmsCloseProfile(profile); }
};
using Profile = std::unique_ptr<void, Close>;

/// Little CMS converts it to a table of 33 x 33 x 33 colors when it is built, so it is built once.
class LabTransform {
 public:
  LabTransform() {
    constexpr cmsUInt32Number kLab = COLORSPACE_SH(PT_LabV2) | CHANNELS_SH(3) | BYTES_SH(1);
    constexpr cmsUInt32Number kNoFlags = 0;
    const Profile lab(cmsCreateLab2Profile(nullptr));  // white: D50
    const Profile srgb(cmsCreate_sRGBProfile());
    if (lab != nullptr && srgb != nullptr)
      transform_ = cmsCreateTransform(lab.get(), kLab, srgb.get(), TYPE_RGB_8, INTENT_PERCEPTUAL, kNoFlags);
    if (transform_ == nullptr) throw std::bad_alloc();
  }
  ~LabTransform() { cmsDeleteTransform(transform_); }
  LabTransform(const LabTransform&) = delete;
  LabTransform& operator=(const LabTransform&) = delete;

  /// Safe to share between threads: calls share no state.
  void apply(std::uint8_t* pixels, std::size_t count) const {
    cmsDoTransform(transform_, pixels, pixels, static_cast<cmsUInt32Number>(count));
  }

 private:
  cmsHTRANSFORM transform_ = nullptr;
};

}  // namespace

void lab_to_rgb(const Source& source, std::uint8_t* pixels, std::size_t count) {
  within_memory(source, [&] {
    static const LabTransform transform;
    transform.apply(pixels, count);
  });
}

}  // namespace vit::internal::codecs
