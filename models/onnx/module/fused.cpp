#include "models/onnx/module/fused.hpp"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hcclsim::models::onnx {
namespace {

namespace lib = ::onnx;
using Integers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

class FusedNodes {
 public:
  explicit FusedNodes(lib::GraphProto& graph) : graph_(graph) {
    for (const auto& tensor : graph.initializer()) dims_[tensor.name()] = {tensor.dims().begin(), tensor.dims().end()};
    const auto note = [&](const lib::ValueInfoProto& value) {
      if (value.type().tensor_type().has_shape())
        ranks_[value.name()] = static_cast<std::size_t>(value.type().tensor_type().shape().dim_size());
    };
    for (const auto& value : graph.value_info()) note(value);
    for (const auto& value : graph.input()) note(value);
  }

  void run() && {
    google::protobuf::RepeatedPtrField<lib::NodeProto> nodes;
    nodes.Swap(graph_.mutable_node());
    for (lib::NodeProto& node : nodes) {
      node_ = &node;
      if (!write_out()) *graph_.add_node() = std::move(node);
    }
    google::protobuf::RepeatedPtrField<lib::ValueInfoProto> outputs;
    outputs.Swap(graph_.mutable_output());
    for (lib::ValueInfoProto& output : outputs) {
      if (!kept_.contains(output.name())) *graph_.add_output() = std::move(output);
    }
  }

 private:
  // Of the node that is written out.
  [[nodiscard]] std::string in(int input) const {
    return input < node_->input_size() ? node_->input(input) : std::string();
  }
  [[nodiscard]] std::string out(int output) const {
    return output < node_->output_size() ? node_->output(output) : std::string();
  }
  [[nodiscard]] const lib::AttributeProto* attribute(const std::string& name) const {
    for (const auto& one : node_->attribute()) {
      if (one.name() == name) return &one;
    }
    return nullptr;
  }
  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t otherwise) const {
    const auto* const found = attribute(name);
    return found == nullptr ? otherwise : found->i();
  }
  [[nodiscard]] float real(const std::string& name, float otherwise) const {
    const auto* const found = attribute(name);
    return found == nullptr ? otherwise : found->f();
  }
  [[nodiscard]] std::size_t rank_of_weight(const std::string& name) const {
    const auto found = dims_.find(name);
    return found == dims_.end() ? 0 : found->second.size();
  }

  // Nodes in its place.
  lib::NodeProto& append(const std::string& type, const Names& inputs, const std::string& output) {
    lib::NodeProto& node = *graph_.add_node();
    node.set_op_type(type);
    node.set_name(node_->name());
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
  }
  static void give(lib::NodeProto& node, const std::string& name, const Integers& values) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(lib::AttributeProto::INTS);
    for (const std::int64_t value : values) attribute.add_ints(value);
  }
  static void give(lib::NodeProto& node, const std::string& name, std::int64_t value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(lib::AttributeProto::INT);
    attribute.set_i(value);
  }
  std::string fresh() { return node_->output(0) + "/part" + std::to_string(parts_++); }
  std::string add(const std::string& type, const Names& inputs, const std::string& output = "") {
    std::string name = output.empty() ? fresh() : output;
    append(type, inputs, name);
    return name;
  }
  std::string along(const std::string& type, const Names& inputs, std::int64_t axis) {
    std::string name = fresh();
    give(append(type, inputs, name), "axis", axis);
    return name;
  }
  std::string constant(const lib::TensorProto& tensor) {
    std::string name = fresh();
    lib::NodeProto& node = append("Constant", {}, name);
    auto& value = *node.add_attribute();
    value.set_name("value");
    value.set_type(lib::AttributeProto::TENSOR);
    *value.mutable_t() = tensor;
    return name;
  }
  std::string integers(const Integers& values, bool scalar = false) {
    lib::TensorProto tensor;
    tensor.set_data_type(lib::TensorProto::INT64);
    if (!scalar) tensor.add_dims(static_cast<std::int64_t>(values.size()));
    for (const std::int64_t value : values) tensor.add_int64_data(value);
    return constant(tensor);
  }
  std::string number(float value) {
    lib::TensorProto tensor;
    tensor.set_data_type(lib::TensorProto::FLOAT);
    tensor.add_float_data(value);
    return constant(tensor);
  }
  std::string turned(const std::string& from, const Integers& order) {
    std::string name = fresh();
    give(append("Transpose", {from}, name), "perm", order);
    return name;
  }
  std::string shaped(const std::string& from, const Integers& sizes, const std::string& output = "") {
    const std::string shape = integers(sizes);
    return add("Reshape", {from, shape}, output);
  }
  Names parts_of(const std::string& from, std::int64_t axis, int count) {
    Names names;
    for (int i = 0; i < count; ++i) names.push_back(fresh());
    lib::NodeProto& node = append("Split", {from}, names[0]);
    for (int i = 1; i < count; ++i) node.add_output(names[static_cast<std::size_t>(i)]);
    give(node, "axis", axis);
    return names;
  }

  /// Positions 0, 1, … of the sequences of a tensor with them in its second axis.
  std::string positions(const std::string& of) {
    const std::string length = along("Gather", {add("Shape", {of}), integers({1}, true)}, 0);
    return add("Range", {integers({0}, true), length, integers({1}, true)});
  }

  void layer_norm(const std::string& x, const std::string& weight, const std::string& bias, const std::string& output) {
    Names inputs{x, weight};
    if (!bias.empty()) inputs.push_back(bias);
    lib::NodeProto& node = append("LayerNormalization", inputs, output);
    give(node, "axis", -1);
  }
  void rms_norm(const std::string& x, const std::string& weight, const std::string& output) {
    const std::string squares = add("Pow", {x, number(2)});
    const std::string mean = fresh();
    give(append("ReduceMean", {squares}, mean), "axes", Integers{-1});
    const std::string root = add("Sqrt", {add("Add", {mean, number(real("epsilon", 1e-5F))})});
    add("Mul", {add("Div", {x, root}), weight}, output);
  }

  /// Sequences × heads × positions × features of a head, of rows with the features of all heads.
  std::string heads_of(const std::string& rows, std::int64_t heads) {
    return turned(shaped(rows, {0, 0, heads, -1}), {0, 2, 1, 3});
  }
  std::string causal_mask(const std::string& of) {
    const std::string row = positions(of);
    const std::string before = add("Less", {shaped(row, {-1, 1}), shaped(row, {1, -1})});
    return add("Where", {before, number(-10000), number(0)});
  }
  /// Turns heads by their positions; `cosines` has a column for half of a head's features.
  std::string rotated(const std::string& heads, const std::string& rows, const std::string& cosines,
                      const std::string& sines) {
    const std::string length = shaped(along("Gather", {add("Shape", {rows}), integers({1}, true)}, 0), {1});
    const auto table = [&](const std::string& cache) {
      const std::string part = add("Slice", {cache, integers({0}), length, integers({0})});
      return along("Concat", {part, part}, -1);
    };
    const Names halves = parts_of(heads, 3, 2);
    const std::string crossed = along("Concat", {add("Neg", {halves[1]}), halves[0]}, 3);
    const std::string straight = add("Mul", {heads, table(cosines)});
    return add("Add", {straight, add("Mul", {crossed, table(sines)})});
  }

  struct Heads {
    std::string query;
    std::string key;
    std::string value;
    std::int64_t heads = 0;
    std::int64_t of_keys = 0;
  };
  /// `rows`: a tensor with the positions of the queries in its second axis.
  void attention(Heads of, const std::string& rows, bool causal) {
    if (of.of_keys != of.heads) {
      const std::int64_t times = of.heads / of.of_keys;
      for (std::string* const part : {&of.key, &of.value}) {
        const std::string apart = shaped(turned(*part, {0, 2, 1, 3}), {0, 0, of.of_keys, 1, -1});
        const std::string tiled = add("Tile", {apart, integers({1, 1, 1, times, 1})});
        *part = turned(shaped(shaped(tiled, {0, 0, -1}), {0, 0, of.heads, -1}), {0, 2, 1, 3});
      }
    }
    const std::string scores = add("MatMul", {of.query, turned(of.key, {0, 1, 3, 2})});
    std::string scaled = add("Mul", {scores, number(0.125F)});
    if (causal) scaled = add("Add", {scaled, causal_mask(rows)});
    const std::string context = add("MatMul", {along("Softmax", {scaled}, -1), of.value});
    shaped(turned(context, {0, 2, 1, 3}), {0, 0, -1}, out(0));
  }
  void keep(int first) {
    for (int i = first; i < node_->output_size(); ++i) kept_.insert(node_->output(i));
  }

  bool write_packed_attention() {
    const std::int64_t heads = integer("num_heads", 0);
    if (heads < 1 || attribute("qkv_hidden_sizes") != nullptr || integer("do_rotary", 0) != 0 || !in(4).empty())
      return false;
    std::string all = add("MatMul", {in(0), in(1)});
    if (!in(2).empty()) all = add("Add", {all, in(2)});
    const Names parts = parts_of(all, -1, 3);
    const Heads of{heads_of(parts[0], heads), heads_of(parts[1], heads), heads_of(parts[2], heads), heads, heads};
    attention(of, in(0), integer("unidirectional", 0) != 0);
    keep(1);
    return true;
  }
  bool write_attention_of_heads() {
    const std::int64_t heads = integer("num_heads", 0);
    if (heads < 1 || in(1).empty() || in(2).empty() || !in(6).empty() || !in(7).empty()) return false;
    Names rows{in(0), in(1), in(2)};
    if (!in(3).empty()) {
      const Names biases = parts_of(in(3), 0, 3);
      for (std::size_t i = 0; i < 3; ++i) rows[i] = add("Add", {rows[i], biases[i]});
    }
    const Heads of{heads_of(rows[0], heads), heads_of(rows[1], heads), heads_of(rows[2], heads), heads, heads};
    attention(of, in(0), integer("unidirectional", 0) != 0);
    keep(1);
    return true;
  }
  bool write_grouped_attention() {
    const std::int64_t heads = integer("num_heads", 0);
    const std::int64_t of_keys = integer("kv_num_heads", 0);
    const bool turns = integer("do_rotary", 0) != 0;
    if (heads < 1 || of_keys < 1 || heads % of_keys != 0 || in(1).empty() || in(2).empty()) return false;
    if (turns && (in(7).empty() || in(8).empty())) return false;
    Heads of{heads_of(in(0), heads), heads_of(in(1), of_keys), heads_of(in(2), of_keys), heads, of_keys};
    if (turns) {
      of.query = rotated(of.query, in(0), in(7), in(8));
      of.key = rotated(of.key, in(0), in(7), in(8));
    }
    attention(of, in(0), true);
    keep(1);
    return true;
  }
  bool write_rotary() {
    const auto table = dims_.find(in(2));
    if (in(3).empty() || table == dims_.end() || table->second.size() != 2) return false;
    const std::int64_t width = 2 * table->second[1];
    if (const std::int64_t turns = integer("rotary_embedding_dim", 0); turns != 0 && turns != width) return false;
    if (ranks_.contains(in(0)) && ranks_.at(in(0)) != 3) return false;
    const std::string heads = turned(shaped(in(0), {0, 0, -1, width}), {0, 2, 1, 3});
    shaped(turned(rotated(heads, in(0), in(2), in(3)), {0, 2, 1, 3}), {0, 0, -1}, out(0));
    return true;
  }
  bool write_embeddings() {
    if (in(2).empty() || in(3).empty() || in(5).empty() || in(6).empty()) return false;
    std::string sum = add("Gather", {in(2), in(0)});
    sum = add("Add", {sum, add("Gather", {in(3), in(8).empty() ? positions(in(0)) : in(8)})});
    if (!in(1).empty() && !in(4).empty()) sum = add("Add", {sum, add("Gather", {in(4), in(1)})});
    if (!out(2).empty()) add("Identity", {sum}, out(2));
    layer_norm(sum, in(5), in(6), out(0));
    return true;
  }
  bool write_sum_and_norm(bool rms) {
    const std::string more = in(rms ? 3 : 4);
    std::string sum = in(0);
    if (!more.empty()) sum = add("Add", {sum, more});
    sum = add("Add", {sum, in(1)}, out(3));
    if (rms) {
      rms_norm(sum, in(2), out(0));
    } else {
      layer_norm(sum, in(2), in(3), out(0));
    }
    return true;
  }
  bool write_product() {
    const bool scales = real("alpha", 1) != 1;
    if (integer("transA", 0) != 0 || integer("transBatchA", 0) != 0 || integer("transBatchB", 0) != 0) return false;
    std::string b = in(1);
    if (integer("transB", 0) != 0) {
      if (rank_of_weight(b) != 2) return false;
      b = turned(b, {1, 0});
    }
    const std::string product = add("MatMul", {in(0), b}, scales ? "" : out(0));
    if (scales) add("Mul", {product, number(real("alpha", 1))}, out(0));
    return true;
  }
  bool write_gelu(const std::string& type) {
    std::string x = in(0);
    if (!in(1).empty()) x = add("Add", {x, in(1)});
    if (type == "QuickGelu") {
      add("Mul", {x, add("Sigmoid", {add("Mul", {x, number(real("alpha", 1.702F))})})}, out(0));
    } else {
      add("Gelu", {x}, out(0));
    }
    return true;
  }
  /// A convolution or Gemm with the curve behind it.
  bool write_with_curve(const std::string& type) {
    const auto* const curve = attribute("activation");
    static const std::set<std::string> curves{"Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid"};
    if (curve == nullptr || !curves.contains(curve->s()) || !in(3).empty()) return false;
    const std::string made = fresh();
    lib::NodeProto& node = append(type, {node_->input().begin(), node_->input().end()}, made);
    for (const auto& one : node_->attribute()) {
      if (!one.name().starts_with("activation")) *node.add_attribute() = one;
    }
    add(curve->s(), {made}, out(0));
    return true;
  }
  /// With noop_with_empty_axes a reduction without axes gives what it reads.
  bool write_no_reduction() {
    if (integer("noop_with_empty_axes", 0) == 0 || attribute("axes") != nullptr) return false;
    const auto given = dims_.find(in(1));
    if (!in(1).empty() && (given == dims_.end() || given->second != Integers{0})) return false;
    add("Identity", {in(0)}, out(0));
    return true;
  }

  bool write_out() {
    const std::string type = node_->op_type();
    if (node_->output_size() == 0 || node_->output(0).empty() || in(0).empty()) return false;
    const bool own = node_->domain().empty() || node_->domain() == "ai.onnx";
    parts_ = 0;
    if (type == "SimplifiedLayerNormalization" && !in(1).empty()) {
      rms_norm(in(0), in(1), out(0));
      return true;
    }
    if (own) return type.starts_with("Reduce") && write_no_reduction();
    if (node_->domain() != "com.microsoft") return false;
    if (type == "LayerNormalization") {
      layer_norm(in(0), in(1), in(2), out(0));
      return true;
    }
    if (type == "SkipLayerNormalization") return write_sum_and_norm(false);
    if (type == "SkipSimplifiedLayerNormalization") return write_sum_and_norm(true);
    if (type == "Gelu" || type == "FastGelu" || type == "BiasGelu" || type == "QuickGelu") return write_gelu(type);
    if (type == "FusedMatMul" || type == "TransposeMatMul") return write_product();
    if (type == "FusedConv") return write_with_curve("Conv");
    if (type == "FusedGemm") return write_with_curve("Gemm");
    if (type == "Attention") return write_packed_attention();
    if (type == "MultiHeadAttention") return write_attention_of_heads();
    if (type == "GroupQueryAttention") return write_grouped_attention();
    if (type == "RotaryEmbedding") return write_rotary();
    if (type == "EmbedLayerNormalization") return write_embeddings();
    return false;
  }

  lib::GraphProto& graph_;
  const lib::NodeProto* node_ = nullptr;
  int parts_ = 0;
  std::map<std::string, Integers> dims_;        ///< of initializers
  std::map<std::string, std::size_t> ranks_{};  ///< of tensors whose shape the file says
  std::set<std::string> kept_;                  ///< keys and values for the next token
};

}  // namespace

void write_fused_out(lib::ModelProto& model) { FusedNodes(*model.mutable_graph()).run(); }

}  // namespace hcclsim::models::onnx
