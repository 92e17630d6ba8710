// Every collective and message of HCCL, in and out of place, on data that depend on rank and element, against what MPI
// gives. One process per NPU. Prints a line for each; status 1 if anything differs.

#include <hccl/hccl.h>

#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "examples/clients/world.hpp"

namespace {

int rank;
int ranks;
HcclComm comm;
aclrtStream stream;
int wrong_calls;

using Numbers = std::vector<int>;

Numbers numbers(std::size_t count) {
  Numbers all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = rank * 1000 + static_cast<int>(i * i % 997);
  return all;
}

/// Memory of the device with these numbers.
class Device {
 public:
  explicit Device(const Numbers& host) : bytes_(host.size() * sizeof(int)) {
    CHECK(aclrtMalloc(&address_, bytes_ + 4, ACL_MEM_MALLOC_NORMAL_ONLY));
    if (bytes_ > 0) CHECK(aclrtMemcpy(address_, bytes_, host.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  Device(const Device&) = delete;
  ~Device() { CHECK(aclrtFree(address_)); }
  void* at(std::size_t element = 0) const { return static_cast<char*>(address_) + element * sizeof(int); }
  Numbers read() const {
    CHECK(aclrtSynchronizeStream(stream));
    Numbers host(bytes_ / sizeof(int));
    if (bytes_ > 0) CHECK(aclrtMemcpy(host.data(), bytes_, address_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST));
    return host;
  }

 private:
  void* address_ = nullptr;
  std::size_t bytes_;
};

void compare(const char* what, const Numbers& found, const Numbers& wanted) {
  int wrong = found == wanted ? 0 : 1;
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%-28s %s\n", what, wrong == 0 ? "as MPI" : "DIFFERS");
  wrong_calls += wrong;
}

constexpr HcclDataType type = HCCL_DATA_TYPE_INT32;

void reductions(int n) {
  const Numbers own = numbers(static_cast<std::size_t>(n));
  const struct {
    const char* name;
    HcclReduceOp hccl;
    MPI_Op mpi;
  } ops[] = {{"allreduce sum", HCCL_REDUCE_SUM, MPI_SUM},
             {"allreduce prod", HCCL_REDUCE_PROD, MPI_PROD},
             {"allreduce max", HCCL_REDUCE_MAX, MPI_MAX},
             {"allreduce min", HCCL_REDUCE_MIN, MPI_MIN}};
  for (const auto& op : ops) {
    Numbers wanted(own.size());
    MPI_Allreduce(own.data(), wanted.data(), n, MPI_INT, op.mpi, MPI_COMM_WORLD);
    const Device in(own);
    const Device out(Numbers(own.size()));
    CHECK(HcclAllReduce(in.at(), out.at(), own.size(), type, op.hccl, comm, stream));
    compare(op.name, out.read(), wanted);
    CHECK(HcclAllReduce(in.at(), in.at(), own.size(), type, op.hccl, comm, stream));
    compare("  in place", in.read(), wanted);
  }
  const int root = ranks - 1;
  Numbers wanted(own.size());
  MPI_Reduce(own.data(), wanted.data(), n, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
  const Device in(own);
  const Device out(Numbers(own.size()));
  CHECK(HcclReduce(in.at(), out.at(), own.size(), type, HCCL_REDUCE_SUM, root, comm, stream));
  compare("reduce", out.read(), rank == root ? wanted : Numbers(own.size()));

  const Numbers blocks = numbers(static_cast<std::size_t>(n * ranks));
  Numbers sums(blocks.size());
  MPI_Allreduce(blocks.data(), sums.data(), n * ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const Device many(blocks);
  CHECK(HcclReduceScatter(many.at(), out.at(), own.size(), type, HCCL_REDUCE_SUM, comm, stream));
  compare("reduce-scatter", out.read(), Numbers(sums.begin() + rank * n, sums.begin() + (rank + 1) * n));

  // Blocks of 1, 2, 3 … elements, with a gap of one between them.
  std::vector<std::uint64_t> counts;
  std::vector<std::uint64_t> places;
  std::uint64_t end = 0;
  for (int r = 0; r < ranks; ++r) {
    counts.push_back(static_cast<std::uint64_t>(r) + 1);
    places.push_back(end);
    end += counts.back() + 1;
  }
  const Numbers spread = numbers(end);
  Numbers spread_sums(end);
  MPI_Allreduce(spread.data(), spread_sums.data(), static_cast<int>(end), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const Device spread_in(spread);
  const Device spread_out(Numbers(counts[rank]));
  CHECK(HcclReduceScatterV(spread_in.at(), counts.data(), places.data(), spread_out.at(), counts[rank], type,
                           HCCL_REDUCE_SUM, comm, stream));
  const auto first = spread_sums.begin() + static_cast<std::ptrdiff_t>(places[rank]);
  compare("reduce-scatter v", spread_out.read(), Numbers(first, first + rank + 1));

  const Numbers few = numbers(counts[rank]);
  Numbers gathered(end, -1);
  const std::vector<int> int_counts(counts.begin(), counts.end());
  const std::vector<int> int_places(places.begin(), places.end());
  MPI_Allgatherv(few.data(), rank + 1, MPI_INT, gathered.data(), int_counts.data(), int_places.data(), MPI_INT,
                 MPI_COMM_WORLD);
  const Device few_in(few);
  const Device gathered_out(Numbers(end, -1));
  CHECK(HcclAllGatherV(few_in.at(), counts[rank], gathered_out.at(), counts.data(), places.data(), type, comm, stream));
  compare("allgather v", gathered_out.read(), gathered);
}

void moves(int n) {
  const auto count = static_cast<std::size_t>(n);
  const Numbers own = numbers(count);
  for (const int root : {0, ranks - 1}) {
    Numbers wanted = own;
    MPI_Bcast(wanted.data(), n, MPI_INT, root, MPI_COMM_WORLD);
    const Device buffer(own);
    CHECK(HcclBroadcast(buffer.at(), count, type, root, comm, stream));
    compare("broadcast", buffer.read(), wanted);

    const Numbers blocks = numbers(count * ranks);
    Numbers block(count);
    MPI_Scatter(blocks.data(), n, MPI_INT, block.data(), n, MPI_INT, root, MPI_COMM_WORLD);
    const Device many(blocks);
    const Device out{Numbers(count)};
    CHECK(HcclScatter(rank == root ? many.at() : nullptr, out.at(), count, type, root, comm, stream));
    compare("scatter", out.read(), block);
  }
  Numbers gathered(count * ranks);
  MPI_Allgather(own.data(), n, MPI_INT, gathered.data(), n, MPI_INT, MPI_COMM_WORLD);
  const Device in(own);
  const Device all(Numbers(count * ranks));
  CHECK(HcclAllGather(in.at(), all.at(), count, type, comm, stream));
  compare("allgather", all.read(), gathered);
  Numbers placed(count * ranks);
  std::copy(own.begin(), own.end(), placed.begin() + rank * n);
  const Device in_place(placed);
  CHECK(HcclAllGather(in_place.at(count * rank), in_place.at(), count, type, comm, stream));
  compare("  in place", in_place.read(), gathered);

  const Numbers blocks = numbers(count * ranks);
  Numbers exchanged(count * ranks);
  MPI_Alltoall(blocks.data(), n, MPI_INT, exchanged.data(), n, MPI_INT, MPI_COMM_WORLD);
  const Device many(blocks);
  CHECK(HcclAlltoAll(many.at(), count, type, all.at(), count, type, comm, stream));
  compare("alltoall", all.read(), exchanged);

  // Rank s sends (s + d) % 3 elements to rank d; what is sent lies with gaps.
  std::vector<std::uint64_t> matrix;
  for (int s = 0; s < ranks; ++s) {
    for (int d = 0; d < ranks; ++d) matrix.push_back(static_cast<std::uint64_t>((s + d) % 3));
  }
  std::vector<std::uint64_t> sent(matrix.begin() + rank * ranks, matrix.begin() + (rank + 1) * ranks);
  std::vector<std::uint64_t> sent_places(ranks);
  std::vector<std::uint64_t> received(ranks);
  std::vector<std::uint64_t> received_places(ranks);
  for (int r = 0; r < ranks; ++r) {
    sent_places[r] = 3U * r;
    received[r] = matrix[r * ranks + rank];
    if (r > 0) received_places[r] = received_places[r - 1] + received[r - 1];
  }
  const std::size_t total = received_places.back() + received.back();
  Numbers wanted;
  for (int s = 0; s < ranks; ++s) {
    for (std::uint64_t i = 0; i < received[s]; ++i) {
      const std::size_t element = 3U * rank + i;
      wanted.push_back(s * 1000 + static_cast<int>(element * element % 997));
    }
  }
  const Device spread(numbers(3U * ranks));
  const Device into{Numbers(total)};
  CHECK(HcclAlltoAllV(spread.at(), sent.data(), sent_places.data(), type, into.at(), received.data(),
                      received_places.data(), type, comm, stream));
  compare("alltoall v", into.read(), wanted);
  Numbers packed;
  for (int d = 0; d < ranks; ++d) {
    for (std::uint64_t i = 0; i < sent[d]; ++i) {
      const std::size_t element = 3U * d + i;
      packed.push_back(rank * 1000 + static_cast<int>(element * element % 997));
    }
  }
  const Device packed_in(packed);
  const Device into_too{Numbers(total)};
  CHECK(HcclAlltoAllVC(packed_in.at(), matrix.data(), type, into_too.at(), type, comm, stream));
  compare("alltoall vc", into_too.read(), wanted);
}

void messages(int n) {
  const auto count = static_cast<std::size_t>(n);
  const Device own(numbers(count));
  const Device other{Numbers(count)};
  const int next = (rank + 1) % ranks;
  const int before = (rank + ranks - 1) % ranks;
  // Even ranks send first.
  for (int turn = 0; turn < 2; ++turn) {
    if ((rank + turn) % 2 == 0)
      CHECK(HcclSend(own.at(), count, type, next, comm, stream));
    else
      CHECK(HcclRecv(other.at(), count, type, before, comm, stream));
  }
  Numbers wanted(count);
  MPI_Sendrecv(numbers(count).data(), n, MPI_INT, next, 7, wanted.data(), n, MPI_INT, before, 7, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  compare("send, recv", other.read(), wanted);
  const Device again{Numbers(count)};
  HcclSendRecvItem items[] = {{HCCL_RECV, again.at(), count, type, static_cast<std::uint32_t>(before)},
                              {HCCL_SEND, own.at(), count, type, static_cast<std::uint32_t>(next)}};
  for (int i = 0; i < 2; ++i) CHECK(HcclBatchSendRecv(items, 2, comm, stream));
  compare("batch", again.read(), wanted);
}

}  // namespace

int main(int argc, char** argv) {
  const World world = begin_world(argc, argv);
  rank = static_cast<int>(world.rank);
  ranks = static_cast<int>(world.ranks);
  comm = world.comm;
  CHECK(aclrtCreateStream(&stream));
  for (const int n : {1, 1000, 70000}) {
    if (rank == 0) std::printf("%d elements\n", n);
    reductions(n);
    moves(n);
    messages(n);
  }
  CHECK(HcclBarrier(comm, stream));
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclrtDestroyStream(stream));
  end_world(world);
  return wrong_calls == 0 ? 0 : 1;
}
