# cmake --install: the program, the shipped scenarios and profiles, documents and licence.
if(TARGET railyard)
  install(TARGETS railyard RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(DIRECTORY "${PROJECT_SOURCE_DIR}/scenarios/"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/railyard/scenarios"
        FILES_MATCHING PATTERN "*.yaml")
set(_railyard_docs "${CMAKE_INSTALL_DATADIR}/doc/railyard")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/" DESTINATION "${_railyard_docs}" OPTIONAL)
foreach(_file IN ITEMS LICENSE CHANGELOG.md README.md)
  install(FILES "${PROJECT_SOURCE_DIR}/${_file}" DESTINATION "${_railyard_docs}" OPTIONAL)
endforeach()
