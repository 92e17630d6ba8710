#include "hccl/compression/bucket.hpp"

#include <gtest/gtest.h>

#include "base/counter_random.hpp"
#include "hccl/compression/hook_steps.hpp"

namespace hcclsim::hccl {
namespace {

Bucket batched(std::uint64_t elements, std::uint32_t rank = 1) {
  const BucketTensor tensor{elements, elements};
  return make_bucket({.kind = CompressionKind::batched_powersgd, .rank = rank}, {&tensor, 1});
}

/// P11.12, by hand: the side s of the least square that holds n elements, and 2·s numbers that are sent.
TEST(Bucket, SquaresAndPayloads) {
  const Bucket resnet50 = batched(25557032);
  EXPECT_EQ(resnet50.matrices.front().rows, 5056U);
  EXPECT_EQ(resnet50.padded, 25563136U);
  EXPECT_EQ(resnet50.padded - resnet50.elements, 6104U);
  EXPECT_EQ(resnet50.sent(), 10112U);
  EXPECT_NEAR(static_cast<double>(resnet50.elements) / static_cast<double>(resnet50.sent()), 2527.4, 0.05);
  EXPECT_EQ(batched(3219776).sent(), 3590U);
  EXPECT_EQ(batched(22337256).sent(), 9454U);
  EXPECT_EQ(batched(1000).matrices.front().rows, 32U);
  EXPECT_EQ(batched(1000).padded, 1024U);
  EXPECT_EQ(batched(1000).sent(), 64U);
  EXPECT_EQ(batched(6).sent(), 6U);
  EXPECT_EQ(batched(1).sent(), 2U);
}

TEST(Bucket, SquareSideIsTheLeast) {
  for (std::uint64_t side : {1ULL, 2ULL, 3ULL, 1000ULL, 94906267ULL, 3037000499ULL}) {
    EXPECT_EQ(square_side(side * side), side);
    EXPECT_EQ(square_side(side * side + 1), side + 1);
    EXPECT_EQ(square_side(side * side - 1), side == 1 ? 0 : side);
  }
}

TEST(Bucket, RankIsAtMostTheSide) {
  EXPECT_EQ(batched(10, 32).matrices.front().rank, 4U);
  EXPECT_EQ(batched(10, 32).sent(), 2U * 4 * 4);
}

/// The oracle's bucket: 6×40 and 16×8 are compressed with rank 2, 4×27 is not (62·2 is no less than 108), vectors
/// are not with this rate.
TEST(Bucket, ParametersOfLowRank) {
  const std::vector<BucketTensor> tensors{{240, 6}, {16, 16}, {128, 16}, {4, 4}, {108, 4}};
  const CompressionSettings settings{.rank = 2};
  const Bucket bucket = make_bucket(settings, tensors);
  ASSERT_EQ(bucket.matrices.size(), 2U);
  EXPECT_EQ(bucket.matrices[1].offset, 256U);
  EXPECT_EQ(bucket.p_elements, (6U + 16) * 2);
  EXPECT_EQ(bucket.q_elements, (40U + 8) * 2);
  EXPECT_EQ(bucket.direct_elements, 16U + 4 + 108);
  EXPECT_EQ(bucket.sent(), 44U + 96 + 128);
  using enum HookAction;
  EXPECT_EQ(hook_steps(settings, bucket),
            (std::vector<HookAction>{add_error, keep_copy, pack, orthogonalise_q, project, sum_direct, unpack, sum_p,
                                     orthogonalise_p, project_back, sum_q, divide_q, reconstruct, keep_error}));
}

TEST(Bucket, TheRateMustBeExceeded) {
  const BucketTensor tensor{.elements = 16, .rows = 4};  // (4 + 4)·1·2 = 16 is not less than 16
  EXPECT_TRUE(make_bucket({}, {&tensor, 1}).matrices.empty());
  EXPECT_EQ(make_bucket({.min_compression_rate = 1.9}, {&tensor, 1}).matrices.size(), 1U);
}

/// view(shape[0], -1) of a vector is n × 1, whose rank is 1: (16 + 1)·0.9 = 15.3 is less than 16, 17·0.95 = 16.15 is
/// not, and a vector of one element has (1 + 1)·0.5 = 1, which is not less than 1.
TEST(Bucket, VectorsAreMatricesOfOneColumn) {
  const std::vector<BucketTensor> tensors{{16, 16}, {1, 1}};
  const Bucket bucket = make_bucket({.rank = 2, .min_compression_rate = 0.9}, tensors);
  ASSERT_EQ(bucket.matrices.size(), 1U);
  EXPECT_EQ(bucket.matrices[0].columns, 1U);
  EXPECT_EQ(bucket.matrices[0].rank, 1U);
  EXPECT_EQ(bucket.direct_elements, 1U);
  EXPECT_EQ(bucket.sent(), 16U + 1 + 1);
  EXPECT_TRUE(make_bucket({.rank = 2, .min_compression_rate = 0.95}, tensors).matrices.empty());
  EXPECT_EQ(make_bucket({.rank = 2, .min_compression_rate = 0.5}, tensors).direct_elements, 1U);
  EXPECT_EQ(make_bucket({.rank = 2, .min_compression_rate = 0.4}, tensors).direct_elements, 0U);
}

TEST(Bucket, MatricesOfOneShapeFollowEachOther) {
  const std::vector<BucketTensor> tensors{{400, 20}, {600, 20}, {400, 20}, {600, 20}};
  const Bucket bucket = make_bucket({}, tensors);
  std::vector<std::uint64_t> offsets;
  for (const LowRankMatrix& matrix : bucket.matrices) offsets.push_back(matrix.offset);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 1000, 400, 1400}));
  // Batched: half as many kernels with the same work.
  const auto kernels = [&](bool batch) {
    return kernels_of(HookAction::project, {.batch_same_shape = batch}, bucket, 2, DataType::fp32);
  };
  ASSERT_EQ(kernels(false).size(), 4U);
  ASSERT_EQ(kernels(true).size(), 2U);
  EXPECT_EQ(kernels(true).front().cube.groups, 2U);
  EXPECT_EQ(kernels(true).front().flops, 2 * kernels(false).front().flops);
}

/// Steps 6 to 12 of P11.12: 2·s·r² and three times 2·s²·r operations.
TEST(HookSteps, OperationsOfASquare) {
  const CompressionSettings settings{.kind = CompressionKind::batched_powersgd, .rank = 2};
  const Bucket bucket = batched(100, 2);
  for (const HookAction product : {HookAction::project, HookAction::project_back, HookAction::reconstruct}) {
    const auto kernels = kernels_of(product, settings, bucket, 4, DataType::fp32);
    ASSERT_EQ(kernels.size(), 1U);
    EXPECT_EQ(kernels.front().flops, 2 * 100 * 2);
    EXPECT_EQ(kernels.front().read + kernels.front().written, (100U + 2 * 20) * 4);
  }
  const auto columns = kernels_of(HookAction::orthogonalise_p, settings, bucket, 4, DataType::fp32);
  ASSERT_EQ(columns.size(), 2U);
  EXPECT_EQ(columns[0].vector_elements, 10U * 7);  // norm and division 3, product and difference 4
  EXPECT_EQ(columns[1].vector_elements, 10U * 3);
}

/// Error, copy, P and Q; the padding.
TEST(HookSteps, Memory) {
  const CompressionSettings settings{.kind = CompressionKind::batched_powersgd};
  const HookMemory memory = hook_memory(settings, batched(1000), 8, DataType::fp32);
  EXPECT_EQ(memory.errors, 4096U);
  EXPECT_EQ(memory.copies, 4096U);
  EXPECT_EQ(memory.factors, 256U);
  EXPECT_EQ(memory.buffers, 24U * 4);
}

}  // namespace
}  // namespace hcclsim::hccl
