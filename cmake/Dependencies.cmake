# Installed packages first. Nothing is fetched unless asked for (SHARDPLAN_FETCH_DEPS): builds of distributions and of
# machines without a network never reach out. What is fetched is pinned to the commit of a release.
include(FetchContent)

# For another machine (Emscripten): the headers of /usr/include alone. They are copied, for beside them lie those of the
# building machine's C library; package files refuse targets of 32 bits.
function(shardplan_copied_headers folder target)
  find_path(${folder}_parent ${folder} PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  file(COPY ${${folder}_parent}/${folder} DESTINATION ${CMAKE_BINARY_DIR}/dependencies)
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${target} SYSTEM INTERFACE ${CMAKE_BINARY_DIR}/dependencies)
endfunction()

# shardplan_dependency(NAME name VERSION v TARGET t PACKAGE debian-package REPOSITORY url COMMIT hash HEADERS folder)
function(shardplan_dependency)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;VERSION;TARGET;PACKAGE;REPOSITORY;COMMIT;HEADERS" "")
  if(EMSCRIPTEN AND NOT SHARDPLAN_FETCH_DEPS)
    shardplan_copied_headers(${arg_HEADERS} ${arg_TARGET})
    return()
  endif()
  find_package(${arg_NAME} ${arg_VERSION} QUIET GLOBAL)
  if(TARGET ${arg_TARGET})
    return()
  endif()
  if(NOT SHARDPLAN_FETCH_DEPS)
    message(FATAL_ERROR "${arg_NAME} ${arg_VERSION} was not found. Install it (Debian: apt-get install ${arg_PACKAGE}) "
                        "or configure with -DSHARDPLAN_FETCH_DEPS=ON to fetch it from ${arg_REPOSITORY}.")
  endif()
  message(STATUS "Fetching ${arg_NAME} from ${arg_REPOSITORY}")
  FetchContent_Declare(${arg_NAME} GIT_REPOSITORY ${arg_REPOSITORY} GIT_TAG ${arg_COMMIT})
  FetchContent_MakeAvailable(${arg_NAME})
  # Warnings in other people's headers are not errors of ours.
  get_target_property(target ${arg_TARGET} ALIASED_TARGET)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set_target_properties(${target} PROPERTIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${folders}")
endfunction()

set(JSON_Install ON)  # an installed shardplan needs it beside it
set(JSON_BuildTests OFF)
set(CLI11_BUILD_TESTS OFF)
set(CLI11_BUILD_EXAMPLES OFF)
set(CLI11_BUILD_DOCS OFF)
set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)

shardplan_dependency(NAME fmt VERSION 9 TARGET fmt::fmt-header-only PACKAGE libfmt-dev
  REPOSITORY https://github.com/fmtlib/fmt.git COMMIT a33701196adfad74917046096bf5a2aa0ab0bb50  # 9.1.0
  HEADERS fmt)
shardplan_dependency(NAME nlohmann_json VERSION 3.11 TARGET nlohmann_json::nlohmann_json PACKAGE nlohmann-json3-dev
  REPOSITORY https://github.com/nlohmann/json.git COMMIT bc889afb4c5bf1c0d8ee29ef35eaaf4c8bef8a5d  # 3.11.2
  HEADERS nlohmann)
shardplan_dependency(NAME CLI11 VERSION 2.1 TARGET CLI11::CLI11 PACKAGE libcli11-dev
  REPOSITORY https://github.com/CLIUtils/CLI11.git COMMIT 291c58789c031208f08f4f261a858b5b7083e8e2  # 2.3.2
  HEADERS CLI)
if(SHARDPLAN_BUILD_TESTS)
  shardplan_dependency(NAME Catch2 VERSION "" TARGET Catch2::Catch2 PACKAGE catch2
    REPOSITORY https://github.com/catchorg/Catch2.git COMMIT 182c910b4b63ff587a3440e08f84f70497e49a81)  # 2.13.10
  if(DEFINED catch2_SOURCE_DIR)
    list(APPEND CMAKE_MODULE_PATH ${catch2_SOURCE_DIR}/contrib)
  endif()
endif()
find_package(Threads REQUIRED)

# fmt's headers: its functions are compiled into the library (cmake/fmt_definitions.cpp).
add_library(shardplan_fmt INTERFACE)
target_include_directories(shardplan_fmt SYSTEM INTERFACE
  $<TARGET_PROPERTY:fmt::fmt-header-only,INTERFACE_INCLUDE_DIRECTORIES>)
