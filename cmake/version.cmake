# Writes OUTPUT from sim/version.h.in: "0.1.0", or "0.1.0 (v0.1.0-3-gabc1234)" inside git.
# Run as: cmake -DSOURCE_DIR=... -DOUTPUT=... -DPROJECT_VERSION=... -P version.cmake
set(description "")
find_program(git git)
# Only when the sources are themselves a checkout: not when unpacked inside someone else's.
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(COMMAND "${git}" -C "${SOURCE_DIR}" describe --tags --always --dirty
                  RESULT_VARIABLE status OUTPUT_VARIABLE description ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(description "")
  endif()
endif()
set(RAILYARD_VERSION "${PROJECT_VERSION}")
if(description)
  string(APPEND RAILYARD_VERSION " (${description})")
endif()
configure_file("${SOURCE_DIR}/sim/version.h.in" "${OUTPUT}" @ONLY)
