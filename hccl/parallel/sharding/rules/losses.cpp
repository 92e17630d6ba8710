#include <algorithm>
#include <array>
#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;

/// Tensors of logits have their samples in common, and those of one shape their rows and classes too; others have their
/// own. Every device has the sum of the losses of its rows.
Signature loss_signature(const WholeGraph& whole, OperatorId id) {
  static constexpr std::array<std::string_view, 4> positions{"positions", "positions 1", "positions 2", "positions 3"};
  static constexpr std::array<std::string_view, 4> classes{"classes", "classes 1", "classes 2", "classes 3"};
  SignatureWriter writer;
  const std::size_t batch = writer.dimension("batch");
  const models::Operator& op = whole.op(id);
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const models::Shape view = flat_view(whole, op.inputs[i]);
    const auto& before = writer.signature().inputs;
    const auto same = std::ranges::find(before, view, &TensorAxes::shape);
    if (same != before.end()) {
      writer.signature().further.push_back(writer.signature().further[static_cast<std::size_t>(same - before.begin())]);
      writer.input(view, same->dimensions);
      continue;
    }
    std::vector<std::size_t> axes{batch};
    if (view.rank() == 3) axes.push_back(writer.dimension(positions.at(i)));
    writer.signature().further.push_back(axes);  // labels
    axes.push_back(op.kind == OperatorKind::loss ? writer.dimension(classes.at(i))
                                                 : writer.whole("logit", "there is one number for each sample"));
    writer.input(view, std::move(axes));
  }
  const std::size_t sum = writer.whole("loss", "there is one number");
  writer.output(op.shape(), {sum, sum});
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> loss_rules() {
  static const std::array<OperatorRule, 2> rules{{{.kind = OperatorKind::loss, .signature = loss_signature},
                                                  {.kind = OperatorKind::binary_loss, .signature = loss_signature}}};
  return rules;
}

}  // namespace hcclsim::hccl
