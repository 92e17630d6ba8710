#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/graph.hpp"
#include "models/program.hpp"
#include "study/spec/run_spec.hpp"

/// What MindSpore finds out when it compiles the first step of a context, and what needs the devices or the network to
/// be known. Errors are of kind "runtime-error", as of its compiler, or "unsupported".
namespace hcclsim::study {

/// Devices, stages, micro-batches and shards of a run with a context; nothing without one.
void check_compilation(const RunSpec& spec, Rank npus, std::uint32_t micro_batches);

/// Throws Error(bad_input, "runtime-error") for an optimizer that MindSpore does not deal to the ranks of its
/// data_parallel mode (O4.13); `option` has asked for it.
void require_dealt_optimizer(std::string_view option, models::Optimizer optimizer);

/// Tells what gradient_fp32_sync False and force_fp32_communication True do to the types of what the programs of the
/// stages reduce, as far as they are set (R1.13, R1.14).
void note_communication_types(const RunSpec& spec, std::span<const models::Program* const> programs,
                              std::vector<std::string>& notes);

/// A list of gradients has no operators that could be computed again, and no inputs. Throws Error(bad_input, "option").
void require_no_operators(const RunSpec& spec, const std::string& gradients);

/// The tuples of dataset_strategy (RunSpec::dataset_cuts): one for each input, with as many numbers as it has
/// dimensions, that cut one of them at most, all into as many slices, which divide the devices of a stage. Of a network
/// whose operators are not cut all inputs are whole, or the first one has a part of the samples for each device.
void check_dataset_cuts(const RunSpec& spec, const models::Graph& network, Rank devices);

}  // namespace hcclsim::study
