#include "models/onnx/model_file.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace hcclsim::models::onnx {

OnnxModule& onnx_module() {
  static OnnxModule* const loaded = []() -> OnnxModule* {
    void* const library = ::dlopen("libhcclsim_onnx.so", RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : ::dlsym(library, "hcclsim_onnx_module");
    if (entry == nullptr) {
      internal_error("the part of hcclsim that reads ONNX cannot be loaded: {}; it is installed with the command",
                     ::dlerror());
    }
    return reinterpret_cast<OnnxModule* (*)()>(entry)();  // NOLINT(*-reinterpret-cast): what dlsym is for
  }();
  return *loaded;
}

ElementKind kind_of(int element_type) {
  switch (element_type) {
    case 1:   // float
    case 10:  // float16
    case 11:  // double
    case 16:  // bfloat16
      return ElementKind::floating;
    case 2:   // uint8
    case 3:   // int8
    case 4:   // uint16
    case 5:   // int16
    case 6:   // int32
    case 7:   // int64
    case 12:  // uint32
    case 13:  // uint64
      return ElementKind::integer;
    default:
      return ElementKind::other;
  }
}

}  // namespace hcclsim::models::onnx
