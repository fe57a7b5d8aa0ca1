# What the machine offers: the required packages (all of them Debian's), and the optional ones that
# only probes and oracle tests use. Nothing optional changes what the core builds.

find_package(Boost 1.74 REQUIRED)  # header-only use: Boost.Graph
find_package(CLI11 REQUIRED)
find_package(Eigen3 3.3 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(pugixml REQUIRED)
find_package(TBB REQUIRED)
find_package(Threads REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(ZLIB REQUIRED)
if(BUILD_TESTING)
  find_package(doctest QUIET)  # a user who only builds the program needs none
  find_package(benchmark QUIET)
endif()

find_package(CUDAToolkit QUIET)

find_path(RAILYARD_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV NCCL_HOME
          PATH_SUFFIXES include)
find_library(RAILYARD_NCCL_LIBRARY nccl HINTS ENV NCCL_HOME PATH_SUFFIXES lib lib64)
find_path(RAILYARD_VERBS_INCLUDE infiniband/verbs.h)
find_library(RAILYARD_VERBS_LIBRARY ibverbs)
find_path(RAILYARD_RDMACM_INCLUDE rdma/rdma_cma.h)
find_library(RAILYARD_RDMACM_LIBRARY rdmacm)
find_path(RAILYARD_GLOO_INCLUDE gloo/allreduce.h)
find_library(RAILYARD_GLOO_LIBRARY gloo)
mark_as_advanced(RAILYARD_NCCL_INCLUDE RAILYARD_NCCL_LIBRARY RAILYARD_VERBS_INCLUDE
                 RAILYARD_VERBS_LIBRARY RAILYARD_RDMACM_INCLUDE RAILYARD_RDMACM_LIBRARY
                 RAILYARD_GLOO_INCLUDE RAILYARD_GLOO_LIBRARY)

# The oracle tests run PyTorch itself. The distribution's interpreter is tried first: a python3
# earlier on PATH often lacks Debian's python3-torch.
function(_railyard_find_torch)
  if(DEFINED CACHE{RAILYARD_TORCH_PYTHON})
    return()
  endif()
  find_program(_python python3 NO_CACHE)
  set(found "")
  foreach(candidate IN ITEMS /usr/bin/python3 ${_python})
    if(NOT found AND EXISTS "${candidate}")
      execute_process(COMMAND "${candidate}" -c "import torch; print(torch.__version__)"
                      RESULT_VARIABLE status OUTPUT_VARIABLE version ERROR_QUIET
                      OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(status EQUAL 0)
        set(found "${candidate}")
        set(RAILYARD_TORCH_VERSION "${version}" CACHE INTERNAL "version of that PyTorch")
      endif()
    endif()
  endforeach()
  if(found)  # an absence is not cached, so that installing python3-torch is noticed
    set(RAILYARD_TORCH_PYTHON "${found}" CACHE FILEPATH "A python3 that can import torch")
  endif()
endfunction()
if(BUILD_TESTING)
  _railyard_find_torch()
endif()

function(_railyard_line name found detail)
  string(LENGTH "${name}" length)
  math(EXPR missing "26 - ${length}")
  string(REPEAT " " ${missing} padding)
  if(found)
    message(STATUS "  ${name}${padding}found      ${detail}")
  else()
    message(STATUS "  ${name}${padding}not found")
  endif()
endfunction()

function(railyard_print_summary)
  message(STATUS "Railyard ${PROJECT_VERSION}: ${CMAKE_CXX_COMPILER_ID} "
                 "${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_BUILD_TYPE}")
  message(STATUS "Optional, none is needed to build or to pass the tests:")
  _railyard_line("ccache" "${RAILYARD_CCACHE}" "${RAILYARD_CCACHE}")
  _railyard_line("CUDA toolkit" "${CUDAToolkit_FOUND}" "${CUDAToolkit_VERSION}")
  _railyard_line("NCCL header" "${RAILYARD_NCCL_INCLUDE}" "${RAILYARD_NCCL_INCLUDE}")
  _railyard_line("NCCL library" "${RAILYARD_NCCL_LIBRARY}" "${RAILYARD_NCCL_LIBRARY}")
  _railyard_line("libibverbs headers" "${RAILYARD_VERBS_INCLUDE}" "${RAILYARD_VERBS_INCLUDE}")
  _railyard_line("librdmacm headers" "${RAILYARD_RDMACM_INCLUDE}" "${RAILYARD_RDMACM_INCLUDE}")
  _railyard_line("Gloo headers" "${RAILYARD_GLOO_INCLUDE}" "${RAILYARD_GLOO_INCLUDE}")
  if(BUILD_TESTING)
    _railyard_line("doctest (the test suite)" "${doctest_FOUND}" "${doctest_VERSION}")
    _railyard_line("Google Benchmark" "${benchmark_FOUND}" "${benchmark_VERSION}")
    _railyard_line("Python with PyTorch" "${RAILYARD_TORCH_PYTHON}"
                   "${RAILYARD_TORCH_PYTHON} (${RAILYARD_TORCH_VERSION})")
    if(IS_DIRECTORY "${RAILYARD_SHARED_DIR}")
      set(shared TRUE)
    else()
      set(shared FALSE)
    endif()
    _railyard_line("Reference data" "${shared}" "${RAILYARD_SHARED_DIR}")
  endif()
endfunction()
