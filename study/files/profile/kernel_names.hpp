#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/program.hpp"
#include "models/graph.hpp"
#include "models/lowering/kernel.hpp"

/// Which kernels of the model a measured kernel stands for, by its name and type.
///
/// 1. A name of the model's own, "layer1.0.conv1:forward+reduce" or "fc.bias:momentum", stands for that kernel.
/// 2. Otherwise the operator is looked for in the name. A name is a path: parts between '/' or '.', each up to its
///    first '-', so that MindSpore's "…/layer1-SequentialCell/0-ResidualBlock/conv1-Conv2d/Conv2D-op12" holds the
///    operator layer1.0.conv1. The operator with the most parts wins; of equals the first, since a fused kernel is
///    named after its operators in their order. MindSpore's down_sample_layer is downsample, its end_point fc.
///    TensorFlow's conv2d, conv2d_1, …, batch_normalization…, dense…, max_pooling2d… and average_pooling2d… count the
///    model's operators of the kind; as in TensorFlow's official models the shortcut of a block is counted before its
///    other layers. Mean is the only average pool, except in loss and metrics. Keras' conv2_block1_3_bn and TF-Slim's
///    block1/unit_1/bottleneck_v1/conv3/BatchNorm are layer1.0.bn3. A softmax cross-entropy, a log-softmax and an NLL
///    loss are the model's loss.
/// 3. Backward is what has a part that begins with "gradients" or "Gradients" or is one of PyTorch's "aclnn…Backward…",
///    or whose type has Grad or Backprop in it; update what has the type of an optimizer's kernel or a part "update_…".
/// 4. The type says which kernel of the operator it is: Cast, Conv2DBackpropFilter, BNTrainingUpdateGrad, … Kernels
///    that the model has in one (a convolution and the sums of its batch norm) add up; where the name leaves several
///    kernels of the model (the two products of a linear operator's backward pass), all of them are meant together.
namespace hcclsim::study {

/// The phase of a kernel by rule 3, whatever the model.
[[nodiscard]] models::Phase phase_by_name(const std::string& name, std::string_view type);

/// Between names of which a kernel has several.
inline constexpr char names_together = '&';

/// Kernels of a program, which share a measured time.
class KernelNames {
 public:
  /// Both must stay. The program must be that of the graph.
  KernelNames(const models::Graph& graph, models::Program& program);

  /// The kernels that are meant, or none. Updates that name no parameter mean all updates.
  /// Of several names together (names_together) all that they mean.
  [[nodiscard]] std::vector<models::Kernel*> find(const std::string& name, const std::string& type) const;

 private:
  void add_tensorflow_names();
  [[nodiscard]] const models::Operator* operator_in(const std::vector<std::string>& parts, bool is_update) const;
  [[nodiscard]] std::vector<models::Kernel*> update_of(const std::vector<std::string>& parts) const;
  [[nodiscard]] std::vector<models::Kernel*> forward_of(const models::Operator& op, std::string_view type) const;
  [[nodiscard]] std::vector<models::Kernel*> backward_of(const models::Operator& op, std::string_view type) const;

  const models::Graph& graph_;
  std::map<std::string, models::Kernel*, std::less<>> by_name_;
  /// "<operator>:" of forward and backward kernels, "<parameter>:" of updates.
  std::map<std::string, std::vector<models::Kernel*>, std::less<>> forward_;
  std::map<std::string, std::vector<models::Kernel*>, std::less<>> backward_;
  std::map<std::string, std::vector<models::Kernel*>, std::less<>> updates_;
  std::vector<models::Kernel*> all_updates_;
  std::map<std::string, const models::Operator*, std::less<>> tensorflow_;  ///< "conv2d_3"
  struct NamedOperator {
    std::vector<std::string> parts;
    const models::Operator* op;
  };
  std::vector<NamedOperator> operators_;
};

}  // namespace hcclsim::study
