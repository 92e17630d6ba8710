// What the documents of HCCL and ACL say of functions and structures, by name: interface CASE. Prints what it finds; a
// status other than 0 if something is not as it should be.

#include <hccl/hccl.h>
#include <mpi.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "examples/clients/world.hpp"
#include "tests/clients/programs/support.hpp"

namespace {

World world;
aclrtStream stream;

/// No more of a root info than its handle is written and read.
void small_root() {
  constexpr std::size_t room = 256;
  std::vector<char> bytes(2 * room, 'x');
  auto* const root = reinterpret_cast<HcclRootInfo*>(bytes.data());
  if (world.rank == 0) CHECK(HcclGetRootInfo(root));
  WANT(std::count(bytes.begin() + room, bytes.end(), 'x'), room);
  MPI_Bcast(bytes.data(), room, MPI_CHAR, 0, MPI_COMM_WORLD);
  HcclComm comm = nullptr;
  CHECK(HcclCommInitRootInfo(world.ranks, root, world.rank, &comm));
  WANT(sum(comm, stream, 1), world.ranks);
  HcclRootInfo without_device;
  std::memset(&without_device, 'x', sizeof without_device);
  CHECK(aclrtResetDeviceForce(static_cast<int>(world.rank)));
  WANT(HcclGetRootInfo(&without_device), HCCL_E_RUNTIME);
  WANT(without_device.internal[0], 'x');
}

/// Types that the chip lacks, or that are none.
void types() {
  void* buffer = nullptr;
  CHECK(aclrtMalloc(&buffer, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
  const int lacking[] = {
      12, 13, HCCL_DATA_TYPE_HIF8, HCCL_DATA_TYPE_FP8E4M3, HCCL_DATA_TYPE_FP8E5M2, HCCL_DATA_TYPE_FP8E8M0, 18, 255};
  for (const int one : lacking) {
    const auto type = static_cast<HcclDataType>(one);
    WANT(HcclAllReduce(buffer, buffer, 4, type, HCCL_REDUCE_SUM, world.comm, stream), HCCL_E_NOT_SUPPORT);
    WANT(HcclAllGather(buffer, buffer, 4, type, world.comm, stream), HCCL_E_NOT_SUPPORT);
    WANT(HcclBroadcast(buffer, 4, type, 0, world.comm, stream), HCCL_E_NOT_SUPPORT);
    WANT(HcclSend(buffer, 4, type, 0, world.comm, stream), HCCL_E_NOT_SUPPORT);
    HcclSendRecvItem item{HCCL_SEND, buffer, 4, type, 0};
    WANT(HcclBatchSendRecv(&item, 1, world.comm, stream), HCCL_E_NOT_SUPPORT);
  }
}

HcclComm with(const HcclCommConfig* config, int wanted = HCCL_SUCCESS) {
  HcclRootInfo root{};
  CHECK(HcclGetRootInfo(&root));
  HcclComm comm = nullptr;
  WANT(HcclCommInitRootInfoConfig(1, &root, 0, config, &comm), wanted);
  return comm;
}

/// The configuration's newer fields, and a structure of a program that was compiled before there were any.
void config() {
  WANT(HcclGetCommConfigCapability(), HCCL_COMM_CONFIG_RESERVED);
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  WANT(config.hcclSymWinMaxMemSizePerRank, 16);
  config.hcclWorldRankID = 7;
  config.hcclJobID = 0xab00000001;
  config.hcclSymWinMaxMemSizePerRank = 1;
  std::strcpy(config.hcclAlgo, "level0:NA;level1:ring");
  std::strcpy(config.hcclCommName, "new");
  HcclComm comm = with(&config);
  const Mapped mapped(1024 * mib);
  HcclCommSymWindow window = nullptr;
  HcclCommSymWindow other = nullptr;
  auto* const half = static_cast<char*>(mapped.address) + 512 * mib;
  CHECK(HcclCommSymWinRegister(comm, mapped.address, 512 * mib, &window, HCCL_WIN_COLL_SYMMETRIC));
  CHECK(HcclCommSymWinRegister(comm, half, 512 * mib, &other, HCCL_WIN_COLL_SYMMETRIC));
  const Mapped more(2 * mib);
  HcclCommSymWindow third = nullptr;
  WANT(HcclCommSymWinRegister(comm, more.address, more.bytes, &third, HCCL_WIN_COLL_SYMMETRIC), HCCL_E_MEMORY);
  CHECK(HcclCommSymWinDeregister(window));
  CHECK(HcclCommSymWinRegister(comm, more.address, more.bytes, &third, HCCL_WIN_COLL_SYMMETRIC));

  std::strcpy(config.hcclAlgo, "level1:no-such");
  with(&config, HCCL_E_PARA);
  HcclCommConfigInit(&config);
  config.hcclSymWinMaxMemSizePerRank = 0;
  with(&config, HCCL_E_PARA);
  HcclCommConfigInit(&config);
  config.hcclOpExpansionMode = 5;  // of the Ascend 950
  with(&config, HCCL_E_PARA);
  HcclCommConfigInit(&config);
  config.hcclExecTimeOut = 100;
  std::strcpy(config.hcclCommName, "impatient");
  with(&config);

  // Nothing may be read behind the end of the shorter structure, where no memory is.
  constexpr std::size_t bytes = 300;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + page, page, PROT_NONE) != 0) std::exit(1);
  HcclCommConfigInit(&config);
  std::memcpy(config.reserved, &bytes, sizeof bytes);
  std::strcpy(config.hcclCommName, "old");
  char* const old = static_cast<char*>(pages) + page - bytes;
  std::memcpy(old, &config, bytes);
  comm = with(reinterpret_cast<const HcclCommConfig*>(old));
  char name[COMM_NAME_MAX_LENGTH];
  CHECK(HcclGetCommName(comm, name));
  std::printf("%s\n", name);
}

/// Copies in a stream from host to host, of memory that the stream reads when it is called, or when it comes to it.
void host_to_host() {
  void* pinned = nullptr;
  CHECK(aclrtMallocHost(&pinned, sizeof(int)));
  int& late = *static_cast<int*>(pinned);
  int early = 1;
  late = 1;
  int from_early = 0;
  int from_late = 0;
  CHECK(hcclsimLaunchKernel("kernel", 50, stream));
  CHECK(aclrtMemcpyAsync(&from_early, sizeof(int), &early, sizeof(int), ACL_MEMCPY_HOST_TO_HOST, stream));
  CHECK(aclrtMemcpyAsync(&from_late, sizeof(int), pinned, sizeof(int), ACL_MEMCPY_HOST_TO_HOST, stream));
  early = late = 2;
  WANT(from_early + from_late, 0);
  CHECK(aclrtSynchronizeStream(stream));
  WANT(from_early, 1);
  WANT(from_late, 2);
}

double end_of(aclrtStream one) {
  CHECK(aclrtSynchronizeStream(one));
  return hcclsimDate() * 1e6;
}

/// Streams that wait for events before these are recorded.
void events() {
  aclrtStream other = nullptr;
  CHECK(aclrtCreateStream(&other));
  aclrtEvent plain = nullptr;
  aclrtEvent flag = nullptr;
  aclrtEvent timed = nullptr;
  aclrtEvent extended = nullptr;
  CHECK(aclrtCreateEvent(&plain));
  CHECK(aclrtCreateEventWithFlag(&flag, ACL_EVENT_SYNC));
  CHECK(aclrtCreateEventWithFlag(&timed, ACL_EVENT_TIME_LINE));
  CHECK(aclrtCreateEventExWithFlag(&extended, ACL_EVENT_SYNC));
  aclrtEventRecordedStatus status{};
  for (aclrtEvent one : {plain, flag, timed}) {
    CHECK(aclrtQueryEventStatus(one, &status));
    WANT(status, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  }
  CHECK(aclrtQueryEventStatus(extended, &status));
  WANT(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  for (aclrtEvent one : {plain, flag, extended}) CHECK(aclrtSynchronizeEvent(one));
  WANT(aclrtStreamWaitEvent(stream, plain), ACL_ERROR_RT_PARAM_INVALID);
  WANT(aclrtStreamWaitEvent(stream, timed), ACL_ERROR_RT_PARAM_INVALID);
  const double begin = end_of(stream);
  CHECK(aclrtStreamWaitEvent(stream, extended));
  CHECK(hcclsimLaunchKernel("kernel", 10, stream));
  std::printf("no tasks to wait for: %.3f us\n", end_of(stream) - begin);
  // As hccl_test does to time the device alone: the calls begin when all are issued.
  for (int round = 0; round < 2; ++round) {
    const double start = end_of(stream);
    CHECK(aclrtStreamWaitEvent(stream, flag));
    CHECK(aclrtResetEvent(flag, stream));
    CHECK(hcclsimLaunchKernel("kernel", 10, stream));
    CHECK(hcclsimLaunchKernel("kernel", 100, other));
    CHECK(aclrtRecordEvent(flag, other));
    std::printf("held: %.3f us\n", end_of(stream) - start);
  }
  // A record that was not reset, and a later one.
  const double start = end_of(stream);
  CHECK(aclrtRecordEvent(flag, other));
  CHECK(hcclsimLaunchKernel("kernel", 30, other));
  CHECK(aclrtRecordEvent(flag, other));
  CHECK(aclrtStreamWaitEvent(stream, flag));
  CHECK(aclrtStreamWaitEvent(stream, flag));
  std::printf("the latest: %.3f us\n", end_of(stream) - start);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argv[1];
  world = begin_world(argc, argv);
  CHECK(aclrtCreateStream(&stream));
  if (name == "small_root") small_root();
  if (name == "types") types();
  if (name == "config") config();
  if (name == "events") events();
  if (name == "host_to_host") host_to_host();
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}
