# A pipeline allocates as often for many frames as for few: nothing for a frame once it is warm. One a frame would be
# 180; a few may depend on which thread waits for which.
# cmake -DPROGRAM=... -DCOUNTER=library -DMODEL=folder -P warm_pipeline.cmake
foreach(frames 60 240)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env "LD_PRELOAD=${COUNTER}" OMP_NUM_THREADS=2 "${PROGRAM}" "${MODEL}" ${frames}
                  OUTPUT_VARIABLE output ERROR_VARIABLE error RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "^${frames} frames by 2 sessions, [0-9.]+ frames/s\n$")
    message(FATAL_ERROR "${frames} frames: status ${status}: ${output}${error}")
  endif()
  if(NOT error MATCHES "allocations: ([0-9]+)\n")
    message(FATAL_ERROR "${frames} frames: nothing was counted: ${error}")
  endif()
  set(allocations_${frames} ${CMAKE_MATCH_1})
  message(STATUS "${frames} frames, ${CMAKE_MATCH_1} allocations")
endforeach()
math(EXPR more "${allocations_240} - ${allocations_60}")
if(more GREATER 20)
  message(FATAL_ERROR "warm frames allocate: ${allocations_60} allocations for 60 frames, ${allocations_240} for 240")
endif()
