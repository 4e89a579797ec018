# Every source is in a list: a test that nobody builds never fails. Run: cmake -DROOT=<source folder> -P cmake/check_sources.cmake
# A source is listed by the CMakeLists.txt of its folder or of one above, by its path from there; ../x counts as well.
cmake_minimum_required(VERSION 3.25)

file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/src/*.cpp ${ROOT}/apps/*.cpp ${ROOT}/tests/*.cpp ${ROOT}/bench/*.cpp)
file(GLOB_RECURSE lists ${ROOT}/src/CMakeLists.txt ${ROOT}/apps/CMakeLists.txt ${ROOT}/tests/CMakeLists.txt
     ${ROOT}/bench/CMakeLists.txt)
list(FILTER sources EXCLUDE REGEX "^tests/style/.*_broken/")  # trees that a check has to refuse
if(NOT sources)
  message(FATAL_ERROR "no sources under ${ROOT}")
endif()

set(listed "")
foreach(list IN LISTS lists)
  get_filename_component(folder ${list} DIRECTORY)
  file(STRINGS ${list} lines REGEX "\\.cpp")
  foreach(line IN LISTS lines)
    string(REGEX REPLACE "#.*" "" line "${line}")
    string(REGEX MATCHALL "[A-Za-z0-9_./]+\\.cpp" names "${line}")
    foreach(name IN LISTS names)
      get_filename_component(path ${folder}/${name} ABSOLUTE)
      file(RELATIVE_PATH path ${ROOT} ${path})
      list(APPEND listed ${path})
    endforeach()
  endforeach()
endforeach()

set(bad 0)
foreach(source IN LISTS sources)
  if(NOT source IN_LIST listed)
    message("${source}: in no CMakeLists.txt")
    math(EXPR bad "${bad} + 1")
  endif()
endforeach()
if(bad)
  message(FATAL_ERROR "${bad} sources that nothing builds")
endif()
