// Programs that are wrong, by name: broken CASE. Four processes, each with an NPU.

#include <hccl/hccl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "examples/clients/world.hpp"

namespace {

int rank;
int ranks;
HcclComm comm;
aclrtStream stream;
void* buffer;
void* result;

void must(int status) {
  if (status != 0) std::exit(1);
}

int allreduce(std::uint64_t count, HcclDataType type = HCCL_DATA_TYPE_FP32, HcclReduceOp op = HCCL_REDUCE_SUM) {
  return HcclAllReduce(buffer, result, count, type, op, comm, stream);
}

/// From a root info of rank 0, as these arguments say.
HcclComm make(std::uint32_t own_ranks, std::uint32_t own_rank, int times = 1) {
  HcclRootInfo root{};
  if (rank == 0) must(HcclGetRootInfo(&root));
  MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
  HcclComm made = nullptr;
  for (int i = 0; i < times; ++i) must(HcclCommInitRootInfo(own_ranks, &root, own_rank, &made));
  return made;
}

/// Threads of this process, each with an NPU of its own, of which every one waits for the one before it.
void receive_first() {
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 0) return;
  int devices[] = {4, 5, 6, 7};
  HcclComm all[4];
  must(HcclCommInitAll(4, devices, all));
  std::vector<std::thread> threads;
  for (unsigned own = 0; own < 4; ++own) {
    threads.emplace_back([own, &all] {
      must(aclrtSetDevice(4 + static_cast<int>(own)));
      void* memory = nullptr;
      must(aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
      must(HcclRecv(memory, 16, HCCL_DATA_TYPE_FP32, (own + 3) % 4, all[own], nullptr));
      must(HcclSend(memory, 16, HCCL_DATA_TYPE_FP32, (own + 1) % 4, all[own], nullptr));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run(const std::string& name) {
  must(allreduce(256));  // transports are there
  must(aclrtSynchronizeStream(stream));
  if (name == "rank_does_not_call") {
    if (rank != 2) must(allreduce(256));
  } else if (name == "early_exit") {
    if (rank == 3) std::exit(0);
    must(allreduce(256));
  } else if (name == "exit_with_error") {
    if (rank == 1) std::exit(7);
    must(allreduce(256));
  } else if (name == "crash") {
    if (rank == 1) std::printf("%d\n", *static_cast<int*>(buffer));  // memory of the device
    must(allreduce(256));
  } else if (name == "counts_differ") {
    must(allreduce(rank == 3 ? 128 : 256));
  } else if (name == "types_differ") {
    must(allreduce(128, rank == 0 ? HCCL_DATA_TYPE_INT64 : HCCL_DATA_TYPE_FP32));
  } else if (name == "collectives_differ") {
    if (rank == 1) must(HcclBroadcast(buffer, 256, HCCL_DATA_TYPE_FP32, 0, comm, stream));
    must(allreduce(256));
  } else if (name == "orders_differ") {
    HcclComm other = make(ranks, rank);
    must(HcclAllReduce(buffer, result, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, other, stream));
    must(aclrtSynchronizeStream(stream));
    for (int turn = 0; turn < 2; ++turn) {
      HcclComm own = (turn == 0) == (rank == 0) ? comm : other;
      must(HcclAllReduce(buffer, result, 1, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, own, stream));
    }
  } else if (name == "nobody_sends") {
    for (int i = 0; i < 2; ++i) {  // the second message is not sent
      if (rank == 0) must(HcclRecv(result, 16, HCCL_DATA_TYPE_FP32, 1, comm, stream));
      if (rank == 1 && i == 0) must(HcclSend(buffer, 16, HCCL_DATA_TYPE_FP32, 0, comm, stream));
    }
  } else if (name == "all_send_first") {
    must(HcclSend(buffer, 16, HCCL_DATA_TYPE_FP32, (rank + 1) % ranks, comm, stream));
    must(HcclRecv(result, 16, HCCL_DATA_TYPE_FP32, (rank + ranks - 1) % ranks, comm, stream));
  } else if (name == "rank_is_missing_in_init") {
    if (rank != 3)
      make(ranks, rank);
    else {
      HcclRootInfo root{};
      MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
  } else if (name == "rank_is_missing_goes_on") {  // until all have been told
    HcclRootInfo root{};
    if (rank == 0) must(HcclGetRootInfo(&root));
    MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
    HcclComm made = nullptr;
    const int status = rank == 3 ? 1 : HcclCommInitRootInfo(4, &root, static_cast<std::uint32_t>(rank), &made);
    MPI_Barrier(MPI_COMM_WORLD);
    must(status);
  } else if (name == "buffer_too_small") {
    must(allreduce(1000000));
  } else if (name == "buffers_overlap") {
    must(
        HcclAllReduce(buffer, static_cast<char*>(buffer) + 20, 64, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  } else if (name == "threads_receive_first") {
    receive_first();
  } else if (name == "use_after_free") {
    must(aclrtFree(buffer));
    must(allreduce(256));
  } else if (name == "host_buffer") {
    std::vector<float> host(256);
    must(HcclAllReduce(host.data(), result, 256, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream));
  } else if (name == "no_device") {
    std::thread other([] {
      aclrtStream own = nullptr;
      must(aclrtCreateStream(&own));
    });
    other.join();
  } else if (name == "no_memory") {
    void* much = nullptr;
    must(aclrtMalloc(&much, std::size_t{1} << 40U, ACL_MEM_MALLOC_HUGE_FIRST));
  } else if (name == "destroyed_communicator") {
    must(HcclCommDestroy(comm));
    must(allreduce(256));
  } else if (name == "count_overflows") {
    must(allreduce(std::uint64_t{1} << 62U));  // 2^64 bytes
  } else if (name == "root_used_twice") {
    make(ranks, rank, 2);
  } else if (name == "rank_twice") {
    make(ranks, rank == 3 ? 2 : rank);
  } else if (name == "sizes_differ") {
    make(rank == 3 ? ranks + 1 : ranks, rank);
  } else if (name == "roots_differ") {
    must(HcclBroadcast(buffer, 16, HCCL_DATA_TYPE_FP32, rank == 3 ? 1 : 0, comm, stream));
  } else if (name == "empty_on_one") {
    must(allreduce(rank == 1 ? 0 : 16));
  } else if (name == "after_finalize") {
    must(aclFinalize());
    must(allreduce(16));
  } else if (name == "after_reset") {
    must(aclrtResetDevice(rank));
    must(aclrtSetDevice(rank));
    must(allreduce(16));
  } else if (name == "freed_under_way") {
    must(allreduce(16));
    must(aclrtFree(buffer));
  } else if (name == "freed_in_copy" || name == "freed_source" || name == "freed_in_fill" || name == "freed_host") {
    void* host = nullptr;
    must(aclrtMallocHost(&host, 1024));
    must(hcclsimLaunchKernel("long", 100, stream));
    if (name == "freed_in_copy") must(aclrtMemcpyAsync(buffer, 1024, host, 1024, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    if (name == "freed_in_fill") must(aclrtMemsetAsync(buffer, 1024, 1, 1024, stream));
    if (name == "freed_source" || name == "freed_host") {
      must(aclrtMemcpyAsync(host, 1024, buffer, 1024, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    }
    must(name == "freed_host" ? aclrtFreeHost(host) : aclrtFree(buffer));
  } else if (name == "closes_all") {
    for (int file = 3; file < 64; ++file) close(file);
    must(allreduce(16));
  } else if (name == "blocks_differ") {
    const std::uint64_t counts[4] = {rank == 2 ? 3U : 4U, rank == 2 ? 5U : 4U, 4, 4};
    const std::uint64_t places[4] = {0, 8, 16, 24};
    must(HcclAllGatherV(buffer, 4, result, counts, places, HCCL_DATA_TYPE_FP32, comm, stream));
  } else if (name == "pairs_differ") {
    std::uint64_t counts[16] = {};
    counts[6] = rank == 3 ? 2 : 1;
    must(HcclAlltoAllVC(buffer, counts, HCCL_DATA_TYPE_FP32, result, HCCL_DATA_TYPE_FP32, comm, stream));
  } else if (name == "message_counts_differ") {
    if (rank == 0) must(HcclSend(buffer, 10, HCCL_DATA_TYPE_FP32, 1, comm, stream));
    if (rank == 1) must(HcclRecv(buffer, 11, HCCL_DATA_TYPE_FP32, 0, comm, stream));
  } else if (name == "connects_to_one_who_has_ended") {
    if (rank == 2) std::exit(0);
    must(HcclBroadcast(buffer, 16, HCCL_DATA_TYPE_FP32, 0, comm, stream));
  } else if (name == "connects_to_one_who_waits") {
    if (rank == 2) MPI_Barrier(MPI_COMM_WORLD);
    must(HcclBroadcast(buffer, 16, HCCL_DATA_TYPE_FP32, 0, comm, stream));
  } else if (name == "group_without_end") {
    must(HcclGroupStart());
    must(allreduce(16));
    MPI_Finalize();
    std::exit(0);
  } else if (name == "stream_of_other_device") {
    must(aclrtSetDevice((rank + 1) % ranks));
    must(hcclsimLaunchKernel("kernel", 1, stream));
  } else if (name == "no_peer_access") {
    must(aclrtSetDevice(4 + rank));
    void* far = nullptr;
    must(aclrtMalloc(&far, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
    must(aclrtMemcpy(far, 1024, buffer, 1024, ACL_MEMCPY_DEVICE_TO_DEVICE));
  } else if (name == "exception_in_thread") {
    std::thread([] { throw std::runtime_error("of a thread"); }).join();
  } else if (name == "never_recorded") {
    aclrtEvent event = nullptr;
    must(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
    must(aclrtStreamWaitEvent(stream, event));
  } else if (name == "config_is_not_filled") {
    HcclCommConfig config{};
    HcclComm sub = nullptr;
    std::uint32_t self = rank;
    must(HcclCreateSubCommConfig(&comm, 1, &self, rank, 0, &config, &sub));
  } else if (name == "lock") {
    std::mutex one;
    std::mutex other;
    std::thread thread([&] {
      const std::lock_guard<std::mutex> first(other);
      must(aclrtMemcpy(result, 4, buffer, 4, ACL_MEMCPY_DEVICE_TO_DEVICE) == 0 ? 1 : 0);  // no device: others run
      const std::lock_guard<std::mutex> second(one);
    });
    const std::lock_guard<std::mutex> first(one);
    std::this_thread::yield();
    const std::lock_guard<std::mutex> second(other);
    thread.join();
  } else if (name == "not_done") {
    must(hcclsimLaunchKernel("long", 1e6, stream));
    MPI_Finalize();
    std::exit(0);
  } else if (name == "abort") {
    if (rank == 2) MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
  } else {
    std::fprintf(stderr, "no case %s\n", name.c_str());
    std::exit(2);
  }
  must(aclrtSynchronizeStream(stream));
}

}  // namespace

int main(int argc, char** argv) {
  const World world = begin_world(argc, argv);
  rank = static_cast<int>(world.rank);
  ranks = static_cast<int>(world.ranks);
  comm = world.comm;
  must(aclrtCreateStream(&stream));
  must(aclrtMalloc(&buffer, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
  must(aclrtMalloc(&result, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
  run(argv[1]);
  MPI_Finalize();
  return 0;
}
