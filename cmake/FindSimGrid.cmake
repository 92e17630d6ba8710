# Finds SimGrid as Debian's libsimgrid-dev installs it (the package ships no CMake file).
# Defines the imported target SimGrid::SimGrid and SimGrid_VERSION.
find_path(SimGrid_INCLUDE_DIR simgrid/version.h)
find_library(SimGrid_LIBRARY simgrid)
if(SimGrid_INCLUDE_DIR)
  file(STRINGS ${SimGrid_INCLUDE_DIR}/simgrid/version.h version_lines REGEX "#define SIMGRID_VERSION_(MAJOR|MINOR|PATCH)")
  foreach(part MAJOR MINOR PATCH)
    string(REGEX REPLACE ".*SIMGRID_VERSION_${part} ([0-9]+).*" "\\1" SimGrid_${part} "${version_lines}")
  endforeach()
  set(SimGrid_VERSION ${SimGrid_MAJOR}.${SimGrid_MINOR}.${SimGrid_PATCH})
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SimGrid REQUIRED_VARS SimGrid_LIBRARY SimGrid_INCLUDE_DIR
                                  VERSION_VAR SimGrid_VERSION)
if(SimGrid_FOUND AND NOT TARGET SimGrid::SimGrid)
  add_library(SimGrid::SimGrid UNKNOWN IMPORTED)
  set_target_properties(SimGrid::SimGrid PROPERTIES
    IMPORTED_LOCATION ${SimGrid_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${SimGrid_INCLUDE_DIR})
endif()
