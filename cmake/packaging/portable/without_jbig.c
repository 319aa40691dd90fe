/* Replaces tif_jbig.o of Debian's libtiff.a: JBIG-KIT is under the GPL, which these packages should not
   impose. Without functions of a codec, libtiff's own refuse to decode; vit refuses this compression in any
   build. */
#include <tiffio.h>

int TIFFInitJBIG(TIFF* tiff, int scheme);
int TIFFInitJBIG(TIFF* tiff, int scheme) {
  (void)tiff;
  (void)scheme;
  return 1;
}
