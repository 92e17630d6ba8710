#include <vector>

#include "hccl/parallel/sharding/rules/axes.hpp"

/// Convolution and what goes with it. Height and width are cut with borders from neighbours (halo.hpp).
namespace hcclsim::hccl {
namespace {

using models::OperatorId;
using models::OperatorKind;
using models::Shape;

Signature convolution_signature(const WholeGraph& whole, OperatorId id) {
  constexpr std::string_view grouped = "channels of a convolution in groups belong together";
  SignatureWriter writer;
  const models::Operator& op = whole.op(id);
  const std::size_t batch = writer.dimension("batch");
  const std::size_t inputs = op.groups == 1 ? writer.summed("inputs") : writer.whole("inputs", grouped);
  const std::size_t height = writer.dimension("height");
  const std::size_t width = writer.dimension("width");
  const std::size_t outputs = op.groups == 1 ? writer.dimension("outputs") : writer.whole("outputs", grouped);
  const std::size_t window = writer.whole("window", "a window is computed as one");
  writer.input(whole.view(op.inputs.front()), {batch, inputs, height, width});
  writer.parameter(parameter_shape(whole, id, 0), {outputs, inputs, window, window});
  if (op.parameters.size() > 1) writer.parameter(parameter_shape(whole, id, 1), {outputs});
  writer.signature().optional_parameters = op.parameters.size() - 1;
  writer.output(whole.view(id), {batch, outputs, height, width});
  return writer.finish();
}

Signature max_pool_signature(const WholeGraph& whole, OperatorId id) {
  SignatureWriter writer;
  const std::vector<std::size_t> axes{writer.dimension("batch"), writer.dimension("channels"),
                                      writer.dimension("height"), writer.dimension("width")};
  writer.input(whole.view(whole.op(id).inputs.front()), axes);
  writer.output(whole.view(id), axes);
  return writer.finish();
}

/// Any number of pixels may go into one: all are needed.
Signature average_pool_signature(const WholeGraph& whole, OperatorId id) {
  constexpr std::string_view pixels = "an adaptive average needs all pixels";
  SignatureWriter writer;
  const std::vector<std::size_t> axes{writer.dimension("batch"), writer.dimension("channels"),
                                      writer.whole("height", pixels), writer.whole("width", pixels)};
  writer.input(whole.view(whole.op(id).inputs.front()), axes);
  writer.output(whole.view(id), axes);
  return writer.finish();
}

/// Channels vary slowest among the features that they become.
Signature flatten_signature(const WholeGraph& whole, OperatorId id) {
  constexpr std::string_view pixels = "the pixels of a channel become neighbouring features";
  SignatureWriter writer;
  const Shape in = whole.view(whole.op(id).inputs.front());
  const std::size_t batch = writer.dimension("batch");
  const std::size_t channels = writer.dimension("channels", in.channels());
  std::vector<std::size_t> axes{batch, channels};
  if (in.rank() == 4) axes.insert(axes.end(), {writer.whole("height", pixels), writer.whole("width", pixels)});
  writer.input(in, axes);
  writer.output(whole.view(id), {batch, channels});
  return writer.finish();
}

/// A row of channels for each pixel.
Signature patches_signature(const WholeGraph& whole, OperatorId id) {
  constexpr std::string_view pixels = "pixels become the positions of a sequence";
  SignatureWriter writer;
  const std::size_t batch = writer.dimension("batch");
  const std::size_t channels = writer.dimension("channels");
  const std::size_t height = writer.whole("height", pixels);
  const std::size_t width = writer.whole("width", pixels);
  writer.input(whole.view(whole.op(id).inputs.front()), {batch, channels, height, width});
  const Shape out = whole.view(id);
  writer.output(out, out.rank() == 3 ? std::vector<std::size_t>{batch, height, channels}
                                     : std::vector<std::size_t>{batch, channels});
  return writer.finish();
}

}  // namespace

std::span<const OperatorRule> image_rules() {
  static const std::vector<OperatorRule> rules{
      {.kind = OperatorKind::convolution, .signature = convolution_signature},
      {.kind = OperatorKind::max_pool, .signature = max_pool_signature},
      {.kind = OperatorKind::average_pool, .signature = average_pool_signature},
      {.kind = OperatorKind::flatten, .signature = flatten_signature},
      {.kind = OperatorKind::patches, .signature = patches_signature},
  };
  return rules;
}

}  // namespace hcclsim::hccl
