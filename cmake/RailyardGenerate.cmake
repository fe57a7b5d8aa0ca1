# Generated headers, in <build>/generated: sim/version.h and scenarios/data_dir.h.

set(RAILYARD_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(RAILYARD_SOURCE_DIR "${PROJECT_SOURCE_DIR}")
set(RAILYARD_INSTALL_DATADIR "${CMAKE_INSTALL_FULL_DATADIR}/railyard")
configure_file("${PROJECT_SOURCE_DIR}/scenarios/data_dir.h.in"
               "${RAILYARD_GENERATED_DIR}/scenarios/data_dir.h" @ONLY)

# The version is described at every build, not only when CMake runs, so that a binary never names
# a commit it was not built from. The header is rewritten only when the text changes.
set(_railyard_version_command
    "${CMAKE_COMMAND}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "-DOUTPUT=${RAILYARD_GENERATED_DIR}/sim/version.h" "-DPROJECT_VERSION=${PROJECT_VERSION}"
    -P "${PROJECT_SOURCE_DIR}/cmake/version.cmake")
execute_process(COMMAND ${_railyard_version_command} COMMAND_ERROR_IS_FATAL ANY)
add_custom_target(railyard_version COMMAND ${_railyard_version_command}
                  BYPRODUCTS "${RAILYARD_GENERATED_DIR}/sim/version.h"
                  COMMENT "Describing the version" VERBATIM)
