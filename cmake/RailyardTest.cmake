# railyard_test(<folder> LINK <library>...): the doctest binary test_<folder> of every .cpp in and
# under tests/<folder>. Each doctest test case becomes a ctest "<folder>/<test case>"; one whose
# name contains "[oracle]" gets the label oracle. A test case that calls RAILYARD_SKIP
# (tests/skip.h) is reported by ctest as skipped.
function(railyard_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cpp")
  if(NOT sources)
    return()
  endif()
  set(target test_${folder})
  add_executable(${target} ${sources})
  target_link_libraries(${target} PRIVATE railyard_test_main ${arg_LINK})
  target_precompile_headers(${target} PRIVATE ${RAILYARD_COMMON_HEADERS} <doctest/doctest.h>)
  doctest_discover_tests(${target} TEST_PREFIX "${folder}/"
    PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT RAILYARD_SKIP_STATUS=77 TIMEOUT 600)

  set(labels "${CMAKE_CURRENT_BINARY_DIR}/${target}_labels.cmake")
  file(CONFIGURE OUTPUT "${labels}" @ONLY CONTENT [=[
foreach(name IN LISTS @target@_TESTS)
  if(name MATCHES "\\[oracle\\]")
    set_tests_properties("${name}" PROPERTIES LABELS oracle)
  endif()
endforeach()
]=])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${labels}")
endfunction()
