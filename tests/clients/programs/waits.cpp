// Processes that wait for each other, or for nobody, in other ways than by the libraries: waits CASE [PORT].

#include <arpa/inet.h>
#include <fcntl.h>
#include <hccl/hccl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "examples/clients/world.hpp"

namespace {

int rank;
int ranks;
HcclComm comm;
aclrtStream stream;
void* buffer;

void allreduce() { CHECK(HcclAllReduce(buffer, buffer, 16, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, comm, stream)); }

/// A socket of this computer that listens at a free port, or is connected to it.
int listen_at(int& port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(listener, ranks) != 0) std::exit(1);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return listener;
}

int connect_to(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  while (true) {
    const int own = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(own, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return own;
    close(own);
    usleep(1000);
  }
}

/// A root info of rank 0, over TCP, one rank after the other, a while after they have asked.
void root_over_tcp() {
  HcclRootInfo root{};
  int port = 0;
  int listener = -1;
  if (rank == 0) listener = listen_at(port);
  MPI_Bcast(&port, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    CHECK(HcclGetRootInfo(&root));
    for (int i = 1; i < ranks; ++i) {
      const int other = accept(listener, nullptr, nullptr);
      const auto now = std::chrono::steady_clock::now();
      while (std::chrono::steady_clock::now() < now + std::chrono::milliseconds(100)) {
      }
      if (write(other, &root, sizeof root) != sizeof root) std::exit(1);
      close(other);
    }
  } else {
    const int own = connect_to(port);
    if (recv(own, &root, sizeof root, MSG_WAITALL) != sizeof root) std::exit(1);
  }
  HcclComm made = nullptr;
  CHECK(HcclCommInitRootInfo(static_cast<std::uint32_t>(ranks), &root, static_cast<std::uint32_t>(rank), &made));
  CHECK(HcclAllReduce(buffer, buffer, 16, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM, made, stream));
  CHECK(aclrtSynchronizeStream(stream));
  std::printf("rank %d at %.9g s\n", rank, hcclsimDate());
}

/// A thread that watches, as those of frameworks do.
void watch(bool all_call) {
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    CHECK(aclrtSetDevice(rank));
    while (!done) {
      HcclResult error = HCCL_SUCCESS;
      CHECK(HcclGetCommAsyncError(comm, &error));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  if (all_call || rank != 2) allreduce();
  CHECK(aclrtSynchronizeStream(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  done = true;
  watcher.join();
  std::printf("rank %d\n", rank);
}

/// Processes that wait for each other in loops without a call, on memory that they share; at last for the device, too.
void spin() {
  char path[] = "/tmp/hcclsim_test_XXXXXX";
  const int made = rank == 0 ? mkstemp(path) : -1;
  if (rank == 0 && ftruncate(made, sizeof(std::atomic<int>)) != 0) std::exit(1);
  MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
  const int file = open(path, O_RDWR);
  void* const shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) std::exit(1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) unlink(path);
  auto& turn = *static_cast<std::atomic<int>*>(shared);
  for (int round = 0; round < 2; ++round) {
    while (turn != round * ranks + ranks - 1 - rank) {
    }
    CHECK(hcclsimLaunchKernel("kernel", 100, stream));
    CHECK(aclrtSynchronizeStream(stream));
    ++turn;
  }
  volatile int* flag = nullptr;
  CHECK(aclrtMallocHost(reinterpret_cast<void**>(const_cast<int**>(&flag)), sizeof *flag));
  *flag = 0;
  const int one = 1;
  CHECK(aclrtMemcpy(buffer, sizeof one, &one, sizeof one, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(hcclsimLaunchKernel("kernel", 100, stream));
  CHECK(aclrtMemcpyAsync(const_cast<int*>(flag), sizeof one, buffer, sizeof one, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  while (*flag == 0) {
  }
  allreduce();
  CHECK(aclrtSynchronizeStream(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::printf("%.1f us\n", hcclsimDate() * 1e6);
}

void run(const std::string& name) {
  allreduce();  // transports are there
  CHECK(aclrtSynchronizeStream(stream));
  if (name == "tcp") return root_over_tcp();
  if (name == "spins") return spin();
  if (name == "watched") return watch(true);
  if (name == "watched_in_vain") return watch(false);
  if (rank != 1) allreduce();
  if (rank != 1) {
    aclrtEvent event = nullptr;
    CHECK(aclrtCreateEvent(&event));
    CHECK(aclrtRecordEvent(event, stream));
    HcclResult error = HCCL_SUCCESS;
    aclrtEventRecordedStatus status{};
    while (name == "asks_for_errors" && error == HCCL_SUCCESS) CHECK(HcclGetCommAsyncError(comm, &error));
    while (name == "asks_for_event" && status != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
      CHECK(aclrtQueryEventStatus(event, &status));
      usleep(1000);
    }
    while (name == "asks_for_date" && MPI_Wtime() < 10) {
    }
    CHECK(aclrtSynchronizeStream(stream));
    return;
  }
  volatile bool ever = true;
  if (name == "computes") {
    while (ever) {
    }
  }
  if (name == "sleeps") pause();
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  const World world = begin_world(argc, argv);
  rank = static_cast<int>(world.rank);
  ranks = static_cast<int>(world.ranks);
  comm = world.comm;
  CHECK(aclrtCreateStream(&stream));
  CHECK(aclrtMalloc(&buffer, 1024, ACL_MEM_MALLOC_NORMAL_ONLY));
  run(argv[1]);
  end_world(world);
  return 0;
}
