#pragma once

#include <string>
#include <vector>

#include "models/graph.hpp"
#include "models/program.hpp"
#include "study/files/profile/kernel_profile.hpp"

/// PyTorch's kernels have the name of the library's function, such as aclnnConvolution_Conv2dWithFlag_Conv2D, or of
/// their type, such as Conv2D12, and not that of a layer. Which operator of the model one is for follows from the order
/// in which an iteration launches those of its kind: forward in the order of the model's operators, backward in the
/// reverse order, as autograd does it. What is launched behind the last kernel of the backward pass is the optimizer.
namespace hcclsim::study {

/// Whether the name is that of a function or type.
[[nodiscard]] bool has_function_name(const MeasuredKernel& kernel);

/// For each kernel of the profile a name that KernelNames finds, or nothing where its own says which operator it is
/// for. Kinds of which an iteration has another number than the model are left alone; `notes` says so.
[[nodiscard]] std::vector<std::string> names_by_launch_order(const KernelProfile& profile, const models::Graph& graph,
                                                             const models::Program& program,
                                                             std::vector<std::string>& notes);

}  // namespace hcclsim::study
