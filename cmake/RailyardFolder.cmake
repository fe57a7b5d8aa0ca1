# railyard_folder(<name> [EXCLUDE <regex>]): the static library railyard_<name>, also known as
# railyard::<name>, of every .cpp in and under the calling folder. What it depends on is stated
# after the call, with target_link_libraries, in the same file.
function(railyard_folder name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  if(NOT sources)  # a folder may be empty for a while
    set(placeholder "${CMAKE_CURRENT_BINARY_DIR}/empty_${name}.cpp")
    file(CONFIGURE OUTPUT "${placeholder}" CONTENT "// no sources yet\n" @ONLY)
    set(sources "${placeholder}")
  endif()
  add_library(railyard_${name} STATIC ${sources})
  add_library(railyard::${name} ALIAS railyard_${name})
  add_dependencies(railyard_${name} railyard_version)
  target_include_directories(railyard_${name}
    PUBLIC "${PROJECT_SOURCE_DIR}" "${RAILYARD_GENERATED_DIR}")
  target_precompile_headers(railyard_${name} PRIVATE ${RAILYARD_COMMON_HEADERS})
endfunction()
