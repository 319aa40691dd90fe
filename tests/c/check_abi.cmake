# The binary interface that the header of the C interface declares, compared with the published one, c_abi.xml: functions
# and what they take may be added, never changed or removed. The library itself is not compared: its debug information is
# large and contains much that is not for users. Instead every declaration gets an empty body; that the library defines
# each is shown by tests/c/, which calls them all.
# cmake -DCOMPILER=cc -DABIDW=abidw -DABIDIFF=abidiff -DROOT=... -DOUTPUT=folder [-DUPDATE=ON] -P check_abi.cmake
set(bodies "#include \"vit/c_positions.h\"\n#include \"vit/c_pages.h\"\n#include \"vit/c_prompts.h\"\n")
file(READ "${ROOT}/vit/c.h" text)
foreach(header c_pages c_positions c_prompts)
  file(READ "${ROOT}/vit/${header}.h" more)
  string(APPEND text "${more}")
endforeach()
string(REPLACE ";" "@" text "${text}")
string(REGEX MATCHALL "VIT_API [^@#]*@" declarations "${text}")
foreach(declaration ${declarations})
  string(REGEX REPLACE "^VIT_API (.*)@$" "\\1" declaration "${declaration}")
  set(body "{ return 0; }")
  if(declaration MATCHES "^void ")
    set(body "{}")
  endif()
  string(APPEND bodies "${declaration} ${body}\n")
endforeach()
file(WRITE "${OUTPUT}/c_abi.c" "${bodies}")
execute_process(COMMAND "${COMPILER}" -std=c99 -g -O0 -fPIC -shared -w -I "${ROOT}" "${OUTPUT}/c_abi.c" -o "${OUTPUT}/libvit.so"
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${ABIDW}" --no-corpus-path --no-comp-dir-path --short-locs --out-file "${OUTPUT}/c_abi.xml" "${OUTPUT}/libvit.so"
                COMMAND_ERROR_IS_FATAL ANY)
if(UPDATE)
  file(COPY "${OUTPUT}/c_abi.xml" DESTINATION "${ROOT}/tests/c")
endif()
# 4: something changed; 8: in a way that breaks programs. Additions are no change with --no-added-syms.
execute_process(COMMAND "${ABIDIFF}" --no-added-syms "${ROOT}/tests/c/c_abi.xml" "${OUTPUT}/c_abi.xml"
                OUTPUT_VARIABLE changes RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "the binary interface changed (${result}); if only members were added at the end of option structs, "
                      "publish it with -DUPDATE=ON:\n${changes}")
endif()
message(STATUS "the binary interface of C is the published one")
