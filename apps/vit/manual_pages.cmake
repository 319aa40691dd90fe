# Writes FOLDER/vit.1 and FOLDER/vit-COMMAND.1 for every command that `vit --help` lists, from their --help.
# cmake -DHELP2MAN=... -DVIT=... -DVERSION=... -DFOLDER=... -P manual_pages.cmake
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

# The text as it is, in the language of manual pages.
function(verbatim out text)
  string(REPLACE "\\" "\\e" text "${text}")
  string(REPLACE "-" "\\-" text "${text}")
  string(REGEX REPLACE "(^|\n)([.'])" "\\1\\\\&\\2" text "${text}")
  set(${out} ".nf\n${text}.fi\n" PARENT_SCOPE)
endfunction()

# write_page(<name of the page> <summary> <command>...): help2man reads the help up to its last option; it would fill the
# lines of the tables and examples after it.
function(write_page name summary)
  execute_process(COMMAND ${ARGN} --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
  if(NOT help MATCHES "^(.*\n  -[^\n]*\n([^\n]+\n)*)\n+(.*)$")
    message(FATAL_ERROR "${ARGN} --help lists no options")
  endif()
  set(details "${CMAKE_MATCH_3}")
  set(cut "${FOLDER}/${name}.help")
  file(WRITE "${cut}" "#!/bin/sh\ncat <<'END_OF_HELP'\n${CMAKE_MATCH_1}END_OF_HELP\n")
  file(CHMOD "${cut}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  execute_process(COMMAND "${HELP2MAN}" --no-info --name "${summary}" --version-string "vit ${VERSION}" --manual "vit" "${cut}"
                  OUTPUT_VARIABLE page COMMAND_ERROR_IS_FATAL ANY)
  file(REMOVE "${cut}")
  string(TOUPPER "${name}" upper)
  string(REGEX REPLACE "\n\\.TH [^ ]+ " "\n.TH ${upper} " page "${page}")
  string(REGEX REPLACE "(\n\\.SH NAME\n)[^\n]* \\\\- " "\\1${name} \\\\- " page "${page}")
  set(examples "")
  if(details MATCHES "^(.*\n|)Examples:\n(.*)$")
    set(details "${CMAKE_MATCH_1}")
    verbatim(examples "${CMAKE_MATCH_2}")
    string(PREPEND examples ".SH EXAMPLES\n")
  endif()
  if(NOT details STREQUAL "")
    verbatim(details "${details}")
    string(PREPEND details ".SH DETAILS\n")
  endif()
  file(WRITE "${FOLDER}/${name}.1" "${page}${details}${examples}")
endfunction()

execute_process(COMMAND "${VIT}" --help OUTPUT_VARIABLE help COMMAND_ERROR_IS_FATAL ANY)
if(NOT help MATCHES "\nSubcommands:\n(( +[^\n]+\n)+)\n")
  message(FATAL_ERROR "vit --help lists no commands")
endif()
string(REPLACE ";" "," commands "${CMAKE_MATCH_1}")  # a semicolon would end an item of the list
string(REGEX REPLACE "\n    +" " " commands "${commands}")  # of a summary of two lines
string(REGEX REPLACE "\n$" "" commands "${commands}")
string(REPLACE "\n" ";" commands "${commands}")
foreach(line ${commands})
  if(NOT line MATCHES "^ +([a-z]+) +(.*)$")
    message(FATAL_ERROR "vit --help lists a command that is none: ${line}")
  endif()
  write_page("vit-${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" "${VIT}" "${CMAKE_MATCH_1}")
endforeach()
# Last, because its time says that all are there.
write_page(vit "Vision Transformers on CPUs" "${VIT}")
