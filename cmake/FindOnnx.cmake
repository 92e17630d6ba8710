# Finds ONNX as Debian's libonnx-dev installs it (the package ships no CMake file). Defines the imported target Onnx::Onnx.
find_path(Onnx_INCLUDE_DIR onnx/onnx_pb.h)
find_library(Onnx_LIBRARY onnx)
find_library(Onnx_PROTO_LIBRARY onnx_proto)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Onnx REQUIRED_VARS Onnx_LIBRARY Onnx_PROTO_LIBRARY Onnx_INCLUDE_DIR)
if(Onnx_FOUND AND NOT TARGET Onnx::Onnx)
  add_library(Onnx::Onnx UNKNOWN IMPORTED)
  set_target_properties(Onnx::Onnx PROPERTIES
    IMPORTED_LOCATION ${Onnx_LIBRARY}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${Onnx_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS "ONNX_ML=1;ONNX_NAMESPACE=onnx"
    INTERFACE_LINK_LIBRARIES "${Onnx_PROTO_LIBRARY};protobuf::libprotobuf")
endif()
