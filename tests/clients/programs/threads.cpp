// One process with a thread for each NPU, and all the ways in which threads wait for each other and for the device.
// Prints what happens, in the order in which it does; the same every time.

#include <hccl/hccl.h>

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "examples/clients/check.hpp"

namespace {

constexpr int npus = 4;
constexpr std::uint64_t count = 1024;

struct Npu {
  aclrtStream stream = nullptr;
  void* buffer = nullptr;
  HcclComm comm = nullptr;
};
std::vector<Npu> all(npus);

void begin(int device) {
  CHECK(aclrtSetDevice(device));
  CHECK(aclrtCreateStream(&all[device].stream));
  CHECK(aclrtMalloc(&all[device].buffer, count * 4, ACL_MEM_MALLOC_NORMAL_ONLY));
  const std::vector<int> data(count, device + 1);
  CHECK(aclrtMemcpy(all[device].buffer, count * 4, data.data(), count * 4, ACL_MEMCPY_HOST_TO_DEVICE));
}

void reduce(int device) {
  void* const buffer = all[device].buffer;
  CHECK(HcclAllReduce(buffer, buffer, count, HCCL_DATA_TYPE_INT32, HCCL_REDUCE_SUM, all[device].comm,
                      all[device].stream));
}

int first(int device) {
  int value = 0;
  CHECK(aclrtMemcpy(&value, 4, all[device].buffer, 4, ACL_MEMCPY_DEVICE_TO_HOST));
  return value;
}

/// One thread for all NPUs.
void in_a_group() {
  CHECK(HcclGroupStart());
  for (int device = 0; device < npus; ++device) {
    CHECK(aclrtSetDevice(device));
    reduce(device);
  }
  CHECK(HcclGroupEnd());
  for (int device = 0; device < npus; ++device) {
    CHECK(aclrtSetDevice(device));
    CHECK(aclrtSynchronizeStream(all[device].stream));
    std::printf("group: device %d has %d\n", device, first(device));
  }
}

/// Threads that meet at barriers of three kinds, and print in turn.
void in_threads() {
  std::barrier<> cpp_barrier(npus);
  pthread_barrier_t pthread_barrier;
  pthread_barrier_init(&pthread_barrier, nullptr, npus);
  std::mutex mutex;
  std::condition_variable changed;
  int turn = 0;
  std::vector<std::thread> threads;
  for (int device = 0; device < npus; ++device) {
    threads.emplace_back([&, device] {
      CHECK(aclrtSetDevice(device));
      reduce(device);
      cpp_barrier.arrive_and_wait();
      CHECK(aclrtSynchronizeStream(all[device].stream));
      pthread_barrier_wait(&pthread_barrier);
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait(lock, [&] { return turn == npus - 1 - device; });
      std::printf("thread of device %d: %d\n", device, first(device));  // waits for the device, with the lock
      ++turn;
      changed.notify_all();
    });
  }
  for (std::thread& thread : threads) thread.join();
  pthread_barrier_destroy(&pthread_barrier);
}

void futures_and_flags() {
  std::atomic<bool> done{false};
  std::future<int> future = std::async(std::launch::async, [&] {
    CHECK(aclrtSetDevice(1));
    CHECK(hcclsimLaunchKernel("kernel", 50, all[1].stream));
    CHECK(aclrtSynchronizeStream(all[1].stream));
    done = true;
    done.notify_one();
    return first(1);
  });
  done.wait(false);
  std::printf("future: %d\n", future.get());
  std::atomic<bool> flag{false};
  std::thread other([&] { flag = true; });
  while (!flag) std::this_thread::sleep_for(std::chrono::seconds(1));
  other.join();
  std::printf("slept\n");
}

void call(void* text) { std::printf("%s\n", static_cast<const char*>(text)); }

void functions_of_the_host() {
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = all[0].stream;
  char text[] = "function of the host";
  char other[] = "callback";
  CHECK(aclrtLaunchHostFunc(stream, call, text));
  CHECK(aclrtSynchronizeStream(stream));
  bool stop = false;
  std::thread reporter([&] {
    CHECK(aclrtSetDevice(0));
    while (!stop) aclrtProcessReport(100);
  });
  const auto id = static_cast<std::uint64_t>(reporter.native_handle());
  CHECK(aclrtSubscribeReport(id, stream));
  CHECK(aclrtLaunchCallback(call, other, ACL_CALLBACK_BLOCK, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtUnSubscribeReport(id, stream));
  stop = true;
  reporter.join();

  aclrtEvent event = nullptr;
  CHECK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
  CHECK(hcclsimLaunchKernel("kernel", 20, stream));
  CHECK(aclrtRecordEvent(event, stream));
  int asked = 0;
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  while (status != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
    CHECK(aclrtQueryEventStatus(event, &status));
    ++asked;
  }
  std::printf("asked %s\n", asked > 1 ? "more than once" : "once");
  CHECK(aclrtStreamWaitEvent(all[0].stream, event));
  const int timeout = aclrtSynchronizeStreamWithTimeout(all[0].stream, 1000);
  CHECK(hcclsimLaunchKernel("long", 5e6, stream));
  const int late = aclrtSynchronizeStreamWithTimeout(stream, 1000);
  std::printf("time-outs: %d %d\n", timeout, late);
  CHECK(aclrtSynchronizeStream(stream));
}

void children() {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    CHECK(aclrtSetDevice(2));
    void* own = nullptr;
    CHECK(aclrtMalloc(&own, 64, ACL_MEM_MALLOC_NORMAL_ONLY));
    int value = 42;  // the parent has another one at this place
    CHECK(aclrtMemcpy(own, 4, &value, 4, ACL_MEMCPY_HOST_TO_DEVICE));
    value = 0;
    CHECK(aclrtMemcpy(&value, 4, own, 4, ACL_MEMCPY_DEVICE_TO_HOST));
    if (value != 42) _exit(1);
    std::printf("child: has memory\n");
    std::fflush(stdout);
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  std::printf("parent: the child has ended\n");
}

}  // namespace

int main() {
  CHECK(aclInit(nullptr));
  std::printf("again: %d\n", aclInit(nullptr));
  for (int device = 0; device < npus; ++device) begin(device);
  std::vector<HcclComm> comms(npus);
  std::vector<std::int32_t> devices{0, 1, 2, 3};
  CHECK(HcclCommInitAll(npus, devices.data(), comms.data()));
  for (int device = 0; device < npus; ++device) all[device].comm = comms[device];
  in_a_group();
  in_threads();
  futures_and_flags();
  functions_of_the_host();
  children();
  std::printf("date: %.3f us\n", hcclsimDate() * 1e6);
  for (HcclComm comm : comms) CHECK(HcclCommDestroy(comm));
  CHECK(aclFinalize());
  return 0;
}
