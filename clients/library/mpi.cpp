// The little of MPI that programs for HCCL start with. A collective is an exchange of bytes among all ranks, from which
// each takes what it needs: data are small there.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "clients/library/api.hpp"
#include "clients/library/mpi_comm.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

template <typename Value>
Value combine(MPI_Op op, Value one, Value other) {
  switch (op) {
    case MPI_SUM:
      return static_cast<Value>(one + other);
    case MPI_PROD:
      return static_cast<Value>(one * other);
    case MPI_MAX:
      return std::max(one, other);
    case MPI_MIN:
      return std::min(one, other);
    case MPI_LAND:
      return static_cast<Value>(one != 0 && other != 0);
    case MPI_LOR:
      return static_cast<Value>(one != 0 || other != 0);
    default:
      break;
  }
  if constexpr (std::is_integral_v<Value>) {
    return op == MPI_BAND ? static_cast<Value>(one & other) : static_cast<Value>(one | other);
  } else {
    return one;
  }
}

template <typename Value>
void combine_into(std::string& sum, const std::string& more, MPI_Op op) {
  for (std::size_t at = 0; at + sizeof(Value) <= sum.size(); at += sizeof(Value)) {
    Value one{};
    Value other{};
    std::memcpy(&one, sum.data() + at, sizeof one);
    std::memcpy(&other, more.data() + at, sizeof other);
    const Value both = combine(op, one, other);
    std::memcpy(sum.data() + at, &both, sizeof both);
  }
}

void combine_into(std::string& sum, const std::string& more, MPI_Datatype type, MPI_Op op) {
  switch (type) {
    case MPI_CHAR:
    case MPI_SIGNED_CHAR:
      return combine_into<signed char>(sum, more, op);
    case MPI_UNSIGNED_CHAR:
    case MPI_BYTE:
      return combine_into<unsigned char>(sum, more, op);
    case MPI_SHORT:
      return combine_into<short>(sum, more, op);
    case MPI_UNSIGNED_SHORT:
      return combine_into<unsigned short>(sum, more, op);
    case MPI_INT:
      return combine_into<int>(sum, more, op);
    case MPI_UNSIGNED:
      return combine_into<unsigned>(sum, more, op);
    case MPI_FLOAT:
      return combine_into<float>(sum, more, op);
    case MPI_LONG:
      return combine_into<long>(sum, more, op);
    case MPI_UNSIGNED_LONG:
      return combine_into<unsigned long>(sum, more, op);
    default:
      return combine_into<double>(sum, more, op);
  }
}

void require_equal(const char* function, const std::vector<std::string>& all, std::size_t bytes) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() == bytes) continue;
    stop(function, MPI_ERR_TRUNCATE,
         "rank " + std::to_string(rank) + " gives " + std::to_string(all[rank].size()) + " bytes, this rank " +
             std::to_string(bytes));
  }
}

/// The communicator of those that gave the same colour, ordered by key.
int split(const char* function, MPI_Comm comm, int color, int key, MPI_Comm* made) {
  Comm& from = checked(function, comm, 0, MPI_BYTE);
  const std::uint64_t child = from.children++;
  const std::array<int, 2> own{color, key};
  const std::vector<std::string> all = exchange(function, from, view(own.data(), sizeof own));
  *made = MPI_COMM_NULL;
  if (color == MPI_UNDEFINED) return MPI_SUCCESS;
  std::vector<std::pair<int, std::uint32_t>> chosen;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    std::array<int, 2> other{};
    std::memcpy(other.data(), all[rank].data(), sizeof other);
    if (other[0] == color) chosen.emplace_back(other[1], from.members[rank]);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Comm result;
  result.name = name_from({from.name, child, static_cast<std::uint64_t>(color)});
  for (const auto& [order, process] : chosen) {
    if (process == process_number()) result.rank = static_cast<int>(result.members.size());
    result.members.push_back(process);
  }
  *made = world().next_comm++;
  world().comms[*made] = std::move(result);
  return MPI_SUCCESS;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Init(int* argc, char*** argv) { return MPI_Init_thread(argc, argv, MPI_THREAD_SINGLE, nullptr); }

int MPI_Init_thread(int* /*argc*/, char*** /*argv*/, int required, int* provided) {
  if (world().initialised) return stop("MPI_Init", MPI_ERR_OTHER, "the process has called it already");
  world().initialised = true;
  Comm all;
  all.name = 1;
  all.members.resize(processes_started());
  std::iota(all.members.begin(), all.members.end(), 0U);
  all.rank = static_cast<int>(process_number());
  if (process_number() >= all.members.size()) {
    return stop("MPI_Init", MPI_ERR_OTHER, "this process was not started by hcclsim exec itself");
  }
  Comm self;
  self.name = name_from({2, process_number()});
  self.members.push_back(static_cast<std::uint32_t>(process_number()));
  world().comms[MPI_COMM_WORLD] = std::move(all);
  world().comms[MPI_COMM_SELF] = std::move(self);
  if (provided != nullptr) *provided = required;
  exchange("MPI_Init", world().comms[MPI_COMM_WORLD], {});
  return MPI_SUCCESS;
}

int MPI_Initialized(int* flag) {
  *flag = world().initialised ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Finalized(int* flag) {
  *flag = world().finalised ? 1 : 0;
  return MPI_SUCCESS;
}

int MPI_Query_thread(int* provided) {
  *provided = MPI_THREAD_MULTIPLE;
  return MPI_SUCCESS;
}

int MPI_Finalize(void) {
  Comm& all = checked(__func__, MPI_COMM_WORLD, 0, MPI_BYTE);
  exchange(__func__, all, {});
  world().finalised = true;
  return MPI_SUCCESS;
}

int MPI_Abort(MPI_Comm /*comm*/, int errorcode) {
  ask(Call::abort, {as_number(errorcode)});
  std::exit(errorcode == 0 ? 1 : errorcode);
}

int MPI_Error_string(int errorcode, char* string, int* resultlen) {
  *resultlen = std::snprintf(string, MPI_MAX_ERROR_STRING, "MPI error %d", errorcode);
  return MPI_SUCCESS;
}

int MPI_Get_processor_name(char* name, int* resultlen) {
  const Answer answer = ask(Call::device_count, {});
  *resultlen = std::snprintf(name, MPI_MAX_PROCESSOR_NAME, "%s", answer.status == 0 ? answer.bytes.c_str() : "host");
  return MPI_SUCCESS;
}

double MPI_Wtime(void) { return std::bit_cast<double>(ask(Call::date, {}).values[0]); }
double MPI_Wtick(void) { return 1e-9; }

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = checked(__func__, comm, 0, MPI_BYTE).rank;
  return MPI_SUCCESS;
}

int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = static_cast<int>(checked(__func__, comm, 0, MPI_BYTE).members.size());
  return MPI_SUCCESS;
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* newcomm) { return split(__func__, comm, 0, 0, newcomm); }

int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* newcomm) {
  return split(__func__, comm, color, key, newcomm);
}

int MPI_Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info /*info*/, MPI_Comm* newcomm) {
  int color = MPI_UNDEFINED;
  if (split_type == MPI_COMM_TYPE_SHARED) color = static_cast<int>(ask(Call::device_count, {}).values[1]);
  return split(__func__, comm, color, key, newcomm);
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (*comm == MPI_COMM_WORLD || *comm == MPI_COMM_SELF || world().comms.erase(*comm) == 0) {
    return stop(__func__, MPI_ERR_COMM, "this is no communicator that can be freed");
  }
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}

int MPI_Type_size(MPI_Datatype datatype, int* size) {
  *size = size_of(datatype);
  return MPI_SUCCESS;
}

int MPI_Barrier(MPI_Comm comm) {
  exchange(__func__, checked(__func__, comm, 0, MPI_BYTE), {});
  return MPI_SUCCESS;
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, count, datatype, root);
  const std::size_t bytes = bytes_of(count, datatype);
  const std::vector<std::string> all =
      exchange(__func__, own, own.rank == root ? view(buffer, bytes) : view(nullptr, 0));
  const std::string& sent = all[static_cast<std::size_t>(root)];
  if (sent.size() != bytes)
    stop(__func__, MPI_ERR_TRUNCATE, "the root gives " + std::to_string(sent.size()) + " bytes");
  std::memcpy(buffer, sent.data(), bytes);
  return MPI_SUCCESS;
}

int MPI_Gatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                const int* displs, MPI_Datatype recvtype, int root, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, sendcount, sendtype, root);
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const std::vector<std::string> all =
      exchange(__func__, own, in_place ? view(nullptr, 0) : view(sendbuf, bytes_of(sendcount, sendtype)));
  for (std::size_t rank = 0; own.rank == root && rank < all.size(); ++rank) {
    if (in_place && static_cast<int>(rank) == root) continue;
    if (all[rank].size() > bytes_of(recvcounts[rank], recvtype)) stop(__func__, MPI_ERR_TRUNCATE, "too many bytes");
    std::memcpy(static_cast<char*>(recvbuf) + bytes_of(displs[rank], recvtype), all[rank].data(), all[rank].size());
  }
  return MPI_SUCCESS;
}

int MPI_Gather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
               MPI_Datatype recvtype, int root, MPI_Comm comm) {
  const std::size_t ranks = checked(__func__, comm, sendcount, sendtype, root).members.size();
  const std::vector<int> counts(ranks, recvcount);
  std::vector<int> places;
  for (std::size_t rank = 0; rank < ranks; ++rank) places.push_back(static_cast<int>(rank) * recvcount);
  return MPI_Gatherv(sendbuf, sendcount, sendtype, recvbuf, counts.data(), places.data(), recvtype, root, comm);
}

int MPI_Scatter(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, recvcount, recvtype, root);
  const bool sends = own.rank == root;
  const std::vector<std::string> all = exchange(
      __func__, own, sends ? view(sendbuf, own.members.size() * bytes_of(sendcount, sendtype)) : view(nullptr, 0));
  if (recvbuf == MPI_IN_PLACE) return MPI_SUCCESS;
  const std::size_t bytes = bytes_of(recvcount, recvtype);
  const std::string& sent = all[static_cast<std::size_t>(root)];
  if (sent.size() != bytes * all.size()) stop(__func__, MPI_ERR_TRUNCATE, "the root gives another number of bytes");
  std::memcpy(recvbuf, sent.data() + static_cast<std::size_t>(own.rank) * bytes, bytes);
  return MPI_SUCCESS;
}

int MPI_Allgatherv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, const int* recvcounts,
                   const int* displs, MPI_Datatype recvtype, MPI_Comm comm) {
  Comm& own =
      checked(__func__, comm, sendbuf == MPI_IN_PLACE ? 0 : sendcount, sendbuf == MPI_IN_PLACE ? recvtype : sendtype);
  const auto rank = static_cast<std::size_t>(own.rank);
  const std::vector<std::string> all = exchange(
      __func__, own,
      sendbuf == MPI_IN_PLACE
          ? view(static_cast<char*>(recvbuf) + bytes_of(displs[rank], recvtype), bytes_of(recvcounts[rank], recvtype))
          : view(sendbuf, bytes_of(sendcount, sendtype)));
  for (std::size_t from = 0; from < all.size(); ++from) {
    if (all[from].size() != bytes_of(recvcounts[from], recvtype)) stop(__func__, MPI_ERR_TRUNCATE, "counts differ");
    std::memcpy(static_cast<char*>(recvbuf) + bytes_of(displs[from], recvtype), all[from].data(), all[from].size());
  }
  return MPI_SUCCESS;
}

int MPI_Allgather(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm) {
  const std::size_t ranks = checked(__func__, comm, recvcount, recvtype).members.size();
  const std::vector<int> counts(ranks, recvcount);
  std::vector<int> places;
  for (std::size_t rank = 0; rank < ranks; ++rank) places.push_back(static_cast<int>(rank) * recvcount);
  return MPI_Allgatherv(sendbuf, sendcount, sendtype, recvbuf, counts.data(), places.data(), recvtype, comm);
}

int MPI_Alltoall(const void* sendbuf, int sendcount, MPI_Datatype sendtype, void* recvbuf, int recvcount,
                 MPI_Datatype recvtype, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, recvcount, recvtype);
  const std::size_t bytes = bytes_of(recvcount, recvtype);
  const std::size_t ranks = own.members.size();
  const bool in_place = sendbuf == MPI_IN_PLACE;
  const std::vector<std::string> all = exchange(
      __func__, own, in_place ? view(recvbuf, ranks * bytes) : view(sendbuf, ranks * bytes_of(sendcount, sendtype)));
  require_equal(__func__, all, ranks * bytes);
  for (std::size_t from = 0; from < ranks; ++from) {
    std::memcpy(static_cast<char*>(recvbuf) + from * bytes,
                all[from].data() + static_cast<std::size_t>(own.rank) * bytes, bytes);
  }
  return MPI_SUCCESS;
}

int MPI_Reduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
               MPI_Comm comm) {
  Comm& own = checked(__func__, comm, count, datatype, root);
  if (op < MPI_SUM || op > MPI_BOR) return stop(__func__, MPI_ERR_OP, "an operation that this MPI does not have");
  const bool is_bitwise = op == MPI_BAND || op == MPI_BOR;
  if (is_bitwise && (datatype == MPI_FLOAT || datatype == MPI_DOUBLE)) return stop(__func__, MPI_ERR_OP, "of floats");
  const std::size_t bytes = bytes_of(count, datatype);
  std::vector<std::string> all = exchange(__func__, own, view(sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, bytes));
  require_equal(__func__, all, bytes);
  if (own.rank != root) return MPI_SUCCESS;
  for (std::size_t rank = 1; rank < all.size(); ++rank) combine_into(all[0], all[rank], datatype, op);
  std::memcpy(recvbuf, all[0].data(), bytes);
  return MPI_SUCCESS;
}

int MPI_Allreduce(const void* sendbuf, void* recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, count, datatype);
  return MPI_Reduce(sendbuf, recvbuf, count, datatype, op, own.rank, comm);  // every rank is its own root
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
