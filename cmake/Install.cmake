# Installing, the package that other projects find, and archives.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardplan)
install(TARGETS shardplan_cli COMPONENT runtime)
install(TARGETS shardplan EXPORT shardplanTargets COMPONENT development)
install(DIRECTORY include/ ${CMAKE_CURRENT_BINARY_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development FILES_MATCHING PATTERN "*.hpp")
install(EXPORT shardplanTargets NAMESPACE shardplan:: DESTINATION ${package_dir} COMPONENT development)
configure_package_config_file(cmake/shardplanConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/shardplanConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/shardplanConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/shardplanConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/shardplanConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)
install(DIRECTORY configs/runs DESTINATION ${CMAKE_INSTALL_DATADIR}/shardplan COMPONENT runtime
        FILES_MATCHING PATTERN "*.json")

# What shells and man(1) look for, and documents where Debian's policy wants them: compressed, with a copyright file.
set(installed_docs ${CMAKE_CURRENT_BINARY_DIR}/docs)
file(MAKE_DIRECTORY ${installed_docs})
find_program(GZIP_PROGRAM gzip)
function(compressed source target)
  add_custom_command(OUTPUT ${installed_docs}/${target}
                     COMMAND ${GZIP_PROGRAM} -9nc ${source} > ${installed_docs}/${target}
                     DEPENDS ${source} VERBATIM)
  set_property(GLOBAL APPEND PROPERTY compressed_docs ${installed_docs}/${target})
endfunction()
if(TARGET shardplan_shell_outputs)
  set(shell_folder ${CMAKE_CURRENT_BINARY_DIR}/apps/shardplan/shell)
  # The schemas that files beside them name: printed by the program, as `shardplan schema` does.
  install(DIRECTORY ${shell_folder}/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/shardplan COMPONENT runtime)
  install(FILES ${shell_folder}/shardplan.bash RENAME shardplan COMPONENT runtime
          DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${shell_folder}/_shardplan COMPONENT runtime
          DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${shell_folder}/shardplan.fish COMPONENT runtime
          DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  if(GZIP_PROGRAM)
    compressed(${shell_folder}/shardplan.1 shardplan.1.gz)
    install(FILES ${installed_docs}/shardplan.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
  else()
    install(FILES ${shell_folder}/shardplan.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime)
  endif()
endif()
install(FILES README.md cmake/debian/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(FILES cmake/debian/copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libshardplan-dev COMPONENT development)
if(GZIP_PROGRAM)
  string(TIMESTAMP debian_date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  configure_file(cmake/debian/changelog.in ${installed_docs}/changelog @ONLY)
  compressed(${installed_docs}/changelog changelog.gz)
  compressed(${CMAKE_CURRENT_SOURCE_DIR}/CHANGELOG.md NEWS.gz)
  install(FILES ${installed_docs}/changelog.gz ${installed_docs}/NEWS.gz DESTINATION ${CMAKE_INSTALL_DOCDIR}
          COMPONENT runtime)
  install(FILES ${installed_docs}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libshardplan-dev
          COMPONENT development)
  get_property(compressed_docs GLOBAL PROPERTY compressed_docs)
  add_custom_target(shardplan_compressed_docs ALL DEPENDS ${compressed_docs})
endif()

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "shardplan developers <shardplan@example.org>")
set(CPACK_PACKAGE_CONTACT ${CPACK_DEBIAN_PACKAGE_MAINTAINER})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(SHARDPLAN_STATIC AND SHARDPLAN_CAN_LINK_STATICALLY)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS OFF)  # the program needs no library
  install(FILES cmake/debian/lintian-overrides RENAME shardplan COMPONENT runtime
          DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides)
else()
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
endif()
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                                                WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "memory, bubble, step time and MFU of LLM training runs
Plans training runs of large language models before a GPU is rented: memory of
each pipeline stage, communication, bubble, step time and MFU, for Megatron-LM,
DeepSpeed, FSDP and PyTorch. Checks run files in CI, sweeps fields, compares
runs.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "memory, bubble, step time and MFU of LLM training runs (development files)
The planner's core as a static C++20 library, its headers and a CMake package.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME shardplan)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libshardplan-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "nlohmann-json3-dev")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
include(CPack)
