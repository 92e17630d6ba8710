#include "tests/models/onnx/zoo_writer.hpp"

#include <fmt/format.h>

#include <map>
#include <stdexcept>

#include "tests/models/onnx/wire.hpp"

namespace hcclsim::models::onnx {
namespace {

using enum OperatorKind;

class ZooWriter {
 public:
  ZooWriter(const Graph& graph, Style style) : graph_(graph), decomposed_(style == Style::decomposed) {}

  std::string run() {
    for (OperatorId id = 0; id < graph_.operators.size(); ++id) write(id);
    return writer_.finish();
  }

 private:
  [[nodiscard]] std::string in(const Operator& op, std::size_t input = 0) const {
    return names_.at(op.inputs.at(input).op);
  }
  [[nodiscard]] const Parameter& parameter(const Operator& op, std::size_t number) const {
    return graph_.parameters[op.parameters.at(number)];
  }
  std::string weight(const Operator& op, std::size_t number) {
    const Parameter& of = parameter(op, number);
    return writer_.weight(of.name, {of.shape.begin(), of.shape.end()});
  }
  std::string list(const std::vector<std::int64_t>& values) {
    std::string name = "list";
    for (const std::int64_t value : values) name += "_" + std::to_string(value);
    return writer_.integers(name, values);
  }
  std::string scalar(float value) { return writer_.real("scalar_" + std::to_string(value), value); }
  std::string node(const char* type, const Operator& op, const char* what, const std::vector<std::string>& inputs,
                   const std::vector<Attr>& attributes = {}) {
    return writer_.node(type, op.name + "/" + what, inputs, attributes);
  }
  [[nodiscard]] std::int64_t rows_of(const Operator& op) const {
    return op.shape().batch() / static_cast<std::uint32_t>(graph_.batch());
  }
  [[nodiscard]] bool is_sequence(OperatorId id) const { return sequences_.at(id); }

  /// "0, 0, heads, width" as a constant, or from the shape of a tensor.
  std::string with_heads(const Operator& op, const std::string& x, const std::string& what, std::int64_t heads,
                         std::int64_t width) {
    if (!decomposed_) return list({0, 0, heads, width});
    const std::string name = op.name + "/" + what;
    const std::string shape = writer_.node("Shape", name + "_shape", {x});
    std::vector<std::string> parts;
    for (const std::int64_t axis : {0, 1}) {
      const std::string suffix = std::to_string(axis);
      const std::string size =
          writer_.node("Gather", fmt::format("{}_size{}", name, suffix),
                       {shape, writer_.integers("axis" + suffix, {axis}, true)}, {attr("axis", 0)});
      parts.push_back(writer_.node("Unsqueeze", fmt::format("{}_unsqueeze{}", name, suffix), {size, list({0})}));
    }
    parts.push_back(list({heads}));
    parts.push_back(list({width}));
    return writer_.node("Concat", name + "_sizes", parts, {attr("axis", 0)});
  }

  std::string heads_of(const Operator& op, const std::string& x, const std::string& what, std::int64_t heads,
                       std::int64_t width) {
    const std::string shape = with_heads(op, x, what, heads, width);
    const std::string split = writer_.node("Reshape", op.name + "/" + what + "_reshape", {x, shape});
    return writer_.node("Transpose", op.name + "/" + what + "_transpose", {split}, {attrs("perm", {0, 2, 1, 3})});
  }

  std::string attention_of(const Operator& op) {
    const std::int64_t heads = op.heads;
    const std::int64_t kv_heads = op.kv_heads;
    const std::int64_t width = value_width(op);
    const std::int64_t length = op.sequence;
    std::vector<std::string> parts;
    if (op.inputs.size() == 1) {
      parts = writer_.nodes("Split", op.name + "/split",
                            {in(op), list({heads * width, kv_heads * width, kv_heads * width})}, 3, {attr("axis", 2)});
    } else {
      parts = {in(op, 0), in(op, 1), in(op, 2)};
    }
    const std::string query = by_heads(op, 0, parts[0], "query", heads, width);
    std::string key = by_heads(op, 1, parts[1], "key", kv_heads, width);
    std::string value = by_heads(op, 2, parts[2], "value", kv_heads, width);
    if (kv_heads != heads) {
      for (std::string* const shared : {&key, &value}) {
        const std::string what = shared == &key ? "key" : "value";
        const std::string apart = writer_.node("Unsqueeze", op.name + "/" + what + "_apart", {*shared, list({2})});
        const std::string wide = writer_.node("Expand", op.name + "/" + what + "_wide",
                                              {apart, list({1, kv_heads, heads / kv_heads, length, width})});
        *shared = writer_.node("Reshape", op.name + "/" + what + "_joined", {wide, list({0, heads, length, width})});
      }
    }
    const std::string turned = node("Transpose", op, "key_turned", {key}, {attrs("perm", {0, 1, 3, 2})});
    std::string scores;
    if (decomposed_) {
      const std::string scaled = node("Mul", op, "scaled_query", {query, scalar(0.125F)});
      scores = node("MatMul", op, "scores", {scaled, turned});
    } else {
      scores = node("Div", op, "scale", {node("MatMul", op, "scores", {query, turned}), scalar(8)});
    }
    if (op.causal) {
      const std::string mask = writer_.weight("causal_mask", {1, 1, length, length});
      scores = node("Add", op, "mask", {scores, mask});
    }
    std::string p = node("Softmax", op, "softmax", {scores}, {attr("axis", -1)});
    if (op.drop_rate > 0) p = node("Dropout", op, "dropout", {p, scalar(op.drop_rate)});
    const std::string context = node("MatMul", op, "context", {p, value});
    const std::string joined = node("Transpose", op, "context_transpose", {context}, {attrs("perm", {0, 2, 1, 3})});
    return node("Reshape", op, "context_reshape", {joined, list({0, 0, heads * width})});
  }

  /// Rotary positions have left heads in an axis of their own.
  std::string by_heads(const Operator& op, std::size_t input, const std::string& x, const char* what,
                       std::int64_t heads, std::int64_t width) {
    const bool turned = op.inputs.size() == 3 && graph_.operators[op.inputs[input].op].kind == rotary;
    return turned ? x : heads_of(op, x, what, heads, width);
  }

  std::string rotary_of(const Operator& op) {
    const std::int64_t width = op.shape().channels() / op.heads;
    const std::string t = heads_of(op, in(op), "heads", op.heads, width);
    const std::string first = node("Slice", op, "first", {t, list({0}), list({width / 2}), list({3}), list({1})});
    const std::string second =
        node("Slice", op, "second", {t, list({width / 2}), list({INT64_MAX}), list({3}), list({1})});
    const std::string turned =
        node("Concat", op, "turned", {node("Neg", op, "negated", {second}), first}, {attr("axis", -1)});
    const std::string cosines = writer_.weight("cosines", {1, 1, op.sequence, width});
    const std::string sines = writer_.weight("sines", {1, 1, op.sequence, width});
    return node("Add", op, "sum",
                {node("Mul", op, "straight", {t, cosines}), node("Mul", op, "across", {turned, sines})});
  }

  std::string linear_of(const Operator& op) {
    const OperatorId from = op.inputs[0].op;
    const Parameter& of = parameter(op, 0);
    if (!is_sequence(from)) {
      std::vector<std::string> inputs{in(op), weight(op, 0)};
      if (op.parameters.size() > 1) inputs.push_back(weight(op, 1));
      return node("Gemm", op, "gemm", inputs, {attr("transB", 1)});
    }
    const bool tied = graph_.operators[of.owner].kind == token_embedding;
    const std::string factor = tied ? node("Transpose", op, "table", {of.name}, {attrs("perm", {1, 0})})
                                    : writer_.weight(of.name, {of.shape[1], of.shape[0]});
    const std::string product = node("MatMul", op, "product", {in(op), factor});
    if (op.parameters.size() == 1) return product;
    return node("Add", op, "bias",
                decomposed_ ? std::vector{weight(op, 1), product} : std::vector{product, weight(op, 1)});
  }

  std::string gelu_of(const Operator& op) {
    const std::string x = in(op);
    if (decomposed_) {
      const std::string cube =
          node("Mul", op, "scaled_cube", {node("Pow", op, "cube", {x, scalar(3)}), scalar(0.044715F)});
      const std::string inner = node("Mul", op, "inner", {node("Add", op, "sum", {x, cube}), scalar(0.797885F)});
      const std::string gate = node("Add", op, "gate", {node("Tanh", op, "tanh", {inner}), scalar(1)});
      return node("Mul", op, "product", {node("Mul", op, "half", {x, scalar(0.5F)}), gate});
    }
    const std::string erf = node("Erf", op, "erf", {node("Div", op, "quotient", {x, scalar(1.414214F)})});
    const std::string product = node("Mul", op, "product", {x, node("Add", op, "gate", {erf, scalar(1)})});
    return node("Mul", op, "half", {product, scalar(0.5F)});
  }

  std::string layer_norm_of(const Operator& op) {
    if (!decomposed_)
      return node("LayerNormalization", op, "norm", {in(op), weight(op, 0), weight(op, 1)}, {attr("axis", -1)});
    const std::string mean = node("ReduceMean", op, "mean", {in(op)}, {attrs("axes", {-1})});
    const std::string centred = node("Sub", op, "centred", {in(op), mean});
    const std::string squares = node("Pow", op, "squares", {centred, scalar(2)});
    const std::string variance = node("ReduceMean", op, "variance", {squares}, {attrs("axes", {-1})});
    const std::string root = node("Sqrt", op, "root", {node("Add", op, "epsilon", {variance, scalar(1e-5F)})});
    const std::string scaled = node("Mul", op, "scaled", {node("Div", op, "quotient", {centred, root}), weight(op, 0)});
    return node("Add", op, "shifted", {scaled, weight(op, 1)});
  }

  std::string rms_norm_of(const Operator& op) {
    const std::string squares = node("Pow", op, "squares", {in(op), scalar(2)});
    const std::string mean = node("ReduceMean", op, "mean", {squares}, {attrs("axes", {-1})});
    const std::string root = node("Sqrt", op, "root", {node("Add", op, "epsilon", {mean, scalar(1e-5F)})});
    if (!decomposed_) return node("Mul", op, "weighted", {weight(op, 0), node("Div", op, "quotient", {in(op), root})});
    const std::string inverse = node("Div", op, "inverse", {scalar(1), root});
    return node("Mul", op, "weighted", {weight(op, 0), node("Mul", op, "scaled", {in(op), inverse})});
  }

  std::string batch_norm_of(const Operator& op) {
    const std::int64_t channels = op.shape().channels();
    return node("BatchNormalization", op, "norm",
                {in(op), weight(op, 0), weight(op, 1), writer_.weight(op.name + ".running_mean", {channels}),
                 writer_.weight(op.name + ".running_var", {channels})});
  }

  std::vector<Attr> window_of(const Operator& op) {
    const std::int64_t kernel = op.window.kernel;
    const std::int64_t stride = op.window.stride;
    const std::int64_t padding = op.window.padding;
    return {attrs("kernel_shape", {kernel, kernel}), attrs("strides", {stride, stride}),
            attrs("pads", {padding, padding, padding, padding})};
  }

  std::string positions_of(const Operator& op) {
    std::string ids;
    if (op.kind == segment_embedding) {
      ids = writer_.node("ConstantOfShape", op.name + "/segments", {list({1, op.sequence})});
      ids = writer_.node("Cast", op.name + "/ids", {ids}, {attr("to", 7)});
    } else if (decomposed_) {
      const std::string shape = writer_.node("Shape", op.name + "/shape", {in(op)});
      const std::string length =
          writer_.node("Gather", op.name + "/length", {shape, writer_.integers("axis1", {1}, true)});
      ids = writer_.node("Range", op.name + "/ids",
                         {writer_.integers("zero", {0}, true), length, writer_.integers("one", {1}, true)});
    } else {
      std::vector<std::int64_t> all(op.sequence);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
      ids = writer_.integers(op.name + ".ids", all);
    }
    return node("Add", op, "sum", {in(op), node("Gather", op, "rows", {weight(op, 0), ids}, {attr("axis", 0)})});
  }

  std::string select_of(const Operator& op) {
    if (op.sequence == 1 && !decomposed_) {
      const std::string row =
          node("Gather", op, "row", {in(op), writer_.integers("axis0", {0}, true)}, {attr("axis", 1)});
      return node("Unsqueeze", op, "sequence", {row, list({1})});
    }
    return node("Slice", op, "rows", {in(op), list({0}), list({op.sequence}), list({1}), list({1})});
  }

  void write(OperatorId id) {
    const Operator& op = graph_.operators[id];
    const bool of_sequence = !op.inputs.empty() && is_sequence(op.inputs[0].op);
    sequences_[id] = of_sequence || op.kind == patches || graph_.input_kind == InputKind::tokens;
    names_[id] = written(op);
  }

  std::string written(const Operator& op) {
    switch (op.kind) {
      case input:
        if (graph_.input_kind == InputKind::tokens) {
          writer_.input("input", 7, {"batch", op.shape().channels()});
        } else {
          writer_.input("input", 1, {"batch", op.shape().channels(), op.shape().height(), op.shape().width()});
        }
        return "input";
      case convolution: {
        std::vector<std::string> inputs{in(op), weight(op, 0)};
        if (op.parameters.size() > 1) inputs.push_back(weight(op, 1));
        std::vector<Attr> attributes = window_of(op);
        attributes.push_back(attr("group", op.groups));
        return node("Conv", op, "conv", inputs, attributes);
      }
      case batch_norm:
        return batch_norm_of(op);
      case relu:
        return node("Relu", op, "relu", {in(op)});
      case relu6:
        return node("Clip", op, "clip", {in(op), scalar(0), scalar(6)});
      case max_pool:
        return node("MaxPool", op, "pool", {in(op)}, window_of(op));
      case average_pool:
        if (op.shape() == graph_.input_of(op)) return in(op);
        return node("GlobalAveragePool", op, "pool", {in(op)});
      case flatten:
        return node("Flatten", op, "flatten", {in(op)});
      case add:
        return node("Add", op, "add", {in(op, 0), in(op, 1)});
      case linear:
        return linear_of(op);
      case dropout:
        return node("Dropout", op, "dropout", {in(op), scalar(op.drop_rate)});
      case gelu:
        return gelu_of(op);
      case tanh:
        return node("Tanh", op, "tanh", {in(op)});
      case swiglu: {
        const std::string gate = node("Mul", op, "silu", {in(op, 0), node("Sigmoid", op, "sigmoid", {in(op, 0)})});
        return node("Mul", op, "product", {gate, in(op, 1)});
      }
      case layer_norm:
        return layer_norm_of(op);
      case rms_norm:
        return rms_norm_of(op);
      case token_embedding:
        return node("Gather", op, "rows", {weight(op, 0), in(op)}, {attr("axis", 0)});
      case position_embedding:
      case segment_embedding:
        if (graph_.input_kind == InputKind::images) return node("Add", op, "sum", {in(op), position_table(op)});
        return positions_of(op);
      case class_token: {
        const std::int64_t features = op.shape().channels();
        const std::string token = writer_.weight(parameter(op, 0).name, {1, 1, features});
        const std::string batch = writer_.node("Shape", op.name + "/shape", {in(op)});
        const std::string size = writer_.node("Slice", op.name + "/batch", {batch, list({0}), list({1})});
        const std::string sizes =
            writer_.node("Concat", op.name + "/sizes", {size, list({1, features})}, {attr("axis", 0)});
        return node("Concat", op, "joined", {node("Expand", op, "token", {token, sizes}), in(op)}, {attr("axis", 1)});
      }
      case patches: {
        const std::int64_t channels = op.shape().channels();
        const std::string pixels = node("Reshape", op, "pixels", {in(op), list({0, channels, -1})});
        return node("Transpose", op, "rows", {pixels}, {attrs("perm", {0, 2, 1})});
      }
      case rotary:
        return rotary_of(op);
      case attention:
        return attention_of(op);
      case select_rows:
        return select_of(op);
      case loss:
        for (std::size_t i = 0; i < op.inputs.size(); ++i) {
          const std::string output = "logits" + std::to_string(i);
          writer_.node_to(output, "Identity", output + "/identity", {in(op, i)});
          writer_.output(output);
        }
        return {};
      default:
        throw std::logic_error("not written: " + op.name);
    }
  }

  std::string position_table(const Operator& op) {
    return writer_.weight(parameter(op, 0).name, {1, rows_of(op), op.shape().channels()});
  }

  const Graph& graph_;
  bool decomposed_;
  ModelWriter writer_;
  std::map<OperatorId, std::string> names_;
  std::map<OperatorId, bool> sequences_;
};

}  // namespace

std::string write_zoo_graph(const Graph& graph, Style style) { return ZooWriter(graph, style).run(); }

}  // namespace hcclsim::models::onnx
