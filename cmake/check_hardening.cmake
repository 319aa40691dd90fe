# Checks how the program is linked: cmake -DPROGRAM=... -DREADELF=... -P check_hardening.cmake
execute_process(COMMAND ${READELF} --wide --file-header --program-headers --dynamic ${PROGRAM}
                OUTPUT_VARIABLE found COMMAND_ERROR_IS_FATAL ANY)
foreach(wanted "Type: +DYN" "GNU_RELRO" "BIND_NOW|Flags: .*NOW" "GNU_STACK[^\n]* RW ")
  if(NOT found MATCHES "${wanted}")
    message(SEND_ERROR "${PROGRAM}: readelf shows no ${wanted}")
  endif()
endforeach()
if(found MATCHES "(RUNPATH|RPATH)[^\n]*(\\[:|::|:\\])")
  message(SEND_ERROR "${PROGRAM}: an empty path among those of its libraries is the folder in which it is started")
endif()
if(found MATCHES "TEXTREL")
  message(SEND_ERROR "${PROGRAM}: its code is changed when it is loaded")
endif()
# Two checkouts give the same bytes: none of them may be in the program. Debug information would name it.
file(STRINGS ${PROGRAM} paths REGEX "${ROOT}/")
if(paths AND NOT BUILD_TYPE MATCHES "Deb")
  message(SEND_ERROR "${PROGRAM}: holds paths of this checkout: ${paths}")
endif()
# Libraries that few commands need are loaded by modules (apps/vit/ground/module_file.h) or opened late (vit/base/late_library.h),
# Highway's by debug builds.
if(found MATCHES "NEEDED[^\n]*(libopencv_[a-z]+)" OR (LATE AND found MATCHES "NEEDED[^\n]*(lib(${LATE})\\.so)") OR
   (BUILD_TYPE STREQUAL "Release" AND found MATCHES "NEEDED[^\n]*(libhwy)"))
  message(SEND_ERROR "${PROGRAM}: links ${CMAKE_MATCH_1}, which every start of the program then loads")
endif()
