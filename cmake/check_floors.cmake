# Reads the include lines of the library, vit/, and of the program, apps/vit/, and fails on an edge that goes up a floor or
# sideways between two rooms of one floor, on a floor without its folder, on a header outside its fence, and if the README of
# the tree shows other floors than these. Run: cmake -DROOT=<source dir> -P cmake/check_floors.cmake; with -DPRINT=vit or
# -DPRINT=apps/vit it prints the floors of one tree.
cmake_policy(VERSION 3.25)

# The folders of vit/ from the ground up; rooms on one line share a floor. A room is a folder with everything below it that is
# not a room itself. Rings include the core, the core no ring: whatever is above the floor of the first ring can be left out.
set(floors_vit
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
    "rings/dense rings/prompts rings/pages rings/anomaly rings/fit rings/without   maps, boxes and keypoints, what prompts name or show, pages as many vectors, anomalies, classes of one's own, the C functions of those not built")
# The folders of apps/vit/; "." is the files at the top.
set(floors_apps/vit
    "ground       command line, usage errors, values of options, standard streams, files written atomically, progress, sandbox"
    "inputs       images, videos, arrays, archives and texts that a command reads"
    "outputs      files of results, arrays, maps and drawings that it writes"
    "options      options that commands share"
    "run          one pass over many inputs"
    "classes html   classes with their labels, pages of results"
    "commands     classify, evaluate, embed, preprocess, info, bench, tokenize, rope"
    "rings        what each ring adds: commands and measures"
    "rings/dense rings/pages rings/anomaly rings/fit rings/index rings/show rings/without   the rings, and their names in a build without them"
    "rings/serve/http   HTTP: connections, heads, bodies"
    "rings/serve/work   models, queues, decoding processes"
    "rings/serve/routes   the interfaces that clients know: OpenAI, immich, Weaviate, the page"
    "rings/serve   the command serve"
    ".            the list of all commands, main"
    "completion   completion scripts")

# Fences: header pattern -> files that may include it.
set(fences_vit
    "<opencv2/=>^opencv\\.h$"
    "<Eigen/=>^((analysis/)?eigen(_rows)?\\.h|(analysis|rings/anomaly|rings/fit)/[a-z_]+\\.cpp|kernels/portable\\.cpp|layers/[a-z_]+\\.cpp|position/[a-z_]+\\.cpp)$"
    "<omp.h>=>^base/parallel\\.cpp$"
    # Another system needs another source next to system_posix.cpp and system_windows.cpp; threads and instruction sets have a part for each system in their own sources.
    "<(dirent|dlfcn|fcntl|io|poll|signal|sys/[a-tv-z][a-z]*|unistd|windows)[.]h>=>^(base/system_(posix|windows)|kernels/amx|kernels/cpu_info)\\.cpp$"
    "<(pthread|sched)[.]h>=>^base/(core_sharing\\.(h|cpp)|(parallel|worker_threads)\\.cpp)$"
    "[<\"]hwy/=>^kernels/"
    "<immintrin.h>=>^kernels/"
    "<(jpeglib|openjpeg|png|webp/[a-z]+)[.]h>=>^image/[a-z0-9_]+\\.cpp$"
    "<tiffio[.]h>=>^image/(decode_tiff\\.cpp|tiff_[a-z]+\\.(h|cpp))$"
    "<zlib[.]h>=>^(image|text)/[a-z0-9_]+\\.cpp$"
    "<unicode/=>^text/unicode\\.cpp$")
set(fences_apps/vit
    "<CLI/=>^ground/command_line\\.cpp$"
    "<boost/=>^rings/serve/http/[a-z_]+_beast\\.(h|cpp)$"
    "<opencv2/=>^(inputs|outputs)/[a-z_]+_opencv\\.cpp$"
    "<faiss/=>^rings/index/vector_index_faiss\\.cpp$"
    "<archive[a-z_]*[.]h>=>^inputs/tar_list_libarchive\\.cpp$"
    "<seccomp[.]h>=>^ground/sandbox_linux\\.cpp$"
    "apps/vit/rings/index/=>^rings/(index/|serve/work/image_index\\.cpp$)")  # the page of the server shows an index

# What the program may include of the library: headers that are installed, the rooms base and io, and these. The list only ever
# gets shorter.
set(door
    config/fields.h config/output_table.h
    image/image_file.h image/warp_box.h
    kernels/cpu_info.h kernels/kernels.h kernels/tile_meter.h
    layers/activations.h layers/linear.h position/rope_file.h position/rope_json.h
    rings/dense/map_metrics.h rings/fit/memory.h
    text/clean.h text/unicode.h
    weights/checkpoint/checkpoint_files.h weights/checkpoint/checkpoint_folder.h weights/checkpoint/config_json.h
    weights/checkpoint/preprocess_config.h weights/checkpoint/tower_architectures.h weights/families/timm_args.h)

# Sets the floor of each room, all_rooms and the picture of a tree in the caller.
macro(read_floors tree)
  set(number 0)
  set(picture "")
  set(all_rooms "")
  foreach(floor ${floors_${tree}})
    string(REGEX MATCH "^([a-z_./ ]*[a-z.])   *(.*)$" _ "${floor}")
    string(REPLACE " " ";" rooms "${CMAKE_MATCH_1}")
    set(what "${CMAKE_MATCH_2}")
    foreach(room ${rooms})
      set(floor_${room} ${number})
      list(APPEND all_rooms ${room})
    endforeach()
    string(REPLACE ";" "  " names "${rooms}")
    string(LENGTH "${names}" width)
    set(gap "  ")
    if(width LESS 38)
      math(EXPR gap "40 - ${width}")
      string(REPEAT " " ${gap} gap)
    endif()
    string(PREPEND picture "${names}${gap}${what}\n")
    math(EXPR number "${number} + 1")
  endforeach()
endmacro()

if(PRINT)
  read_floors(${PRINT})
  message(NOTICE "${picture}")
  return()
endif()

# The room of a path below a tree: the longest that it starts with. A public header at the top of vit/ belongs to the room that has its
# source, or a folder of its name; one without a source of its name (vit.h, the adapters) to api, c.h and c_*.h to c.
function(room_of path out)
  set(found "")
  set(longest 0)
  foreach(candidate ${all_rooms})
    string(LENGTH "${candidate}" length)
    string(FIND "${path}" "${candidate}/" at)
    if(at EQUAL 0 AND length GREATER longest)
      set(found "${candidate}")
      set(longest ${length})
    endif()
  endforeach()
  if(found STREQUAL "" AND path MATCHES "^([a-z_]+)/")
    set(found "${CMAKE_MATCH_1}")
  elseif(found STREQUAL "" AND tree STREQUAL "vit")
    string(REGEX REPLACE "[.]h$" "" name "${path}")
    set(found api)
    if(name MATCHES "^c(_|$)")
      set(found c)
    endif()
    foreach(candidate ${all_rooms})
      if(EXISTS "${ROOT}/vit/${candidate}/${name}.cpp" OR candidate STREQUAL "rings/${name}")
        set(found ${candidate})
        break()
      endif()
    endforeach()
  elseif(found STREQUAL "")
    set(found ".")
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

set(errors "")
set(count 0)
set(installed "")
if(EXISTS "${ROOT}/cmake/VitInstall.cmake")
  file(READ "${ROOT}/cmake/VitInstall.cmake" installed)
endif()
set(door_used "")
foreach(tree vit apps/vit)
  read_floors(${tree})
  if(EXISTS "${ROOT}/${tree}/README.md")
    foreach(room ${all_rooms})
      if(NOT IS_DIRECTORY "${ROOT}/${tree}/${room}")
        string(APPEND errors "${tree}/${room}: a floor without a folder\n")
      endif()
    endforeach()
    file(READ "${ROOT}/${tree}/README.md" readme)
    string(FIND "${readme}" "```text\n${picture}```" found)
    if(found EQUAL -1)
      string(APPEND errors "${tree}/README.md must show the floors as they are:\n${picture}")
    endif()
  endif()
  file(GLOB_RECURSE files RELATIVE "${ROOT}/${tree}" "${ROOT}/${tree}/*.h" "${ROOT}/${tree}/*.cpp")
  foreach(file ${files})
    math(EXPR count "${count} + 1")
    room_of("${file}" room)
    if(tree STREQUAL "vit" AND file MATCHES "^[a-z_]+[.]cpp$")
      string(APPEND errors "vit/${file}: the top of vit/ has public headers only\n")
    endif()
    if(NOT DEFINED floor_${room})
      string(APPEND errors "${tree}/${file}: room '${room}' has no floor in check_floors.cmake\n")
      continue()
    endif()
    file(STRINGS "${ROOT}/${tree}/${file}" lines REGEX "^ *# *include")
    foreach(line ${lines})
      if(line MATCHES "\\.\\./|<vit/|<apps/" OR (line MATCHES "\"" AND NOT line MATCHES "\"(${tree}|vit|hwy)/"))
        string(APPEND errors "${tree}/${file}: ${line} must be written \"${tree}/ROOM/NAME\"\n")
      elseif(line MATCHES "\"${tree}/([^\"]+)\"")
        set(included "${CMAKE_MATCH_1}")
        room_of("${included}" target)
        if(NOT DEFINED floor_${target})
          string(APPEND errors "${tree}/${file}: includes ${tree}/${included}, a room without a floor\n")
        elseif(tree STREQUAL "vit" AND file STREQUAL "vit.h")
          continue()  # all public headers
        elseif(floor_${target} GREATER floor_${room})
          string(APPEND errors "${tree}/${file}: floor ${floor_${room}} includes ${tree}/${included} on floor ${floor_${target}}\n")
        elseif(floor_${target} EQUAL floor_${room} AND NOT target STREQUAL room)
          string(APPEND errors "${tree}/${file}: includes its neighbor ${tree}/${included} on the same floor\n")
        endif()
      elseif(line MATCHES "\"vit/([^\"]+)\"")
        set(header "${CMAKE_MATCH_1}")
        list(APPEND door_used "${header}")
        string(REPLACE "." "\\." name "${header}")
        if(NOT header MATCHES "^(base|io)/" AND NOT installed MATCHES "[ \n(]${name}[ \n)]" AND NOT header IN_LIST door)
          string(APPEND errors "${tree}/${file}: includes vit/${header}, which is internal to the library\n")
        endif()
      endif()
      foreach(fence ${fences_${tree}})
        string(REGEX MATCH "^(.+)=>(.*)$" _ "${fence}")
        set(pattern "${CMAKE_MATCH_1}")
        set(allowed "${CMAKE_MATCH_2}")
        if(line MATCHES "${pattern}" AND NOT file MATCHES "${allowed}")
          string(APPEND errors "${tree}/${file}: ${line} stands outside its fence\n")
        endif()
      endforeach()
    endforeach()
  endforeach()
  foreach(room ${all_rooms})
    unset(floor_${room})
  endforeach()
endforeach()
if(EXISTS "${ROOT}/vit/README.md")
  foreach(entry ${door})
    if(NOT entry IN_LIST door_used)
      string(APPEND errors "check_floors.cmake: ${entry} is listed, and no longer included\n")
    endif()
  endforeach()
endif()
if(errors)
  message(FATAL_ERROR "the floors are not kept:\n${errors}")
endif()
message(STATUS "floors kept by ${count} files")
