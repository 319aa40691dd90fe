# The rings: parts around the core that a build can do without. Each is a folder in vit/rings, apps/vit/rings, tests/rings and
# tests/apps/rings, a label of its tests, and an option.
set(VIT_ALL_RINGS dense prompts pages anomaly fit index show serve)
option(VIT_RING_DENSE "Dense heads: depth, segments, boxes and keypoints" ON)
option(VIT_RING_PROMPTS "What prompts name or show: vit segment --classes with SAM 3" ON)
option(VIT_RING_PAGES "Pages of documents as many vectors each: ColModernVBERT" ON)
option(VIT_RING_ANOMALY "Banks of good patches: vit anomaly" ON)
option(VIT_RING_FIT "Fitting classifiers on features: vit fit" ON)
option(VIT_RING_INDEX "Collections of images: vit index, search and duplicates" ON)
option(VIT_RING_SHOW "Drawings of what a model computes: vit show" ON)
if(VIT_RING_ANOMALY AND NOT VIT_ANALYSIS)
  message(FATAL_ERROR "banks of good patches need principal components: with VIT_ANALYSIS=OFF add -DVIT_RING_ANOMALY=OFF")
endif()
option(VIT_SERVE "Build vit serve if Boost.Beast is installed" ON)

set(VIT_RINGS "")  # that are built
set(VIT_CORE_OPTIONS "")  # of a build without rings, for tests
foreach(ring dense prompts pages anomaly fit index show)
  string(TOUPPER ${ring} option)
  list(APPEND VIT_CORE_OPTIONS -DVIT_RING_${option}=OFF)
  if(VIT_RING_${option})
    list(APPEND VIT_RINGS ${ring})
  endif()
endforeach()
if(VIT_SERVE AND VIT_BUILD_APPS)
  find_package(Boost 1.74)
  if(Boost_FOUND)
    list(APPEND VIT_RINGS serve)
  endif()
endif()

# vit_keep_rings(SOURCES): removes from the list named SOURCES those of rings that are not built, and of the others what takes
# their place in rings/without/. NAME_none.cpp of one ring takes the place of its NAME.cpp if another ring is missing.
function(vit_keep_rings list)
  foreach(ring IN LISTS VIT_ALL_RINGS)
    if(ring IN_LIST VIT_RINGS)
      list(FILTER ${list} EXCLUDE REGEX "/rings/without/${ring}[.]cpp$")
    else()
      list(FILTER ${list} EXCLUDE REGEX "/rings/${ring}/")
    endif()
  endforeach()
  foreach(pair "dense=>show_maps" "dense=>dense_routes" "dense=>dense_tasks" "anomaly=>anomaly_bank" "index=>image_index" "index=>page_index" "pages=>page_rerank"
         "fit=>segment_pixels" "fit=>evaluate_pixels" "fit=>pixel_example" "fit=>paint_routes" "fit=>paint_task"
         "prompts=>segment_prompts" "prompts=>segment_objects" "prompts=>detect_prompts" "prompts=>prompt_results" "prompts=>bench_prompts"
         "dense prompts=>loaded_prompts" "dense=>prompt_routes")
    string(REGEX MATCH "^(.*)=>(.*)$" _ "${pair}")
    string(REPLACE " " ";" needed "${CMAKE_MATCH_1}")
    set(name "${CMAKE_MATCH_2}")
    list(REMOVE_ITEM needed ${VIT_RINGS})
    if(needed)
      list(FILTER ${list} EXCLUDE REGEX "/${name}(_tests)?[.]cpp$")
    else()
      list(FILTER ${list} EXCLUDE REGEX "/${name}_none[.]cpp$")
    endif()
  endforeach()
  set(${list} ${${list}} PARENT_SCOPE)
endfunction()
