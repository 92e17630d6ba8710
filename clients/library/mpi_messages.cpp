// MPI: messages between two processes, and requests.
// NOLINTBEGIN(readability-identifier-naming): names are the interface's
#include <mpi.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "clients/library/api.hpp"
#include "clients/library/mpi_comm.hpp"

using namespace hcclsim::clients;  // NOLINT(google-build-using-namespace)

namespace {

int send(const char* function, const void* data, std::size_t bytes, int destination, int tag, Comm& comm) {
  if (destination == MPI_PROC_NULL) return MPI_SUCCESS;
  if (destination < 0 || static_cast<std::size_t>(destination) >= comm.members.size()) {
    return stop(function, MPI_ERR_RANK, "there is no rank " + std::to_string(destination));
  }
  ask(Call::send_bytes,
      {comm.name, static_cast<std::uint64_t>(comm.rank), comm.members[static_cast<std::size_t>(destination)],
       as_number(tag)},
      view(data, bytes));
  return MPI_SUCCESS;
}

int receive(const char* function, void* data, std::size_t room, int source, int tag, Comm& comm, MPI_Status* status) {
  MPI_Status got{MPI_PROC_NULL, MPI_ANY_TAG, MPI_SUCCESS, 0};
  if (source != MPI_PROC_NULL) {
    const std::uint64_t from = source == MPI_ANY_SOURCE ? none : static_cast<std::uint64_t>(source);
    const Answer answer = ask(Call::receive_bytes, {comm.name, from, tag == MPI_ANY_TAG ? none : as_number(tag)});
    if (answer.bytes.size() > room) {
      return stop(
          function, MPI_ERR_TRUNCATE,
          "a message of " + std::to_string(answer.bytes.size()) + " bytes for a place of " + std::to_string(room));
    }
    std::memcpy(data, answer.bytes.data(), answer.bytes.size());
    got = {static_cast<int>(answer.values[0]), static_cast<int>(answer.values[1]), MPI_SUCCESS,
           static_cast<int>(answer.bytes.size())};
  }
  if (status != MPI_STATUS_IGNORE) *status = got;
  return MPI_SUCCESS;
}

MPI_Request request_of(std::function<int(MPI_Status*)> wait) {
  const MPI_Request request = world().next_request++;
  world().requests[request] = std::move(wait);
  return request;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

int MPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
  Comm& own = checked(__func__, comm, count, datatype);
  return send(__func__, buf, bytes_of(count, datatype), dest, tag, own);
}

int MPI_Recv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Comm& own = checked(__func__, comm, count, datatype);
  return receive(__func__, buf, bytes_of(count, datatype), source, tag, own, status);
}

int MPI_Sendrecv(const void* sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
                 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
  MPI_Send(sendbuf, sendcount, sendtype, dest, sendtag, comm);
  return MPI_Recv(recvbuf, recvcount, recvtype, source, recvtag, comm, status);
}

int MPI_Get_count(const MPI_Status* status, MPI_Datatype datatype, int* count) {
  const int size = size_of(datatype);
  *count = size == 0 || status->hcclsim_bytes % size != 0 ? MPI_UNDEFINED : status->hcclsim_bytes / size;
  return MPI_SUCCESS;
}

int MPI_Ibcast(void* buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
  checked(__func__, comm, count, datatype, root);
  *request = request_of([=](MPI_Status*) { return MPI_Bcast(buffer, count, datatype, root, comm); });
  return MPI_SUCCESS;
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  *request = request_of([=](MPI_Status*) { return MPI_Barrier(comm); });
  return MPI_SUCCESS;
}

int MPI_Isend(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request* request) {
  MPI_Send(buf, count, datatype, dest, tag, comm);
  *request = request_of([](MPI_Status*) { return MPI_SUCCESS; });
  return MPI_SUCCESS;
}

int MPI_Irecv(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  checked(__func__, comm, count, datatype);
  *request = request_of([=](MPI_Status* status) { return MPI_Recv(buf, count, datatype, source, tag, comm, status); });
  return MPI_SUCCESS;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const auto found = world().requests.find(*request);
  if (found == world().requests.end()) return MPI_SUCCESS;
  const std::function<int(MPI_Status*)> wait = std::move(found->second);
  world().requests.erase(found);
  *request = MPI_REQUEST_NULL;
  return wait(status);
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  for (int i = 0; i < count; ++i) MPI_Wait(&requests[i], statuses == MPI_STATUSES_IGNORE ? nullptr : &statuses[i]);
  return MPI_SUCCESS;
}

#pragma GCC visibility pop
}
// NOLINTEND(readability-identifier-naming)
