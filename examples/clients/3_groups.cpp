// Groups: the ranks of a communicator as a grid, with a communicator for every row and every column. Numbers are summed
// over the rows, then over the columns, which is the sum over all; then each rank sends its own to the next one of its
// row.
//
//   g++ -o 3_groups 3_groups.cpp $(hcclsim exec --flags)
//   hcclsim exec --platform atlas800t-a2 --processes 8 -- ./3_groups

#include <hccl/hccl.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "world.hpp"

namespace {

/// The communicator of those members; its number is the same on all of them, and only theirs.
HcclComm group_of(HcclComm all, std::vector<std::uint32_t> members, std::uint64_t number, std::uint32_t rank) {
  HcclCommConfig config;
  HcclCommConfigInit(&config);
  HcclComm group = nullptr;
  CHECK(HcclCreateSubCommConfig(&all, static_cast<std::uint32_t>(members.size()), members.data(), number, rank, &config,
                                &group));
  return group;
}

std::int64_t value_at(const void* device) {
  std::int64_t value = 0;
  CHECK(aclrtMemcpy(&value, sizeof value, device, sizeof value, ACL_MEMCPY_DEVICE_TO_HOST));
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  const World world = begin_world(argc, argv);
  const std::uint32_t rank = world.rank;
  const std::uint32_t columns = world.ranks / 2;

  const std::uint32_t row = rank / columns;
  const std::uint32_t column = rank % columns;
  std::vector<std::uint32_t> of_row;
  for (std::uint32_t i = 0; i < columns; ++i) of_row.push_back(row * columns + i);
  HcclComm row_group = group_of(world.comm, of_row, row, column);
  HcclComm column_group = group_of(world.comm, {column, columns + column}, 100 + column, row);

  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  void* own = nullptr;
  void* sum = nullptr;
  void* neighbour = nullptr;
  for (void** const place : {&own, &sum, &neighbour}) {
    CHECK(aclrtMalloc(place, sizeof(std::int64_t), ACL_MEM_MALLOC_NORMAL_ONLY));
  }
  const std::int64_t value = 10 * (rank + 1);
  CHECK(aclrtMemcpy(own, sizeof value, &value, sizeof value, ACL_MEMCPY_HOST_TO_DEVICE));
  CHECK(HcclAllReduce(own, sum, 1, HCCL_DATA_TYPE_INT64, HCCL_REDUCE_SUM, row_group, stream));
  CHECK(aclrtSynchronizeStream(stream));
  const std::int64_t of_the_row = value_at(sum);
  CHECK(HcclAllReduce(sum, sum, 1, HCCL_DATA_TYPE_INT64, HCCL_REDUCE_SUM, column_group, stream));
  std::vector<HcclSendRecvItem> items{
      {HCCL_SEND, own, 1, HCCL_DATA_TYPE_INT64, (column + 1) % columns},
      {HCCL_RECV, neighbour, 1, HCCL_DATA_TYPE_INT64, (column + columns - 1) % columns}};
  CHECK(HcclBatchSendRecv(items.data(), static_cast<std::uint32_t>(items.size()), row_group, stream));
  CHECK(aclrtSynchronizeStream(stream));
  std::printf("rank %u: row %lld, all %lld, from the rank before %lld\n", rank, static_cast<long long>(of_the_row),
              static_cast<long long>(value_at(sum)), static_cast<long long>(value_at(neighbour)));

  for (void* const place : {own, sum, neighbour}) CHECK(aclrtFree(place));
  CHECK(aclrtDestroyStream(stream));
  for (HcclComm group : {row_group, column_group}) CHECK(HcclCommDestroy(group));
  end_world(world);
  return 0;
}
