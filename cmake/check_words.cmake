# The words of .github/CONTRIBUTING.md in comments, messages and pages: cmake -DROOT=<source dir> -P cmake/check_words.cmake
# A rule is a pattern of words in lower case, a "=", what to write instead, and with a second "=" the paths that it is about.
# Not searched: code, `code` in pages, the change log, and what others wrote or read (data/, golden makers, corpora).
cmake_policy(VERSION 3.25)

set(rules
    "pictures?=image or a picture is only what is drawn=^(vit|tests/(analysis|api|base|c|config|encoder|head|image|io|kernels|layers|patch|position|rings|text|threads|towers|weights))/.*[.](h|cpp)$"
    "prepared (images?|pixels)=preprocessed pixels"
    "turned|turns? (by|back|clockwise) |turns (it|them|errors|images|texts) into=rotate or convert=[.](h|cpp|md)$"
    "whole numbers?=integer, int8"
    "fetch(ed|es)? ahead=prefetch"
    "throws error where=Throws Error if"
    "halves to even=round half to even"
    "appears? whole=written atomically"
    "by turns=interleaved, alternating"
    "quiet minutes?=on an idle machine"
    "doors?=adapter, conversion"
    "tells?|told|speaks?|spoken=state, describe, report, infer, determine"
    "alone=only, by itself"
    "behind=after"
    "beside=next to, in addition to"
    "meets?|met=attend to, encounter, agree with, satisfy"
    "stands? (for|in|alone|there|behind)|standing|stood=mean, be, replace, be stored"
    "nobody|somebody=no caller, no file or a user"
    "goes with|go with=requires, is for"
    "any more=no longer"
    "held against=compared with"
    "normalis[a-z]*|quantis[a-z]*|optimis[a-z]*|initialis[a-z]*|recognis[a-z]*|centres?|centred|colours?|colou?red by|behaviours?|neighbours?=American spelling")

file(GLOB_RECURSE files RELATIVE "${ROOT}" "${ROOT}/vit/*" "${ROOT}/apps/*" "${ROOT}/tests/*" "${ROOT}/cmake/*" "${ROOT}/.github/*.md")
file(GLOB top RELATIVE "${ROOT}" "${ROOT}/README.md" "${ROOT}/CMakeLists.txt")
list(APPEND files ${top})
list(FILTER files INCLUDE REGEX "([.](h|cpp|c|md|cmake|py)|CMakeLists[.]txt)$")
list(FILTER files EXCLUDE REGEX "^cmake/check_words[.]cmake$|CONTRIBUTING[.]md$|/golden/|/corpus/|/node_modules/|^build/")

set(all "")
foreach(rule ${rules})
  string(REGEX REPLACE "=.*" "" words "${rule}")
  list(APPEND all "${words}")
endforeach()
list(JOIN all "|" all)

# What a person reads of a line, in `text`: of a source its comment and its messages, of a page what is no code.
function(read_prose file line)
  set(text "")
  if(file MATCHES "[.](h|cpp|c)$")
    string(REGEX MATCHALL "\"[^\"]* [^\"]*\"" text "${line}")
    if(line MATCHES "(^|[^:])//(.*)$")
      string(APPEND text " ${CMAKE_MATCH_2}")
    endif()
  elseif(file MATCHES "[.]md$")
    string(REGEX REPLACE "[(][^ ()]*[)]" "" text "${line}")  # addresses
  elseif(line MATCHES "#(.*)$")
    set(text "${CMAKE_MATCH_1}")
  endif()
  string(REGEX REPLACE "`[^`]*`" "" text "${text}")
  set(text " ${text} " PARENT_SCOPE)
endfunction()

set(found "")
foreach(file ${files})
  file(READ "${ROOT}/${file}" content)
  string(TOLOWER "${content}" content)
  if(NOT content MATCHES "[^a-z_](${all})[^a-z_]")
    continue()
  endif()
  # Lists of CMake must not see these.
  string(REGEX REPLACE "[][;\\]" "," content "${content}")
  string(REPLACE "\n" ";" content "${content}")
  set(number 0)
  set(is_code FALSE)
  foreach(line IN LISTS content)
    math(EXPR number "${number} + 1")
    if(line MATCHES "^ *```")
      if(is_code)
        set(is_code FALSE)
      else()
        set(is_code TRUE)
      endif()
    endif()
    if(is_code OR NOT line MATCHES "(^|[^a-z_])(${all})($|[^a-z_])")
      continue()
    endif()
    read_prose("${file}" "${line}")
    foreach(rule ${rules})
      string(REPLACE "=" ";" rule "${rule}")
      list(GET rule 0 words)
      list(GET rule 1 instead)
      list(LENGTH rule parts)
      if(parts EQUAL 3)
        list(GET rule 2 where)
        if(NOT file MATCHES "${where}")
          continue()
        endif()
      endif()
      if(text MATCHES "[^a-z_](${words})[^a-z_]")
        string(APPEND found "  ${file}:${number}: \"${CMAKE_MATCH_1}\": ${instead}\n")
      endif()
    endforeach()
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "words that .github/CONTRIBUTING.md replaces by others:\n${found}")
endif()
list(LENGTH files count)
message(STATUS "${count} files in the words of .github/CONTRIBUTING.md")
