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

HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size, HcclCommSymWindow* winHandle,
                                  uint32_t flag) {
  if (winHandle == nullptr) return failed(__func__, HCCL_E_PTR, "winHandle is null");
  if (flag != HCCL_WIN_COLL_SYMMETRIC) {
    return failed(__func__, HCCL_E_NOT_SUPPORT, "flag: only HCCL_WIN_COLL_SYMMETRIC");
  }
  const Answer answer = ask(Call::begin_window, {number_of(comm), number_of(addr), size});
  if (answer.status == 0) *winHandle = handle_of(answer.values[0]);
  return result_of(__func__, answer);
}

HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle) {
  return result_of(__func__, ask(Call::end_window, {number_of(winHandle)}));
}

HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, HcclCommSymWindow* winHandle, size_t* offset) {
  if (winHandle == nullptr || offset == nullptr) return failed(__func__, HCCL_E_PTR, "null");
  const Answer answer = ask(Call::find_window, {number_of(comm), number_of(ptr), size});
  if (answer.status == 0) {
    *winHandle = handle_of(answer.values[0]);
    *offset = answer.values[1];
  }
  return result_of(__func__, answer);
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
