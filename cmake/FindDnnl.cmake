# Finds oneDNN 2 as Debian's libdnnl-dev installs it. Its own CMake file asks for the headers of OpenCL, which nothing
# here needs. Defines the imported target Dnnl::Dnnl and Dnnl_VERSION.
find_path(Dnnl_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(Dnnl_LIBRARY dnnl)
if(Dnnl_INCLUDE_DIR)
  file(STRINGS ${Dnnl_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h version_lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX REPLACE ".*DNNL_VERSION_${part} +([0-9]+).*" "\\1" Dnnl_${part} "${version_lines}")
  endforeach()
  set(Dnnl_VERSION ${Dnnl_MAJOR}.${Dnnl_MINOR}.${Dnnl_PATCH})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Dnnl REQUIRED_VARS Dnnl_LIBRARY Dnnl_INCLUDE_DIR VERSION_VAR Dnnl_VERSION
                                  HANDLE_VERSION_RANGE)
if(Dnnl_FOUND AND NOT TARGET Dnnl::Dnnl)
  add_library(Dnnl::Dnnl UNKNOWN IMPORTED)
  set_target_properties(Dnnl::Dnnl PROPERTIES
    IMPORTED_LOCATION ${Dnnl_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${Dnnl_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES gomp)  # its threads: WorkerPool tells it to use one
endif()
