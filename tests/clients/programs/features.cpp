// What a program can ask for beside collectives, by name: features CASE [ARGUMENT]. Prints what it finds; a status
// other than 0 if something is not as it should be.

#include <hccl/hccl.h>
#include <hccl/hccl_rank_graph.h>
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "examples/clients/world.hpp"
#include "tests/clients/programs/support.hpp"

namespace {

World world;
aclrtStream stream;

std::string about(HcclComm comm) {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 0;
  char name[COMM_NAME_MAX_LENGTH];
  CHECK(HcclGetRankId(comm, &rank));
  CHECK(HcclGetRankSize(comm, &ranks));
  CHECK(HcclGetCommName(comm, name));
  return "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " in " + name;
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  CHECK(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total));
  return free;
}

/// Ranks 0, 1, 2 of the table are devices 3, 1, 0; processes are devices.
void rank_table(const char* file) {
  const int rank_of_process[] = {2, 1, -1, 0};
  const int rank = rank_of_process[world.rank];
  if (rank < 0) return;
  HcclComm comm = nullptr;
  if (rank == 0) {
    WANT(HcclCommInitClusterInfo("no such file", 0, &comm), HCCL_E_OPEN_FILE_FAILURE);
    WANT(HcclCommInitClusterInfo(file, 3, &comm), HCCL_E_PARA);
    WANT(HcclCommInitClusterInfo(file, 1, &comm), HCCL_E_PARA);  // that is another device
    WANT(HcclCommInitClusterInfo(nullptr, 0, &comm), HCCL_E_PTR);
    WANT(HcclCommInitClusterInfoConfig(file, 0, nullptr, &comm), HCCL_E_PTR);
    HcclCommConfig empty{};
    WANT(HcclCommInitClusterInfoConfig(file, 0, &empty, &comm), HCCL_E_PARA);
  }
  CHECK(HcclCommInitClusterInfo(file, rank, &comm));
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  config.hcclBufferSize = 50;
  std::strcpy(config.hcclCommName, "configured");
  const std::size_t before = free_memory();
  HcclComm configured = nullptr;
  CHECK(HcclCommInitClusterInfoConfig(file, rank, &config, &configured));
  WANT((before - free_memory()) / mib, 2 * 50);
  std::vector<std::uint32_t> members{2, 0};
  HcclComm sub = nullptr;
  if (rank == 1) {
    CHECK(HcclCreateSubCommConfig(&comm, 0, nullptr, 0xffffffff, 0, &config, &sub));
    WANT(sub == nullptr, true);
  } else {
    HcclCommConfigInit(&config);
    CHECK(HcclCreateSubCommConfig(&comm, 2, members.data(), 7, rank == 2 ? 0 : 1, &config, &sub));
    std::printf("process %u: %s: %d\n", world.rank, about(sub).c_str(), sum(sub, stream, 1 << rank));
  }
  std::printf("process %u: %s: %d\n", world.rank, about(comm).c_str(), sum(comm, stream, 1 << rank));
  std::printf("process %u: %s: %d\n", world.rank, about(configured).c_str(), sum(configured, stream, 1 << rank));
}

/// Simulated milliseconds of ten allreduces behind two others.
float loop(void* from, void* to, std::uint64_t count) {
  aclrtEvent begin = nullptr;
  aclrtEvent end = nullptr;
  CHECK(aclrtCreateEvent(&begin));
  CHECK(aclrtCreateEvent(&end));
  for (int i = 0; i < 12; ++i) {
    if (i == 2) CHECK(aclrtRecordEvent(begin, stream));
    CHECK(HcclAllReduce(from, to, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, world.comm, stream));
  }
  CHECK(aclrtRecordEvent(end, stream));
  CHECK(aclrtSynchronizeStream(stream));
  float milliseconds = 0;
  CHECK(aclrtEventElapsedTime(&milliseconds, begin, end));
  return milliseconds;
}

/// Allreduce of 16 MiB: through the communicator's buffers, by zero copy, and between symmetric windows.
void direct_memory() {
  const Mapped mapped(64 * mib);
  auto* const from = static_cast<float*>(mapped.address);
  float* const to = from + 8 * mib;
  const std::uint64_t count = 4 * mib;
  const auto run = [&](const char* how) {
    std::vector<float> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(world.rank + i % 7);
    CHECK(aclrtMemcpy(from, count * 4, data.data(), count * 4, ACL_MEMCPY_HOST_TO_DEVICE));
    const float milliseconds = loop(from, to, count);
    CHECK(aclrtMemcpy(data.data(), count * 4, to, count * 4, ACL_MEMCPY_DEVICE_TO_HOST));
    for (std::size_t i = 0; i < count; ++i) {
      WANT(data[i], world.ranks * (world.ranks - 1) / 2 + world.ranks * (i % 7));
    }
    if (world.rank == 0) std::printf("%s %.9g\n", how, milliseconds);
  };
  run("buffers");
  HcclComm comm = world.comm;
  WANT(HcclCommActivateCommMemory(comm, from, mapped.bytes, 0, mapped.memory, 0), HCCL_E_PARA);  // in no range
  WANT(HcclCommSetMemoryRange(comm, nullptr, mapped.bytes, 0, 0), HCCL_E_PTR);
  WANT(HcclCommSetMemoryRange(comm, from, 2 * mapped.bytes, 0, 0), HCCL_E_PARA);
  CHECK(HcclCommSetMemoryRange(comm, from, mapped.bytes, 0, 0));
  WANT(HcclCommSetMemoryRange(comm, from, mapped.bytes, 0, 0), HCCL_E_PARA);
  run("buffers");
  CHECK(HcclCommActivateCommMemory(comm, from, mapped.bytes, 0, mapped.memory, 0));
  WANT(HcclCommUnsetMemoryRange(comm, from), HCCL_E_PARA);  // still active
  run("direct");
  WANT(HcclCommDeactivateCommMemory(comm, to), HCCL_E_NOT_FOUND);
  CHECK(HcclCommDeactivateCommMemory(comm, from));
  // Piece by piece, as the sizes of a benchmark grow: the first buffer lies in two of them; then with a gap in it.
  float* const second = from + 2 * mib;
  CHECK(HcclCommActivateCommMemory(comm, from, 8 * mib, 0, mapped.memory, 0));
  CHECK(HcclCommActivateCommMemory(comm, second, mapped.bytes - 8 * mib, 0, mapped.memory, 0));
  WANT(HcclCommActivateCommMemory(comm, from, mib, 0, mapped.memory, 0), HCCL_E_PARA);  // it overlaps
  run("direct");
  CHECK(HcclCommDeactivateCommMemory(comm, from));
  run("buffers");
  CHECK(HcclCommDeactivateCommMemory(comm, second));
  CHECK(HcclCommUnsetMemoryRange(comm, from));
  WANT(HcclCommUnsetMemoryRange(comm, from), HCCL_E_NOT_FOUND);
  run("buffers");

  HcclCommSymWindow window = nullptr;
  HcclCommSymWindow found = nullptr;
  std::size_t offset = 0;
  WANT(HcclCommSymWinRegister(comm, from, mapped.bytes, &window, HCCL_WIN_DEFAULT), HCCL_E_NOT_SUPPORT);
  WANT(HcclCommSymWinRegister(comm, from, 0, &window, HCCL_WIN_COLL_SYMMETRIC), HCCL_E_PARA);
  WANT(HcclCommSymWinGet(comm, from, 4, &found, &offset), HCCL_E_NOT_FOUND);
  CHECK(HcclCommSymWinRegister(comm, from, mapped.bytes, &window, HCCL_WIN_COLL_SYMMETRIC));
  CHECK(HcclCommSymWinGet(comm, to, 4, &found, &offset));
  WANT(found == window && offset == 32 * mib, true);
  WANT(HcclCommSymWinGet(comm, to, 33 * mib, &found, &offset), HCCL_E_NOT_FOUND);
  run("direct");
  CHECK(HcclCommSymWinDeregister(window));
  WANT(HcclCommSymWinDeregister(window), HCCL_E_PARA);
  run("buffers");
  mapped.end();
}

void suspend() {
  char name[COMM_NAME_MAX_LENGTH];
  CHECK(HcclGetCommName(world.comm, name));
  HcclCommStatus status = HCCL_COMM_STATUS_RESERVED;
  CHECK(HcclCommSuspend(world.comm));
  CHECK(HcclCommGetStatus(name, &status));
  WANT(status, HCCL_COMM_STATUS_SUSPENDING);
  WANT(HcclBarrier(world.comm, stream), HCCL_E_SUSPENDING);
  CHECK(HcclCommResume(world.comm));
  CHECK(HcclCommGetStatus(name, &status));
  WANT(status, HCCL_COMM_STATUS_READY);
  WANT(HcclCommGetStatus("no such name", &status), HCCL_E_NOT_FOUND);
  WANT(status, HCCL_COMM_STATUS_INVALID);
  MPI_Barrier(MPI_COMM_WORLD);
  WANT(sum(world.comm, stream, 1), world.ranks);
}

/// Devices that the program has: which of the server they are shows in the memory that it takes there.
void devices() {
  std::uint32_t count = 0;
  CHECK(aclrtGetDeviceCount(&count));
  std::vector<std::int32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  std::vector<HcclComm> comms(count);
  WANT(aclrtSetDevice(static_cast<int>(count)), ACL_ERROR_RT_INVALID_DEVICEID);
  WANT(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(HcclCommInitAll(count, all.data(), comms.data()));
  std::int32_t twice[] = {0, 0};
  WANT(HcclCommInitAll(2, twice, comms.data()), HCCL_E_PARA);
  std::int32_t far[] = {0, 99};
  WANT(HcclCommInitAll(2, far, comms.data()), HCCL_E_PARA);
  std::printf("%u devices\n", count);
  if (count < 2) return;

  // Copies between NPUs.
  void* here = nullptr;
  void* there = nullptr;
  CHECK(aclrtSetDevice(1));
  CHECK(aclrtMalloc(&there, 2 * mib, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtMalloc(&here, 2 * mib, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK(aclrtMemset(here, 2 * mib, 42, 2 * mib));
  std::int32_t can = 0;
  CHECK(aclrtDeviceCanAccessPeer(&can, 0, 1));
  WANT(can, 1);
  WANT(aclrtDeviceEnablePeerAccess(0, 0), ACL_ERROR_RT_PARAM_INVALID);
  WANT(aclrtDeviceDisablePeerAccess(1), ACL_ERROR_RT_PARAM_INVALID);
  WANT(aclrtMemcpy(there, mib, here, mib, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtDeviceEnablePeerAccess(1, 0));
  double dates[3] = {hcclsimDate(), 0, 0};
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(aclrtMemcpy(there, 2 * mib, here, i * mib, ACL_MEMCPY_DEVICE_TO_DEVICE));
    dates[i] = hcclsimDate();
  }
  const double more = (dates[2] - dates[1]) - (dates[1] - dates[0]);
  std::printf("1 MiB more takes %.3f us\n", more * 1e6);
  unsigned char last = 0;
  CHECK(aclrtMemcpy(&last, 1, static_cast<char*>(there) + 2 * mib - 1, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  WANT(last, 42);
  CHECK(aclrtDeviceDisablePeerAccess(1));
  WANT(aclrtMemcpy(there, mib, here, mib, ACL_MEMCPY_DEVICE_TO_DEVICE), ACL_ERROR_RT_PARAM_INVALID);
}

/// As many streams as the NPU has; all that a process has on it goes with it.
void limits() {
  std::vector<aclrtStream> streams;
  int status = 0;
  while (true) {
    aclrtStream one = nullptr;
    status = aclrtCreateStream(&one);
    if (status != 0) break;
    streams.push_back(one);
  }
  std::printf("%zu streams, then status %d\n", streams.size(), status);
  CHECK(aclrtDestroyStream(streams.back()));
  CHECK(aclrtCreateStream(&streams.back()));
  const std::size_t buffers = 2 * 200 * mib;  // of the communicator, which goes with the device
  const std::size_t free = free_memory() + buffers;
  void* memory = nullptr;
  void* much = nullptr;
  aclrtEvent event = nullptr;
  CHECK(aclrtMalloc(&memory, mib, ACL_MEM_MALLOC_NORMAL_ONLY));
  WANT(aclrtMalloc(&much, ~std::size_t{0}, ACL_MEM_MALLOC_NORMAL_ONLY), ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(aclrtCreateEvent(&event));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtResetDevice(0));  // it was set twice
  CHECK(aclrtSynchronizeStream(streams.front()));
  CHECK(aclrtSetDevice(0));
  CHECK(aclrtSynchronizeStream(streams.front()));
  CHECK(aclrtResetDevice(0));
  CHECK(aclrtResetDevice(0));
  CHECK(aclrtSetDevice(0));
  WANT(aclrtSynchronizeStream(streams.front()), ACL_ERROR_RT_PARAM_INVALID);
  WANT(HcclBarrier(world.comm, nullptr), HCCL_E_PARA);
  CHECK(HcclCommDestroy(world.comm));
  WANT(HcclCommDestroy(world.comm), HCCL_E_PARA);
  WANT(free_memory() - free, 0);
  WANT(aclrtRecordEvent(event, nullptr), ACL_ERROR_RT_PARAM_INVALID);
  WANT(aclrtFree(memory), ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtCreateStream(&streams.front()));
  CHECK(aclrtSynchronizeStream(streams.front()));
}

std::string list(const std::uint32_t* values, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text += (i > 0 ? " " : "") + std::to_string(values[i]);
  return text;
}

void graph() {
  HcclComm comm = world.comm;
  std::uint32_t* layers = nullptr;
  std::uint32_t count = 0;
  CHECK(HcclRankGraphGetLayers(comm, &layers, &count));
  if (world.rank == 9) std::printf("layers %s\n", list(layers, count).c_str());
  for (std::uint32_t layer = 0; layer < count; ++layer) {
    std::uint32_t* ranks = nullptr;
    std::uint32_t* sizes = nullptr;
    std::uint32_t parts = 0;
    std::uint32_t members = 0;
    std::uint32_t same = 0;
    CommTopo type = COMM_TOPO_RESERVED;
    CHECK(HcclRankGraphGetRanksByLayer(comm, layer, &ranks, &members));
    CHECK(HcclRankGraphGetRankSizeByLayer(comm, layer, &same));
    WANT(same, members);
    CHECK(HcclRankGraphGetInstSizeListByLayer(comm, layer, &sizes, &parts));
    CHECK(HcclRankGraphGetTopoTypeByLayer(comm, layer, &type));
    if (world.rank != 9) continue;
    std::printf("layer %u: type %d, parts of %s, ranks %s\n", layer, type, list(sizes, parts).c_str(),
                list(ranks, members).c_str());
    for (const std::uint32_t peer : {8U, 0U}) {
      CommLink* links = nullptr;
      std::uint32_t number = 0;
      CHECK(HcclRankGraphGetLinks(comm, layer, 9, peer, &links, &number));
      if (number == 0) continue;
      WANT(links->header.magicWord == COMM_LINK_MAGIC_WORD && links->header.size == sizeof(CommLink), true);
      std::printf("  to rank %u: protocol %d, device %u of server %u\n", peer, links->linkAttr.linkProtocol,
                  links->dstEndpointDesc.loc.device.devPhyId, links->dstEndpointDesc.loc.device.serverIdx);
    }
  }
  WANT(HcclRankGraphGetRankSizeByLayer(comm, count, &count), HCCL_E_PARA);
}

/// A rank that comes late ends the waits of all, and the communicator tells why.
void timeout() {
  void* buffer = nullptr;
  CHECK(aclrtMalloc(&buffer, mib, ACL_MEM_MALLOC_NORMAL_ONLY));
  if (world.rank == 1) CHECK(hcclsimLaunchKernel("late", 5e9, stream));
  CHECK(HcclAllReduce(buffer, buffer, 64, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, world.comm, stream));
  HcclResult error = HCCL_E_RESERVED;
  CHECK(HcclGetCommAsyncError(world.comm, &error));
  WANT(error, HCCL_SUCCESS);
  WANT(aclrtSynchronizeStream(stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
  CHECK(HcclGetCommAsyncError(world.comm, &error));
  WANT(error, HCCL_E_TIMEOUT);
  std::printf("told\n");
}

/// Several calls of one communicator that connect for the first time, in a group.
void group() {
  void* buffer = nullptr;
  CHECK(aclrtMalloc(&buffer, mib, ACL_MEM_MALLOC_NORMAL_ONLY));
  CHECK(HcclGroupStart());
  for (int i = 0; i < 3; ++i) {
    CHECK(HcclAllReduce(buffer, buffer, 64, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, world.comm, stream));
  }
  CHECK(HcclGroupEnd());
  CHECK(aclrtSynchronizeStream(stream));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argv[1];
  world = begin_world(argc, argv);
  if (name == "limits") {
    limits();
    return 0;
  }
  CHECK(aclrtCreateStream(&stream));
  if (name == "rank_table") rank_table(argv[2]);
  if (name == "direct_memory") direct_memory();
  if (name == "suspend") suspend();
  if (name == "devices") devices();
  if (name == "graph") graph();
  if (name == "group") group();
  if (name == "timeout") {
    timeout();
    return 0;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return 0;
}
