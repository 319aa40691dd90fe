// VIT_API marks what a shared library hands to its users; everything else stays hidden inside it. In a static
// library the mark means nothing.
#pragma once

#if defined(__GNUC__)
#define VIT_API __attribute__((visibility("default")))
#else
#define VIT_API
#endif
