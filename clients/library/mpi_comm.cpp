#include "clients/library/mpi_comm.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

#include "clients/library/api.hpp"

namespace hcclsim::clients {
namespace {

bool is_type(MPI_Datatype type) { return type >= MPI_CHAR && type <= MPI_DOUBLE && size_of(type) > 0; }

}  // namespace

World& world() {
  static auto* const one = new World;
  return *one;
}

std::uint64_t name_from(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t name = 0xcbf29ce484222325;
  for (const std::uint64_t part : parts) name = (std::rotl(name, 23) ^ part) * 0x9e3779b97f4a7c15;
  return name;
}

int stop(const char* function, int code, const std::string& message) {
  fail(function, code, message);
  ask(Call::abort, {static_cast<std::uint64_t>(code)});
  std::exit(code);
}

std::vector<std::string> exchange(const char* function, Comm& comm, std::string_view own) {
  if (!connected()) return {std::string(own)};  // a world of one
  std::string bytes(reinterpret_cast<const char*>(comm.members.data()), comm.members.size() * sizeof comm.members[0]);
  bytes += own;
  const Answer answer = ask(
      Call::exchange, {comm.name, comm.exchanges++, static_cast<std::uint64_t>(comm.rank), comm.members.size()}, bytes);
  if (answer.status != 0) stop(function, MPI_ERR_OTHER, answer.bytes);
  std::vector<std::string> all;
  std::size_t at = 0;
  while (at < answer.bytes.size()) {
    std::uint64_t length = 0;
    std::memcpy(&length, answer.bytes.data() + at, sizeof length);
    all.push_back(answer.bytes.substr(at + sizeof length, length));
    at += sizeof length + length;
  }
  return all;
}

Comm& checked(const char* function, MPI_Comm comm, int count, MPI_Datatype type, int root) {
  const auto found = world().comms.find(comm);
  if (!world().initialised || world().finalised) stop(function, MPI_ERR_OTHER, "outside MPI_Init and MPI_Finalize");
  if (found == world().comms.end()) stop(function, MPI_ERR_COMM, "this is no communicator");
  if (count < 0) stop(function, MPI_ERR_COUNT, "a negative count");
  if (!is_type(type)) stop(function, MPI_ERR_TYPE, "a type that this MPI does not have");
  const int ranks = static_cast<int>(found->second.members.size());
  if (root < 0 || root >= ranks) {
    stop(function, MPI_ERR_ROOT, "rank " + std::to_string(root) + " of " + std::to_string(ranks));
  }
  return found->second;
}

}  // namespace hcclsim::clients
