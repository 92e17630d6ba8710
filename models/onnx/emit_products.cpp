#include <algorithm>

#include "models/onnx/einsum.hpp"
#include "models/onnx/emitter.hpp"
#include "models/onnx/matching.hpp"

namespace hcclsim::models::onnx {

bool Emitter::is_whole(const std::string& weight) const {
  return elements_of(network_.dims(weight)) == elements_of(network_.dims(weight_name(weight)));
}

void Emitter::use_weight(OperatorId id, const std::string& weight) {
  if (knows(weight)) {
    builder_->share_weight(id, parameters_.at(weight_name(weight)));
    return;
  }
  static_cast<void>(builder_->add_weight(id, sizes_of(weight_name(weight))));
  note({weight});
}

Value Emitter::with_bias(std::size_t number, OperatorId product, const std::string& bias) {
  const Shape shape = builder_->shape(product);
  const OperatorId sum = builder_->vector_work(name_for(number), {product}, shape,
                                               {.forward = shape.elements(), .backward = shape.elements()});
  use_weight(sum, bias);
  return sum;
}

std::int64_t Emitter::even_padding(const Node& node, std::int64_t kernel, std::int64_t stride) const {
  const std::vector<std::int64_t> pads = integers(network_, node, "pads", node.inputs.size());
  if (!text(node, "auto_pad").starts_with("SAME")) {
    if (pads.empty()) return 0;
    if (std::ranges::all_of(pads, [&](std::int64_t pad) { return pad == pads[0]; })) return pads[0];
  }
  const auto& in = network_.dims(node.inputs[0]);
  const auto& out = network_.dims(node.outputs[0]);
  if (in.size() != 4 || out.size() != 4 || (!is_type(node, "Conv") && !is_type(node, "MaxPool"))) return -1;
  // All that a side can be filled up with and still make so many outputs of as many inputs.
  const auto slid = [&](std::size_t axis, std::int64_t padding) {
    return (in[axis] + 2 * padding - kernel) / stride + 1 == out[axis] && in[axis] + 2 * padding >= kernel;
  };
  for (std::int64_t padding = 0; padding < kernel; ++padding) {
    if (slid(2, padding) && slid(3, padding)) return padding;
  }
  return -1;
}

std::optional<Window> Emitter::square_window(const Node& node) const {
  const auto all_are = [](const std::vector<std::int64_t>& values, std::int64_t value) {
    return std::ranges::all_of(values, [&](std::int64_t item) { return item == value; });
  };
  const auto list = [&](const char* name) { return integers(network_, node, name, node.inputs.size()); };
  std::vector<std::int64_t> kernel = list("kernel_shape");
  if (kernel.empty() && node.inputs.size() > 1) {
    const auto& weight = network_.dims(node.inputs[1]);
    if (weight.size() > 2) kernel.assign(weight.begin() + 2, weight.end());
  }
  const std::vector<std::int64_t> strides = list("strides");
  if (kernel.size() != 2 || kernel[0] < 1 || !all_are(kernel, kernel[0])) return std::nullopt;
  const std::int64_t stride = strides.empty() ? 1 : strides[0];
  if (!all_are(strides, stride) || !all_are(list("dilations"), 1)) return std::nullopt;
  const std::int64_t padding = even_padding(node, kernel[0], stride);
  if (kernel[0] > UINT16_MAX || stride < 1 || stride > UINT16_MAX || padding < 0 || padding > UINT16_MAX) {
    return std::nullopt;
  }
  return Window{.kernel = static_cast<std::uint32_t>(kernel[0]),
                .stride = static_cast<std::uint32_t>(stride),
                .padding = static_cast<std::uint32_t>(padding)};
}

namespace {

/// How many pixels of the image all windows have together along an axis: those beyond it are not counted.
std::uint64_t pixels_under_windows(const Network& network, const Node& node, std::size_t axis) {
  const std::int64_t in = network.dims(node.inputs[0])[axis + 2];
  const std::int64_t out = network.dims(node.outputs[0])[axis + 2];
  const auto entry = [&](const char* name, std::size_t at, std::int64_t otherwise) {
    const std::vector<std::int64_t> list = integers(network, node, name, node.inputs.size());
    return at < list.size() ? std::clamp<std::int64_t>(list[at], 0, INT32_MAX) : otherwise;
  };
  const std::int64_t kernel = entry("kernel_shape", axis, 1);
  const std::int64_t stride = entry("strides", axis, 1);
  const std::int64_t apart = std::max<std::int64_t>(entry("dilations", axis, 1), 1);
  std::int64_t before = entry("pads", axis, 0);
  if (const std::string same = text(node, "auto_pad"); same.starts_with("SAME")) {
    const std::int64_t all = std::max<std::int64_t>((out - 1) * stride + (kernel - 1) * apart + 1 - in, 0);
    before = same == "SAME_LOWER" ? (all + 1) / 2 : all / 2;
  }
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (out > most) return static_cast<std::uint64_t>(out) * static_cast<std::uint64_t>(std::min(kernel, in));
  std::uint64_t pixels = 0;
  for (std::int64_t place = 0; place < out; ++place) {
    // Of the window's pixels, which are `apart`, the first one inside the image and the first one behind it.
    const std::int64_t begin = place * stride - before;
    const std::int64_t first = begin < 0 ? (-begin + apart - 1) / apart : 0;
    const std::int64_t end = in <= begin ? 0 : std::min(kernel, (in - begin + apart - 1) / apart);
    if (end > first) pixels += static_cast<std::uint64_t>(end - first);
  }
  return pixels;
}

}  // namespace

bool Emitter::emit_convolution(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& weight = node.inputs[1];
  const std::string bias = node.inputs.size() > 2 ? node.inputs[2] : "";
  if (!network_.is(weight, Role::weight) || (!bias.empty() && !network_.is(bias, Role::weight))) return false;
  const std::vector<std::uint32_t> sizes = sizes_of(weight);
  const Shape out(sizes_of(node.outputs[0]));
  if (sizes.size() < 3 || out.rank() != sizes.size()) return false;
  const auto groups =
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(integer(node, "group", 1), 1, out.channels()));
  const std::optional<Window> window = square_window(node);
  begin(number, weight);
  const std::string name = name_for(number, weight);
  if (window.has_value() && is_type(node, "Conv") && sizes.size() == 4 && !knows(weight)) {
    const OperatorId id =
        builder_->convolution(name, image(node.inputs[0]),
                              {.channels = out.channels(), .window = *window, .groups = groups, .bias = !bias.empty()});
    note({weight});
    if (!bias.empty()) note({bias});
    set(node.outputs[0], id);
    return true;
  }
  // Of other windows the product that it comes to: for each pixel of the larger image the weights of its channels.
  const bool transposed = is_type(node, "ConvTranspose");
  const std::string& pixels = transposed ? node.inputs[0] : node.outputs[0];
  const std::vector<std::uint32_t> at = sizes_of(pixels);
  std::uint64_t rows = at[0];
  for (std::size_t axis = 2; axis < at.size(); ++axis) rows *= at[axis];
  const std::uint64_t per_output = Shape(sizes).elements() / sizes[0];
  const OperatorId id = builder_->matrix_product(
      name, {value_of(node.inputs[0])}, shape_of(node.outputs[0]),
      {.m = rows, .n = sizes[0] / std::min(groups, sizes[0]), .k = per_output, .groups = groups});
  use_weight(id, weight);
  set(node.outputs[0], bias.empty() ? Value(id) : with_bias(number, id, bias));
  return true;
}

bool Emitter::emit_pool(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& x = node.inputs[0];
  const auto& in = network_.dims(x);
  const auto& out = network_.dims(node.outputs[0]);
  const std::string name = name_for(number);
  if (node.type == "GlobalAveragePool" && in.size() == 4) {
    set(node.outputs[0], builder_->average_pool(name, image(x), 1));
    return true;
  }
  const std::optional<Window> window = square_window(node);
  if (window.has_value() && in.size() == 4) {
    const auto slid = [&](std::int64_t size) {
      return (size + 2 * std::int64_t{window->padding} - window->kernel) / window->stride + 1;
    };
    const bool fits = out[2] == slid(in[2]) && out[3] == slid(in[3]);
    const bool even = window->kernel == window->stride && window->padding == 0 && in[2] % window->kernel == 0;
    if (node.type == "MaxPool" && fits) {
      set(node.outputs[0], builder_->max_pool(name, image(x), *window));
      return true;
    }
    if (node.type == "AveragePool" && fits && even && in[2] == in[3]) {
      set(node.outputs[0], builder_->average_pool(name, image(x), static_cast<std::uint32_t>(out[2])));
      return true;
    }
  }
  // One operation for each pixel of the image in a window.
  std::uint64_t area = 1;
  bool is_whole_image = node.type == "AveragePool" && in.size() == 4 && out[2] == 1 && out[3] == 1;
  for (std::size_t axis = 0; axis + 2 < in.size() && !node.type.starts_with("Global"); ++axis) {
    const std::uint64_t pixels = pixels_under_windows(network_, node, axis);
    is_whole_image = is_whole_image && pixels == static_cast<std::uint64_t>(in[axis + 2]);
    area *= pixels;
  }
  if (is_whole_image) {
    set(node.outputs[0], builder_->average_pool(name, image(x), 1));
    return true;
  }
  const auto inputs = static_cast<std::uint64_t>(elements_of(in));
  const auto images = static_cast<std::uint64_t>(in.size() < 2 ? 1 : in[0] * in[1]);
  const std::uint64_t work = node.type.starts_with("Global") ? inputs : area * images;
  emit_vector(number, {.forward = work, .backward = work, .keeps_inputs = node.type.ends_with("MaxPool")});
  return true;
}

bool Emitter::emit_gemm(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string bias = node.inputs.size() > 2 ? node.inputs[2] : "";
  const bool row = !bias.empty() && network_.is(bias, Role::weight) &&
                   elements_of(network_.dims(bias)) == network_.dims(node.outputs[0]).back();
  if (integer(node, "transA", 0) != 0 || !network_.is(node.inputs[0], Role::activation) ||
      !network_.is(node.inputs[1], Role::weight) || (!bias.empty() && !row && !network_.is(bias, Role::constant))) {
    return false;
  }
  emit_linear(number, node.inputs[0], node.inputs[1], row ? bias : "", node.outputs[0], number);
  return true;
}

bool Emitter::emit_matmul(std::size_t number) {
  const Node& node = network_.node(number);
  const std::string& a = node.inputs[0];
  const std::string& b = node.inputs[1];
  const auto& dims_of_a = network_.dims(a);
  const auto& dims_of_b = network_.dims(b);
  if (network_.is(b, Role::weight) && dims_of_b.size() == 2 && dims_of_a.size() >= 2) {
    emit_linear(number, a, b, "", node.outputs[0], number);
    return true;
  }
  if (dims_of_a.size() < 2 || dims_of_b.size() < 2) return false;
  const std::vector<std::uint32_t> left = sizes_of(a);
  const std::vector<std::uint32_t> right = sizes_of(b);
  const std::uint64_t m = left[left.size() - 2];
  const std::uint64_t n = right.back();
  const std::string weight = network_.is(a, Role::weight) ? a : network_.is(b, Role::weight) ? b : "";
  begin(number, weight);
  const OperatorId id = builder_->matrix_product(
      name_for(number, weight), varying(node), shape_of(node.outputs[0]),
      {.m = m,
       .n = n,
       .k = left.back(),
       .groups = static_cast<std::uint64_t>(elements_of(network_.dims(node.outputs[0]))) / (m * n)});
  if (!weight.empty()) use_weight(id, weight);
  set(node.outputs[0], id);
  return true;
}

bool Emitter::emit_einsum(std::size_t number) {
  const Node& node = network_.node(number);
  const auto einsum = Einsum::read(text(node, "equation"), network_.dims_of_inputs(node));
  const auto product = einsum.has_value() ? einsum->product() : std::nullopt;
  if (!product.has_value()) return false;
  const bool first = network_.is(node.inputs[0], Role::weight);
  const std::string weight = first ? node.inputs[0] : network_.is(node.inputs[1], Role::weight) ? node.inputs[1] : "";
  begin(number, weight);
  const OperatorId id =
      builder_->matrix_product(name_for(number, weight), varying(node), shape_of(node.outputs[0]), *product);
  if (!weight.empty()) use_weight(id, weight);
  set(node.outputs[0], id);
  return true;
}

}  // namespace hcclsim::models::onnx
