#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// What the functions of MPI share: communicators, and the exchange of bytes among all ranks of one, of which every
/// collective consists.
namespace hcclsim::clients {

struct Comm {
  std::uint64_t name = 0;                ///< the same on all members
  std::vector<std::uint32_t> members{};  ///< processes
  int rank = 0;
  std::uint64_t exchanges = 0;  ///< so far
  std::uint64_t children = 0;   ///< communicators made of it
};

struct World {
  bool initialised = false;
  bool finalised = false;
  std::map<MPI_Comm, Comm> comms{};
  MPI_Comm next_comm = 3;
  std::map<MPI_Request, std::function<int(MPI_Status*)>> requests{};
  MPI_Request next_request = 1;
};

[[nodiscard]] World& world();

[[nodiscard]] inline int size_of(MPI_Datatype type) { return type & 0xff; }
[[nodiscard]] inline std::size_t bytes_of(int count, MPI_Datatype type) {
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size_of(type));
}
[[nodiscard]] inline std::string_view view(const void* data, std::size_t bytes) {
  return {static_cast<const char*>(data), bytes};
}
/// A number that is the same wherever the parts are.
[[nodiscard]] std::uint64_t name_from(std::initializer_list<std::uint64_t> parts);

/// What is wrong ends the program, as MPI does unless it is told otherwise.
int stop(const char* function, int code, const std::string& message);
/// What all ranks have given, in their order; of a program without a simulator, which is a world of one, its own.
std::vector<std::string> exchange(const char* function, Comm& comm, std::string_view own);
/// Checks what all functions have in common, and returns the communicator.
Comm& checked(const char* function, MPI_Comm comm, int count, MPI_Datatype type, int root = 0);

}  // namespace hcclsim::clients
