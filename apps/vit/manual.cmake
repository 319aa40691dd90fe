# Completion for bash and zsh, and manual pages by help2man where it is installed. Both are made by programs of this build,
# and therefore not when it is for another machine.
if(CMAKE_CROSSCOMPILING)
  return()
endif()
set(manual "${CMAKE_CURRENT_BINARY_DIR}/manual")
file(MAKE_DIRECTORY "${manual}")
set(manual_files "${manual}/vit.bash" "${manual}/_vit")

add_executable(vit_completion completion/main.cpp)
target_link_libraries(vit_completion PRIVATE vit_program_parts)
vit_warnings(vit_completion)
add_custom_command(OUTPUT "${manual}/vit.bash" COMMAND vit_completion bash "${manual}/vit.bash" DEPENDS vit_completion VERBATIM)
add_custom_command(OUTPUT "${manual}/_vit" COMMAND vit_completion zsh "${manual}/_vit" DEPENDS vit_completion VERBATIM)

find_program(VIT_HELP2MAN help2man)
mark_as_advanced(VIT_HELP2MAN)
if(VIT_HELP2MAN)
  list(APPEND manual_files "${manual}/man1/vit.1")
  add_custom_command(
    OUTPUT "${manual}/man1/vit.1"
    COMMAND ${CMAKE_COMMAND} "-DHELP2MAN=${VIT_HELP2MAN}" "-DVIT=$<TARGET_FILE:vit_program>" "-DVERSION=${PROJECT_VERSION}"
            "-DFOLDER=${manual}/man1" -P "${CMAKE_CURRENT_LIST_DIR}/manual_pages.cmake"
    DEPENDS vit_program "${CMAKE_CURRENT_LIST_DIR}/manual_pages.cmake" VERBATIM)
endif()
add_custom_target(vit_manual ALL DEPENDS ${manual_files})

if(VIT_INSTALL)  # optional: whoever builds only vit_program can install it
  install(FILES "${manual}/vit.bash" DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" RENAME vit
          COMPONENT program OPTIONAL)
  install(FILES "${manual}/_vit" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" COMPONENT program OPTIONAL)
  if(VIT_HELP2MAN)
    install(DIRECTORY "${manual}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}" COMPONENT program OPTIONAL)
  endif()
endif()
