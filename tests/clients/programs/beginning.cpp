// Many threads that begin at the same time, each with a call, again and again.

#include <acl/acl.h>

#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

int main() {
  if (aclInit(nullptr) != ACL_SUCCESS) return 1;
  std::vector<std::uint32_t> counts(32);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::thread> threads;
    for (std::uint32_t& count : counts) threads.emplace_back([&count] { aclrtGetDeviceCount(&count); });
    for (std::thread& thread : threads) thread.join();
  }
  for (const std::uint32_t count : counts) {
    if (count != 8) return 1;
  }
  std::puts("all have begun");
  return 0;
}
