#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstring>
#include <exception>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/error.hpp"
#include "models/onnx/model_file.hpp"
#include "models/onnx/module/branches.hpp"
#include "models/onnx/module/functions.hpp"
#include "models/onnx/module/fused.hpp"
#include "models/onnx/module/thin_file.hpp"

/// The part of the importer that includes libonnx.
namespace hcclsim::models::onnx {
namespace {

namespace lib = ::onnx;

template <typename Type>
std::vector<double> from_raw(const std::string& raw, std::size_t count) {
  if (raw.size() != count * sizeof(Type)) return {};
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    Type value{};
    std::memcpy(&value, raw.data() + i * sizeof(Type), sizeof(Type));
    values[i] = static_cast<double>(value);
  }
  return values;
}

template <typename Field>
std::vector<double> from_field(const Field& field, std::size_t count) {
  if (static_cast<std::size_t>(field.size()) != count) return {};
  return {field.begin(), field.end()};
}

/// IEEE 754: one bit of sign, five of exponent.
double of_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// The upper half of a float.
double of_brain_half(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
}

/// Numbers of 16 bits, of which `widened` makes what they stand for.
std::vector<double> from_halves(const lib::TensorProto& tensor, std::size_t count, double (*widened)(std::uint16_t)) {
  std::vector<double> values = tensor.has_raw_data() ? from_raw<std::uint16_t>(tensor.raw_data(), count)
                                                     : from_field(tensor.int32_data(), count);
  for (double& value : values) value = widened(static_cast<std::uint16_t>(value));
  return values;
}

std::vector<double> values_of(const lib::TensorProto& tensor, std::size_t count) {
  const bool raw = tensor.has_raw_data();
  switch (tensor.data_type()) {
    case lib::TensorProto::FLOAT:
      return raw ? from_raw<float>(tensor.raw_data(), count) : from_field(tensor.float_data(), count);
    case lib::TensorProto::DOUBLE:
      return raw ? from_raw<double>(tensor.raw_data(), count) : from_field(tensor.double_data(), count);
    case lib::TensorProto::INT64:
      return raw ? from_raw<std::int64_t>(tensor.raw_data(), count) : from_field(tensor.int64_data(), count);
    case lib::TensorProto::INT32:
      return raw ? from_raw<std::int32_t>(tensor.raw_data(), count) : from_field(tensor.int32_data(), count);
    case lib::TensorProto::FLOAT16:
      return from_halves(tensor, count, of_half);
    case lib::TensorProto::BFLOAT16:
      return from_halves(tensor, count, of_brain_half);
    case lib::TensorProto::INT8:
      return raw ? from_raw<std::int8_t>(tensor.raw_data(), count) : from_field(tensor.int32_data(), count);
    case lib::TensorProto::BOOL:
    case lib::TensorProto::UINT8:
      return raw ? from_raw<std::uint8_t>(tensor.raw_data(), count) : from_field(tensor.int32_data(), count);
    default:
      return {};
  }
}

Constant constant_of(const lib::TensorProto& tensor) {
  Constant constant{.element_type = tensor.data_type(), .dims = {tensor.dims().begin(), tensor.dims().end()}};
  std::int64_t count = 1;
  for (const std::int64_t size : constant.dims) {
    if (size < 0) return constant;
    count = size == 0 ? 0 : (count > max_values ? count : count * size);
  }
  if (tensor.data_location() == lib::TensorProto::EXTERNAL || count > max_values) return constant;
  constant.values = values_of(tensor, static_cast<std::size_t>(count));
  constant.known = constant.values.size() == static_cast<std::size_t>(count);
  return constant;
}

TensorType type_of(const lib::TypeProto& type) {
  TensorType result;
  if (!type.has_tensor_type()) return result;
  result.element_type = type.tensor_type().elem_type();
  result.has_shape = type.tensor_type().has_shape();
  for (const auto& dim : type.tensor_type().shape().dim()) {
    result.dims.push_back(dim.has_dim_value() ? dim.dim_value() : -1);
    result.symbols.push_back(dim.has_dim_param() ? dim.dim_param() : std::string());
  }
  return result;
}

lib::TypeProto proto_of(const TensorType& type) {
  lib::TypeProto proto;
  proto.mutable_tensor_type()->set_elem_type(type.element_type);
  if (!type.has_shape) return proto;
  proto.mutable_tensor_type()->mutable_shape();
  for (const std::int64_t size : type.dims) {
    auto* const dim = proto.mutable_tensor_type()->mutable_shape()->add_dim();
    if (size >= 0) dim->set_dim_value(size);
  }
  return proto;
}

/// Types that proto_of() writes; inference asks for no values of others.
bool is_written(int element_type) {
  return element_type == lib::TensorProto::FLOAT || element_type == lib::TensorProto::DOUBLE ||
         element_type == lib::TensorProto::INT64 || element_type == lib::TensorProto::INT32 ||
         element_type == lib::TensorProto::BOOL;
}

lib::TensorProto proto_of(const Constant& constant) {
  lib::TensorProto proto;
  proto.set_data_type(constant.element_type);
  for (const std::int64_t size : constant.dims) proto.add_dims(size);
  for (const double value : constant.values) {
    switch (constant.element_type) {
      case lib::TensorProto::FLOAT:
        proto.add_float_data(static_cast<float>(value));
        break;
      case lib::TensorProto::DOUBLE:
        proto.add_double_data(value);
        break;
      case lib::TensorProto::INT64:
        proto.add_int64_data(value >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(value));
        break;
      default:
        proto.add_int32_data(static_cast<std::int32_t>(value));
    }
  }
  return proto;
}

Attribute attribute_of(const lib::AttributeProto& from) {
  Attribute attribute;
  switch (from.type()) {
    case lib::AttributeProto::INT:
      attribute.ints.push_back(from.i());
      break;
    case lib::AttributeProto::INTS:
      attribute.ints.assign(from.ints().begin(), from.ints().end());
      break;
    case lib::AttributeProto::FLOAT:
      attribute.floats.push_back(static_cast<double>(from.f()));
      break;
    case lib::AttributeProto::FLOATS:
      attribute.floats.assign(from.floats().begin(), from.floats().end());
      break;
    case lib::AttributeProto::STRING:
      attribute.texts.push_back(from.s());
      break;
    case lib::AttributeProto::TENSOR:
      attribute.tensor = constant_of(from.t());
      break;
    default:
      break;
  }
  return attribute;
}

/// Adds the tensors that a graph inside a graph reads and does not make.
void add_outside(const lib::GraphProto& graph, std::set<std::string> made, std::vector<std::string>& outside) {
  for (const auto& value : graph.input()) made.insert(value.name());
  for (const auto& tensor : graph.initializer()) made.insert(tensor.name());
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !made.contains(name) && std::ranges::find(outside, name) == outside.end())
      outside.push_back(name);
  };
  for (const auto& node : graph.node()) {
    std::ranges::for_each(node.input(), read);
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) add_outside(attribute.g(), made, outside);
    }
    made.insert(node.output().begin(), node.output().end());
  }
  for (const auto& value : graph.output()) read(value.name());
}

/// What the graph does not say of the outputs of an If, its branches may.
void add_types_of_branch(const lib::GraphProto& branch, const Node& node, ModelFile& file) {
  const auto outputs = std::min(node.outputs.size(), static_cast<std::size_t>(branch.output_size()));
  for (std::size_t i = 0; i < outputs; ++i) {
    TensorType& type = file.types[node.outputs[i]];
    if (!type.has_shape) type = type_of(branch.output(static_cast<int>(i)).type());
  }
}

ModelFile file_of(const lib::ModelProto& model) {
  ModelFile file;
  for (const auto& set : model.opset_import()) {
    file.operator_sets[set.domain() == "ai.onnx" ? "" : set.domain()] = set.version();
  }
  const lib::GraphProto& graph = model.graph();
  for (const auto& tensor : graph.initializer()) file.initializers[tensor.name()] = constant_of(tensor);
  for (const auto& value : graph.value_info()) file.types[value.name()] = type_of(value.type());
  for (const auto& value : graph.output()) {
    file.types[value.name()] = type_of(value.type());
    file.outputs.push_back(value.name());
  }
  for (const auto& value : graph.input()) {
    if (file.initializers.contains(value.name())) continue;
    file.types[value.name()] = type_of(value.type());
    file.inputs.push_back(value.name());
  }
  for (const auto& from : graph.node()) {
    Node& node = file.nodes.emplace_back();
    node.name = from.name();
    node.type = from.op_type();
    node.domain = from.domain() == "ai.onnx" ? "" : from.domain();
    node.inputs.assign(from.input().begin(), from.input().end());
    node.outputs.assign(from.output().begin(), from.output().end());
    for (const auto& attribute : from.attribute()) {
      node.attributes[attribute.name()] = attribute_of(attribute);
      node.holds_graph = node.holds_graph || attribute.has_g() || attribute.graphs_size() > 0;
      if (!attribute.has_g()) continue;
      add_outside(attribute.g(), {}, node.inputs);
      if (node.type == "If") add_types_of_branch(attribute.g(), node, file);
    }
  }
  return file;
}

/// The newest set of ONNX's own operators that the library knows.
std::int64_t newest_set() { return lib::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

/// The newest set that is read: what it has and the library's newest does not are operators that are refused by name.
constexpr std::int64_t newest_read = 21;

class LibraryModel final : public OpenModel {
 public:
  LibraryModel(std::string path, lib::ModelProto model)
      : path_(std::move(path)), model_(std::move(model)), file_(file_of(model_)) {}

  [[nodiscard]] const ModelFile& file() const override { return file_; }

  [[nodiscard]] std::string trouble(std::size_t number) const override {
    const lib::OpSchema* const schema = schema_of(number);
    if (schema == nullptr) return {};
    const std::vector<KnownInput> unknown(file_.nodes[number].inputs.size());
    const lib::NodeProto node = as_in_library(*schema, number, unknown);
    for (int i = 0; i < std::min(schema->min_input(), node.input_size()); ++i) {
      if (node.input(i).empty()) return "its input " + std::to_string(i) + " is left out";
    }
    try {
      schema->Verify(node);
    } catch (const std::exception& error) {
      return error.what();
    }
    return {};
  }

  [[nodiscard]] bool take_branch(std::size_t number, bool condition) override {
    if (!onnx::take_branch(*model_.mutable_graph(), static_cast<int>(number), condition)) return false;
    expand_functions(path_, model_);
    write_fused_out(model_);
    file_ = file_of(model_);
    return true;
  }

  [[nodiscard]] Inference infer(std::size_t number, std::span<const KnownInput> inputs) override {
    Inference inference;
    if (file_.nodes[number].holds_graph) return inference;
    if (is_new_curve(file_.nodes[number]) && inputs[0].type != nullptr) {
      return {.known = true, .outputs = {*inputs[0].type}};
    }
    const lib::OpSchema* const schema = schema_of(number);
    if (schema == nullptr) return inference;
    const bool by_body = !schema->has_type_and_shape_inference_function() && schema->HasFunction();
    if (!by_body && !schema->has_type_and_shape_inference_function()) return inference;
    inference.known = true;
    // The library reads the second size of such a weight unasked.
    if (file_.nodes[number].type == "ConvTranspose" && inputs.size() > 1 && inputs[0].type != nullptr &&
        inputs[1].type != nullptr && inputs[0].type->dims.size() != inputs[1].type->dims.size()) {
      inference.trouble = "its input and its weight have different numbers of axes";
      return inference;
    }
    try {
      infer_with(*schema, as_in_library(*schema, number, inputs), inputs, inference);
    } catch (const std::exception& error) {
      inference.trouble = error.what();
    }
    return inference;
  }

 private:
  [[nodiscard]] std::int64_t set_of(const std::string& domain) const {
    const auto set = file_.operator_sets.find(domain);
    return set == file_.operator_sets.end() ? 0 : set->second;
  }
  [[nodiscard]] bool is_newer(std::size_t number) const {
    return file_.nodes[number].domain.empty() && set_of("") > newest_set();
  }
  /// nullptr: the library does not know the operator.
  [[nodiscard]] const lib::OpSchema* schema_of(std::size_t number) const {
    const Node& node = file_.nodes[number];
    std::int64_t set = is_newer(number) ? newest_set() : set_of(node.domain);
    if (set == 0) return nullptr;
    // Optimizers write the norm in older sets, too.
    if (node.domain.empty() && node.type == "LayerNormalization") set = std::max<std::int64_t>(set, 17);
    const lib::OpSchema* const schema = lib::OpSchemaRegistry::Schema(node.type, static_cast<int>(set), node.domain);
    return schema == nullptr || schema->Deprecated() ? nullptr : schema;
  }
  /// The node, as the newest set that the library knows has it.
  [[nodiscard]] lib::NodeProto as_in_library(const lib::OpSchema& schema, std::size_t number,
                                             std::span<const KnownInput> inputs) const {
    const lib::NodeProto& written = model_.graph().node(static_cast<int>(number));
    return is_newer(number) ? as_in_newest(schema, written, inputs) : written;
  }
  /// Curves of sets that are newer than the library. Optimizers write GELU in older sets too.
  [[nodiscard]] bool is_new_curve(const Node& node) const {
    return node.domain.empty() && node.inputs.size() == 1 && node.outputs.size() == 1 &&
           (node.type == "Gelu" || (node.type == "Mish" && set_of("") >= 18));
  }

  /// Whether an attribute that newer sets have leaves a node's shapes what they were without it.
  static bool is_left_out(const lib::AttributeProto& attribute) {
    return attribute.name() == "saturate" || attribute.name() == "num_outputs" || attribute.name() == "antialias" ||
           attribute.name() == "noop_with_empty_axes" ||
           (attribute.name() == "keep_aspect_ratio_policy" && attribute.s() == "stretch");
  }

  /// A node of a set that is newer than the library, as the newest set that it knows has it: axes of reductions are an
  /// attribute.
  static lib::NodeProto as_in_newest(const lib::OpSchema& schema, const lib::NodeProto& written,
                                     std::span<const KnownInput> inputs) {
    lib::NodeProto node = written;
    node.clear_attribute();
    for (const auto& attribute : written.attribute()) {
      if (schema.attributes().contains(attribute.name()) || !is_left_out(attribute)) *node.add_attribute() = attribute;
    }
    if (schema.max_input() == 1 && node.input_size() == 2 && schema.attributes().contains("axes")) {
      if (inputs[1].constant != nullptr && !inputs[1].constant->values.empty()) {
        auto* const axes = node.add_attribute();
        axes->set_name("axes");
        axes->set_type(lib::AttributeProto::INTS);
        for (const double axis : inputs[1].constant->values) axes->add_ints(static_cast<std::int64_t>(axis));
      }
      node.mutable_input()->RemoveLast();
    }
    return node;
  }

  static void infer_with(const lib::OpSchema& schema, lib::NodeProto node, std::span<const KnownInput> inputs,
                         Inference& inference) {
    std::unordered_map<std::string, lib::TypeProto> types;
    std::unordered_map<std::string, lib::TypeProto*> types_by_name;
    std::unordered_map<std::string, lib::TensorProto> tensors;
    std::unordered_map<std::string, const lib::TensorProto*> tensors_by_name;
    for (std::size_t i = 0; i < static_cast<std::size_t>(node.input_size()); ++i) {
      const std::string& name = node.input(static_cast<int>(i));
      if (inputs[i].type != nullptr) types[name] = proto_of(*inputs[i].type);
      if (inputs[i].constant != nullptr && is_written(inputs[i].constant->element_type))
        tensors[name] = proto_of(*inputs[i].constant);
    }
    for (auto& [name, type] : types) types_by_name[name] = &type;
    for (const auto& [name, tensor] : tensors) tensors_by_name[name] = &tensor;
    lib::shape_inference::InferenceContextImpl context(node, types_by_name, tensors_by_name, {});
    if (schema.has_type_and_shape_inference_function()) {
      schema.GetTypeAndShapeInferenceFunction()(context);
    } else {
      lib::shape_inference::InferShapeForFunctionNode(*schema.GetFunction(), lib::OpSchemaRegistry::Instance(),
                                                      context);
    }
    for (int i = 0; i < node.output_size(); ++i) {
      inference.outputs.push_back(type_of(*context.getOutputType(static_cast<std::size_t>(i))));
    }
  }

  std::string path_;
  lib::ModelProto model_;
  ModelFile file_;
};

class Module final : public OnnxModule {
 public:
  [[nodiscard]] std::unique_ptr<OpenModel> open(const std::string& path) override {
    const std::optional<std::string> bytes = read_without_weights(path);
    lib::ModelProto model;
    {
      const google::protobuf::LogSilencer silencer;
      if (!bytes.has_value() || bytes->size() > INT_MAX || !model.ParseFromString(*bytes)) {
        bad_input("onnx", "{}: is no file of ONNX, or only a part of one", path);
      }
    }
    if (!model.has_graph() || model.graph().node().empty()) {
      bad_input("onnx", "{}: is no file of ONNX: it has no graph with nodes", path);
    }
    expand_functions(path, model);
    write_fused_out(model);
    auto open = std::make_unique<LibraryModel>(path, std::move(model));
    const auto& sets = open->file().operator_sets;
    const auto set = sets.find("");
    const auto is_own = [](const Node& node) { return node.domain.empty(); };
    if (set == sets.end() && std::ranges::any_of(open->file().nodes, is_own)) {
      bad_input("onnx", "{}: does not say which operator set of ONNX its nodes are of", path);
    }
    if (set != sets.end() && (set->second < 1 || set->second > newest_read)) {
      bad_input("onnx", "{}: operator set {} of ONNX; accepted: 1 to {}. Export with opset_version={}", path,
                set->second, newest_read, newest_set());
    }
    return open;
  }
};

}  // namespace
}  // namespace hcclsim::models::onnx

/// What onnx_module() looks for in the library.
extern "C" hcclsim::models::onnx::OnnxModule* hcclsim_onnx_module() {
  static hcclsim::models::onnx::Module module;
  return &module;
}
