# Language level, warnings, sanitizers and the compiler cache, for every target of the project.
#
# Results must be bit-identical on every machine, so there is no -march=native, no fast-math, and
# no contraction of a*b+c into one rounding.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# RelWithDebInfo is the developers' build: assertions on, quick to compile, line tables only.
# NDEBUG in Release turns off third-party assertions; RAILYARD_CHECK is on in every build type.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1 -D_GLIBCXX_ASSERTIONS")

add_compile_options(-ffp-contract=off
                    -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                    "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
# Designated initialisers name what differs from the defaults; g++ would have them name everything.
add_compile_options(-Wno-missing-field-initializers)
if(RAILYARD_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 reports these inside libstdc++'s own inlined std::string and std::vector code
  # (GCC bugs 105651, 105329, 107852); clang and g++ 13 do not.
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
                      -Wno-stringop-overread)
endif()

if(RAILYARD_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "RAILYARD_FUZZ needs clang++ (use the preset 'fuzz')")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()
if(RAILYARD_SANITIZE)
  add_compile_options("-fsanitize=${RAILYARD_SANITIZE}" -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options("-fsanitize=${RAILYARD_SANITIZE}")
endif()

# The headers that nearly every file includes, parsed once per target. Not in the clang preset, which
# sees every file as it is, so that a missing include is found.
if(NOT RAILYARD_SANITIZE AND (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" OR RAILYARD_FUZZ))
  set(RAILYARD_COMMON_HEADERS
      <algorithm> <array> <chrono> <cmath> <compare> <coroutine> <cstdint> <deque> <filesystem>
      <functional> <map> <memory> <optional> <set> <span> <string> <string_view> <unordered_map>
      <utility> <variant> <vector> <fmt/format.h>)
  # For ccache: what goes into its hash, and precompiled headers that do not change with the clock.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  else()
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
endif()

# Another clone's objects are this one's: paths count from the source folder.
find_program(RAILYARD_CCACHE ccache)
mark_as_advanced(RAILYARD_CCACHE)
if(RAILYARD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros"
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR};CCACHE_NOHASHDIR=1;${RAILYARD_CCACHE}")
endif()
