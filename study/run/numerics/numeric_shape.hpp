#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "models/graph.hpp"
#include "study/spec/run_spec.hpp"

/// Which shape is computed with real numbers. Simulated times are those of the timed shape (224 pixels, batch 32),
/// which this computer may need minutes for; gradients of the same parameters come from a smaller one too.
namespace hcclsim::study {

/// Up to this number of floating-point operations per iteration, over all replicas and micro-batches, the timed shape
/// is computed unless the user says otherwise: some seconds on four cores. Above it images have at most 64 pixels per
/// side, batches 2 samples.
constexpr double most_default_flops = 2e11;
constexpr std::uint32_t small_input = 64;
constexpr std::uint32_t small_batch = 2;

/// The network in the shape to be computed, a micro-batch of a replica, or of all of them if its operators are cut: the
/// sizes of its numerics where given, for the rest the timed shape or the small one. Throws Error(bad_input) as
/// make_model does.
[[nodiscard]] models::Graph numeric_graph(const RunSpec& spec, const BatchSizes& timed, Rank replicas);

/// Networks to be computed where that one takes too much memory, the largest first: half the batch down to one sample
/// of a replica (two where operators are cut and several are timed), then half the pixels per side down to 32, as far
/// as sizes are not given and a network of the same parameters takes them.
[[nodiscard]] std::vector<models::Graph> smaller_graphs(const RunSpec& spec, const BatchSizes& timed,
                                                        const models::Graph& graph, Rank replicas);

/// "2 x 3x64x64", "2 x 32 tokens", "2 x 784": samples and the shape of one.
[[nodiscard]] std::string shape_text(const models::Graph& graph);

/// Most memory to take unless told: 80 % of what the kernel says is available (MemAvailable of /proc/meminfo, whose
/// text is passed); 0 if it does not say.
[[nodiscard]] Bytes default_memory_limit(const std::string& meminfo);

}  // namespace hcclsim::study
