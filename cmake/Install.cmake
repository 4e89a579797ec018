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
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
install(DIRECTORY configs/runs configs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/shardplan COMPONENT runtime
        FILES_MATCHING PATTERN "*.json")

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "shardplan developers <shardplan@example.org>")
set(CPACK_PACKAGE_CONTACT ${CPACK_DEBIAN_PACKAGE_MAINTAINER})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME shardplan)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libshardplan-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libfmt-dev, nlohmann-json3-dev")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_CURRENT_SOURCE_DIR}/LICENSE)
include(CPack)
