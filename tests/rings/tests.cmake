# The core by itself: a build without rings, and its tests. Its objects are those of this build, so that a compiler cache has
# them; without one nothing is built twice just for this.
if(TARGET vit_program AND PROJECT_IS_TOP_LEVEL AND NOT VIT_SANITIZE AND VIT_CCACHE)
  set(core "${PROJECT_BINARY_DIR}_core")  # as deep as this one: relative paths in commands are the same
  set(options ${VIT_CORE_OPTIONS} -DVIT_SERVE=OFF -DVIT_BUILD_FUZZERS=OFF)
  foreach(option BUILD_SHARED_LIBS CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_C_COMPILER CMAKE_CXX_FLAGS CMAKE_CXX_FLAGS_RELEASE
                 VIT_HARDEN VIT_OPENCV VIT_OPENMP VIT_PRECOMPILED_HEADERS VIT_UNITY VIT_WERROR)
    if(DEFINED ${option})
      list(APPEND options "-D${option}=${${option}}")
    endif()
  endforeach()
  add_test(NAME rings.configure COMMAND ${CMAKE_COMMAND} -S ${PROJECT_SOURCE_DIR} -B ${core} -G ${CMAKE_GENERATOR} ${options})
  add_test(NAME rings.build COMMAND ${CMAKE_COMMAND} --build ${core} --target vit_program vit_tests)
  add_test(NAME rings.core COMMAND ${core}/tests/vit_tests "--test-case=apps:*,classifier:*,evaluate:*,model:*,rings:*,session:*,stream:*"
                                 --test-suite-exclude=dense,prompts,pages,anomaly,fit,index,show,serve)
  set_tests_properties(rings.configure PROPERTIES FIXTURES_SETUP rings_configured)
  set_tests_properties(rings.build PROPERTIES FIXTURES_REQUIRED rings_configured FIXTURES_SETUP rings_built TIMEOUT 1800)
  set_tests_properties(rings.core PROPERTIES FIXTURES_REQUIRED rings_built TIMEOUT 600 ENVIRONMENT "OMP_WAIT_POLICY=passive")
endif()
