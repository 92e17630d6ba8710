// Memory of NPUs that peers access directly.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <hccl/hccl.h>

#include "clients/library/hccl_calls.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

extern "C" {
#pragma GCC visibility push(default)

HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t /*alignment*/,
                                  uint64_t /*flags*/) {
  return result_of(__func__, ask(Call::set_range, {number_of(comm), number_of(baseVirPtr), size}));
}

HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr) {
  return result_of(__func__, ask(Call::unset_range, {number_of(comm), number_of(baseVirPtr)}));
}

HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                                      uint64_t /*flags*/) {
  if (offset != 0) return failed(__func__, HCCL_E_PARA, "offset: only 0");
  return result_of(__func__, ask(Call::activate_range, {number_of(comm), number_of(virPtr), size, number_of(handle)}));
}

HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr) {
  return result_of(__func__, ask(Call::deactivate_range, {number_of(comm), number_of(virPtr)}));
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
