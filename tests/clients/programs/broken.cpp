// Programs that are wrong, by name: broken CASE. Four processes, each with an NPU.

#include <hccl/hccl.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

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

HcclComm second_communicator() {
  HcclRootInfo root{};
  if (rank == 0) must(HcclGetRootInfo(&root));
  MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
  HcclComm made = nullptr;
  must(HcclCommInitRootInfo(ranks, &root, rank, &made));
  return made;
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
    HcclComm other = second_communicator();
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
      second_communicator();
    else {
      HcclRootInfo root{};
      MPI_Bcast(&root, sizeof root, MPI_CHAR, 0, MPI_COMM_WORLD);
    }
  } else if (name == "buffer_too_small") {
    must(allreduce(1000000));
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
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  must(aclInit(nullptr));
  must(aclrtSetDevice(rank));
  comm = second_communicator();
  must(aclrtCreateStream(&stream));
  must(aclrtMalloc(&buffer, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
  must(aclrtMalloc(&result, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
  run(argv[1]);
  MPI_Finalize();
  return 0;
}
