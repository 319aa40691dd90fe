# Install rules: library, public headers, CMake package, pkg-config file, data. The program adds itself in apps/vit.
# Everything is found relative to the prefix, so that the tree may be moved after installation. Components are the
# packages of Debian: program (with the data), library, development.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS vit EXPORT vit-targets
        LIBRARY COMPONENT library NAMELINK_COMPONENT development
        ARCHIVE COMPONENT development
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
# The public headers. They include each other and nothing else of the project, which the consumers in tests/install and
# the test install.headers hold.
set(vit_headers
    vit.h anomaly.h attention.h boxes.h c.h c_pages.h c_positions.h c_prompts.h checkpoint.h classifier.h classifier_head.h config.h dense.h dense_config.h encoder.h fit.h head.h layer_norm.h linear.h machine.h model.h outputs.h pages.h patchify.h
    pixel_features.h pixel_upsampler.h pixels.h pose.h prompts.h safetensors.h session.h text_config.h text_encoder.h version.h zero_shot.h
    opencv.h eigen.h
    analysis/detection.h analysis/features.h
    base/choices.h base/error.h base/run_limits.h base/tensor.h
    config/encoder.h config/head.h config/load_options.h config/load_report.h config/merger.h config/norm.h config/patch.h
    image/image.h image/preprocess.h
    position/config.h position/convention_tables.h position/conventions.h position/coordinates.h position/frequencies.h position/normal_form.h position/rope.h position/rope_scaling.h position/tables.h
    text/tokenizer.h)
# Those of rings and parts that are not built, and their includes in vit.h, are left out.
set(vit_headers_dense dense.h boxes.h pose.h)
set(vit_headers_prompts prompts.h c_prompts.h)
set(vit_headers_pages pages.h c_pages.h)
set(vit_headers_anomaly anomaly.h)
set(vit_headers_fit fit.h pixel_features.h pixel_upsampler.h pixels.h)
set(vit_headers_analysis analysis/features.h position/normal_form.h)
set(vit_parts ${VIT_RINGS})
if(VIT_ANALYSIS)
  list(APPEND vit_parts analysis)
endif()
file(READ "${PROJECT_SOURCE_DIR}/vit/vit.h" vit_all_headers)
foreach(part dense prompts pages anomaly fit analysis)
  if(NOT part IN_LIST vit_parts)
    foreach(header ${vit_headers_${part}})
      list(REMOVE_ITEM vit_headers ${header})
      string(REPLACE "#include \"vit/${header}\"\n" "" vit_all_headers "${vit_all_headers}")
    endforeach()
  endif()
endforeach()
list(REMOVE_ITEM vit_headers vit.h)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/vit.h" CONTENT "${vit_all_headers}" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/vit.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/vit" COMPONENT development)
foreach(header ${vit_headers})
  get_filename_component(folder "${header}" DIRECTORY)
  install(FILES "${PROJECT_SOURCE_DIR}/vit/${header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/vit/${folder}"
          COMPONENT development)
endforeach()

# A static library hands its own dependencies on to whoever links it; a shared one has them inside.
get_target_property(vit_type vit TYPE)
get_property(vit_late_names GLOBAL PROPERTY vit_late_names)
foreach(library AVIF HEIF)  # not if they are opened when a file needs them
  string(TOLOWER ${library} name)
  set(vit_links_${name} ${${library}_FOUND})
  if(name IN_LIST vit_late_names)
    set(vit_links_${name} FALSE)
  endif()
endforeach()
set(vit_library_rings ${VIT_RINGS})
list(REMOVE_ITEM vit_library_rings index show serve)
list(JOIN vit_library_rings " " vit_library_rings)
set(VIT_CMAKE_DIR "${CMAKE_INSTALL_LIBDIR}/cmake/vit")
install(EXPORT vit-targets NAMESPACE vit:: DESTINATION "${VIT_CMAKE_DIR}" COMPONENT development)
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/vit-config.cmake.in" "${PROJECT_BINARY_DIR}/vit-config.cmake"
                              INSTALL_DESTINATION "${VIT_CMAKE_DIR}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/vit-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/vit-config.cmake" "${PROJECT_BINARY_DIR}/vit-config-version.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindOpenJPEG.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindWebP.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindAVIF.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindHEIF.cmake"
              "${CMAKE_CURRENT_LIST_DIR}/FindLCMS2.cmake" "${CMAKE_CURRENT_LIST_DIR}/FindOpenCV.cmake" "${CMAKE_CURRENT_LIST_DIR}/VitFindLibrary.cmake"
        DESTINATION "${VIT_CMAKE_DIR}" COMPONENT development)

set(VIT_PC_REQUIRES "")
set(VIT_PC_LIBS "")
if(vit_type STREQUAL "STATIC_LIBRARY")
  set(vit_pc_jpeg libjpeg)
  set(vit_pc_jpeg2000 libopenjp2)
  set(vit_pc_png libpng zlib)
  set(vit_pc_tiff libtiff-4)
  set(vit_pc_webp libwebp libwebpdemux)
  set(VIT_PC_REQUIRES libhwy)
  foreach(codec ${vit_codecs})
    list(APPEND VIT_PC_REQUIRES ${vit_pc_${codec}})
  endforeach()
  if(VIT_TEXT)
    list(APPEND VIT_PC_REQUIRES zlib icu-uc)
  endif()
  list(JOIN VIT_PC_REQUIRES " " VIT_PC_REQUIRES)
  set(VIT_PC_LIBS "-pthread")
  if(VIT_OPENMP AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    set(VIT_PC_LIBS "${OpenMP_CXX_FLAGS}")
  elseif(VIT_OPENMP)  # a library by its path: who links may have another compiler, with another OpenMP
    list(GET OpenMP_CXX_LIB_NAMES 0 name)
    string(APPEND VIT_PC_LIBS " ${OpenMP_${name}_LIBRARY}")
  endif()
  foreach(library ${CMAKE_DL_LIBS})
    string(APPEND VIT_PC_LIBS " -l${library}")
  endforeach()
  if(GIF_FOUND)
    string(APPEND VIT_PC_LIBS " -lgif")  # giflib brings no pkg-config file
  endif()
  if(vit_links_avif)
    string(APPEND VIT_PC_REQUIRES " libavif")
  endif()
  if(vit_links_heif)
    string(APPEND VIT_PC_REQUIRES " libheif")
  endif()
  if(LCMS2_FOUND)
    string(APPEND VIT_PC_REQUIRES " lcms2")
  endif()
endif()
# What the C++ compiler adds by itself, for a program in C that is linked by cc.
set(VIT_PC_CXX "")
if(vit_type STREQUAL "STATIC_LIBRARY")
  foreach(library ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
    if(library MATCHES "^(stdc[+][+]|c[+][+]|c[+][+]abi|m)$")
      string(APPEND VIT_PC_CXX " -l${library}")
    endif()
  endforeach()
endif()
file(RELATIVE_PATH VIT_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" VIT_PC_PREFIX "${VIT_PC_PREFIX}")
configure_file("${CMAKE_CURRENT_LIST_DIR}/vit.pc.in" "${PROJECT_BINARY_DIR}/vit.pc.in" @ONLY)
file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/vit.pc" INPUT "${PROJECT_BINARY_DIR}/vit.pc.in")
install(FILES "${PROJECT_BINARY_DIR}/vit.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)

# The license, where Debian looks for that of each of its packages.
set(vit_package_program vit)
# The soname is part of the name, so that programs for two of them can be installed at once.
set(vit_package_library "libvit${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(vit_package_development libvit-dev)
foreach(component program library development)
  install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${vit_package_${component}}"
          RENAME copyright COMPONENT ${component})
endforeach()

if(serve IN_LIST VIT_RINGS)
  install(FILES "${CMAKE_CURRENT_LIST_DIR}/packaging/vit.service" DESTINATION lib/systemd/system COMPONENT program)
endif()

# The guide of the library, and programs that use it, each of one page.
install(FILES "${PROJECT_SOURCE_DIR}/vit/README.md" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${vit_package_development}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/apps/examples" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${vit_package_development}"
        COMPONENT development PATTERN "CMakeLists.txt" EXCLUDE)

# What the program uses; the library by itself needs none of it.
if(VIT_BUILD_APPS)
  foreach(folder model labels layouts images)
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/data/${folder}" DESTINATION "${CMAKE_INSTALL_DATADIR}/vit" COMPONENT program
            PATTERN "*.py" EXCLUDE)
  endforeach()
endif()
