# Reads the include lines under vit/ and fails on an edge that goes up a floor or sideways between two rooms of one
# floor, on a floor without its folder, on a third-party header outside its fence, and where vit/README.md shows other
# floors than these. Run: cmake -DROOT=<source dir> -P cmake/check_floors.cmake; with -DPRINT=ON it prints the floors.

cmake_policy(VERSION 3.25)

# The folders of vit/ from the ground up; rooms on one line share a floor.
set(floors
    "base         errors, tensors, memory, threads"
    "kernels io   every hot loop, one table of functions for each instruction set, and files: JSON, safetensors, pickles, folders"
    "position image analysis   coordinates, frequencies, factors, images and their preprocessing, statistics of features"
    "config       what a checkpoint is and what a pass gives, as plain data"
    "weights      families, architectures, checkpoint folders"
    "text         tokenizers"
    "layers       linear, norms, attention, MLP"
    "patch encoder head   pixels to tokens, the blocks, pooling and classifier"
    "towers       the whole forward pass of images and of texts, and which images are computed together"
    "api          what the public headers declare: models, sessions, streams, classifiers"
    "c            the C interface"
    "rings/dense rings/anomaly rings/fit   maps, boxes and keypoints, anomalies, classes of one's own")

# What the core still includes of a ring: FILE=>ROOM. The list only ever gets shorter.
set(left_to_move
    "towers/lanes.h=>rings/dense" "towers/vision_transformer.h=>rings/dense" "towers/dense_forward.cpp=>rings/dense" "api/model.cpp=>rings/dense"
    "classifier.h=>rings/fit" "c/handles.h=>rings/anomaly" "c/handles.h=>rings/dense")

set(number 0)
set(picture "")
foreach(floor ${floors})
  string(REGEX MATCH "^([a-z/ ]*[a-z])   *(.*)$" _ "${floor}")
  string(REPLACE " " ";" rooms "${CMAKE_MATCH_1}")
  set(what "${CMAKE_MATCH_2}")
  foreach(room ${rooms})
    set(floor_${room} ${number})
    list(APPEND all_rooms ${room})
  endforeach()
  string(REPLACE ";" "  " names "${rooms}")
  string(LENGTH "${names}" width)
  math(EXPR gap "40 - ${width}")
  string(REPEAT " " ${gap} gap)
  string(PREPEND picture "${names}${gap}${what}\n")
  math(EXPR number "${number} + 1")
endforeach()

if(PRINT)
  message(NOTICE "${picture}")
  return()
endif()

# The room of a path below vit/: its folder. A public header at the top belongs to the room that has its source, or a folder of its name; one
# without a source of its name (vit.h, the adapters) to api, c.h to c.
function(room_of path out)
  if(path MATCHES "^(rings/[a-z_]+|[a-z_]+)/")
    set(${out} ${CMAKE_MATCH_1} PARENT_SCOPE)
    return()
  endif()
  string(REGEX REPLACE "[.]h$" "" name "${path}")
  set(room api)
  if(name STREQUAL "c")
    set(room c)
  endif()
  foreach(candidate ${all_rooms})
    if(EXISTS "${ROOT}/vit/${candidate}/${name}.cpp" OR IS_DIRECTORY "${ROOT}/vit/${candidate}/${name}" OR candidate STREQUAL "rings/${name}")
      set(room ${candidate})
      break()
    endif()
  endforeach()
  set(${out} ${room} PARENT_SCOPE)
endfunction()

set(errors "")
if(EXISTS "${ROOT}/vit/README.md")
  foreach(room ${all_rooms})
    if(NOT IS_DIRECTORY "${ROOT}/vit/${room}")
      string(APPEND errors "vit/${room}: a floor without a folder\n")
    endif()
  endforeach()
  file(READ "${ROOT}/vit/README.md" readme)
  string(FIND "${readme}" "```text\n${picture}```" found)
  if(found EQUAL -1)
    string(APPEND errors "vit/README.md must show the floors as they are:\n${picture}")
  endif()
endif()
file(GLOB_RECURSE files RELATIVE "${ROOT}/vit" "${ROOT}/vit/*.h" "${ROOT}/vit/*.cpp")
foreach(file ${files})
  room_of("${file}" room)
  if(file MATCHES "^[a-z_]+[.]cpp$")
    string(APPEND errors "vit/${file}: the top of vit/ has public headers only\n")
  endif()
  if(NOT DEFINED floor_${room})
    string(APPEND errors "vit/${file}: room '${room}' has no floor in check_floors.cmake\n")
    continue()
  endif()
  file(STRINGS "${ROOT}/vit/${file}" lines REGEX "^ *# *include")
  foreach(line ${lines})
    if(line MATCHES "\\.\\./|<vit/|<apps/" OR (line MATCHES "\"" AND NOT line MATCHES "\"(vit|hwy)/"))
      string(APPEND errors "vit/${file}: ${line} must be written \"vit/ROOM/NAME\"\n")
    elseif(line MATCHES "\"vit/([^\"]+)\"")
      room_of("${CMAKE_MATCH_1}" target)
      if(NOT DEFINED floor_${target})
        string(APPEND errors "vit/${file}: includes vit/${CMAKE_MATCH_1}, a room without a floor\n")
      elseif(file STREQUAL "vit.h" OR "${file}=>${target}" IN_LIST left_to_move)
        continue()
      elseif(floor_${target} GREATER floor_${room})
        string(APPEND errors "vit/${file}: floor ${floor_${room}} includes vit/${CMAKE_MATCH_1} on floor ${floor_${target}}\n")
      elseif(floor_${target} EQUAL floor_${room} AND NOT target STREQUAL room AND NOT floor_${room} EQUAL 0)
        string(APPEND errors "vit/${file}: includes its neighbor vit/${CMAKE_MATCH_1} on the same floor\n")
      endif()
    endif()
    # fences: header pattern -> files that may include it
    foreach(fence
        "<opencv2/=>^opencv\\.h$"
        "<Eigen/=>^(eigen\\.h|(analysis|rings/anomaly|rings/fit)/[a-z_]+\\.cpp|kernels/portable\\.cpp|layers/[a-z_]+\\.cpp|position/[a-z_]+\\.cpp)$"
        "<omp.h>=>^base/parallel\\.cpp$"
        "[<\"]hwy/=>^kernels/"
        "<nlohmann/=>^(io/json|weights/checkpoint/config_json)\\.cpp$"
        "<immintrin.h>=>^kernels/"
        "<(jpeglib|openjpeg|png|webp/[a-z]+)[.]h>=>^image/[a-z0-9_]+\\.cpp$"
        "<tiffio[.]h>=>^image/(decode_tiff\\.cpp|tiff_[a-z]+\\.(h|cpp))$"
        "<zlib[.]h>=>^(image|text)/[a-z0-9_]+\\.cpp$"
        "<unicode/=>^text/unicode\\.cpp$")
      string(REGEX MATCH "^(.+)=>(.*)$" _ "${fence}")
      set(pattern "${CMAKE_MATCH_1}")
      set(allowed "${CMAKE_MATCH_2}")
      if(line MATCHES "${pattern}" AND NOT file MATCHES "${allowed}")
        string(APPEND errors "vit/${file}: ${line} stands outside its fence\n")
      endif()
    endforeach()
  endforeach()
endforeach()
if(errors)
  message(FATAL_ERROR "the floors are not kept:\n${errors}")
endif()
list(LENGTH files count)
message(STATUS "floors kept by ${count} files")
