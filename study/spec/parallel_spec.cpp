#include "study/spec/parallel_spec.hpp"

#include "base/error.hpp"

namespace hcclsim::study {

BatchSizes ParallelSpec::batch_sizes(std::uint32_t batch, Rank replicas) const {
  if (global_batch.has_value()) {
    if (batch_given) bad_input("option", "--batch and --global-batch both say how many samples a step has: give one");
    if (*global_batch % replicas != 0) {
      bad_input("value-error", "--global-batch {}: {} replicas cannot share it evenly", *global_batch, replicas);
    }
    batch = *global_batch / replicas;
  }
  if (micro_batch_size.has_value() && micro_batches.has_value()) {
    if (batch_given || global_batch.has_value()) {
      bad_input("option",
                "--micro-batches and --micro-batch-size say how many samples a step has: leave out --batch and "
                "--global-batch, or one of these");
    }
    return {*micro_batch_size, *micro_batches};
  }
  if (micro_batch_size.has_value()) {
    if (batch % *micro_batch_size != 0) {
      bad_input("value-error", "--micro-batch-size {} does not divide the {} samples of a replica", *micro_batch_size,
                batch);
    }
    return {*micro_batch_size, batch / *micro_batch_size};
  }
  const std::uint32_t count = micro_batches.value_or(1);
  if (batch % count != 0) {
    bad_input("value-error", "{} {} does not divide the {} samples of a replica ({})", micro_batches_option, count,
              batch, global_batch.has_value() ? "--global-batch" : "--batch");
  }
  return {batch / count, count};
}

}  // namespace hcclsim::study
