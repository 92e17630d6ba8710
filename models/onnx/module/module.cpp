#include <onnx/checker.h>
#include <onnx/defs/schema.h>
#include <onnx/onnx_pb.h>
#include <onnx/shape_inference/implementation.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/stubs/logging.h>

#include <climits>
#include <cstring>
#include <exception>
#include <fstream>
#include <unordered_map>

#include "base/error.hpp"
#include "models/onnx/model_file.hpp"

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
    for (const auto& attribute : from.attribute()) node.attributes[attribute.name()] = attribute_of(attribute);
  }
  return file;
}

class LibraryModel final : public OpenModel {
 public:
  explicit LibraryModel(lib::ModelProto model) : model_(std::move(model)), file_(file_of(model_)) {}

  [[nodiscard]] const ModelFile& file() const override { return file_; }

  [[nodiscard]] Inference infer(std::size_t number, std::span<const KnownInput> inputs) override {
    lib::NodeProto& node = *model_.mutable_graph()->mutable_node(static_cast<int>(number));
    Inference inference;
    const auto set = file_.operator_sets.find(file_.nodes[number].domain);
    if (set == file_.operator_sets.end()) return inference;
    const std::string domain = file_.nodes[number].domain;
    const lib::OpSchema* const schema =
        lib::OpSchemaRegistry::Schema(node.op_type(), static_cast<int>(set->second), domain);
    if (schema == nullptr || schema->Deprecated()) return inference;
    try {
      schema->Verify(node);
      if (!schema->has_type_and_shape_inference_function()) return inference;
      inference.known = true;
      infer_with(*schema, node, inputs, inference);
    } catch (const std::exception& error) {
      inference.known = true;
      inference.trouble = error.what();
    }
    return inference;
  }

 private:
  static void infer_with(const lib::OpSchema& schema, lib::NodeProto& node, std::span<const KnownInput> inputs,
                         Inference& inference) {
    std::unordered_map<std::string, lib::TypeProto> types;
    std::unordered_map<std::string, lib::TypeProto*> types_by_name;
    std::unordered_map<std::string, lib::TensorProto> tensors;
    std::unordered_map<std::string, const lib::TensorProto*> tensors_by_name;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = node.input(static_cast<int>(i));
      if (inputs[i].type != nullptr) types[name] = proto_of(*inputs[i].type);
      if (inputs[i].constant != nullptr) tensors[name] = proto_of(*inputs[i].constant);
    }
    for (auto& [name, type] : types) types_by_name[name] = &type;
    for (const auto& [name, tensor] : tensors) tensors_by_name[name] = &tensor;
    lib::shape_inference::InferenceContextImpl context(node, types_by_name, tensors_by_name, {});
    schema.GetTypeAndShapeInferenceFunction()(context);
    for (int i = 0; i < node.output_size(); ++i) {
      inference.outputs.push_back(type_of(*context.getOutputType(static_cast<std::size_t>(i))));
    }
  }

  lib::ModelProto model_;
  ModelFile file_;
};

/// Operators of ONNX itself that the library knows.
std::int64_t newest_set() { return lib::OpSchemaRegistry::DomainToVersionRange::Instance().Map().at("").second; }

class Module final : public OnnxModule {
 public:
  [[nodiscard]] std::unique_ptr<OpenModel> open(const std::string& path) override {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) bad_input("onnx", "{}: cannot be read; give a file of ONNX", path);
    lib::ModelProto model;
    {
      const google::protobuf::LogSilencer silencer;
      google::protobuf::io::IstreamInputStream bytes(&stream);
      google::protobuf::io::CodedInputStream coded(&bytes);
      coded.SetTotalBytesLimit(INT_MAX);
      if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
        bad_input("onnx", "{}: is no file of ONNX, or only a part of one", path);
      }
    }
    if (!model.has_graph() || model.graph().node().empty()) {
      bad_input("onnx", "{}: is no file of ONNX: it has no graph with nodes", path);
    }
    auto open = std::make_unique<LibraryModel>(std::move(model));
    const auto& sets = open->file().operator_sets;
    const auto set = sets.find("");
    if (set != sets.end() && (set->second < 1 || set->second > newest_set())) {
      bad_input("onnx", "{}: operator set {} of ONNX; accepted: 1 to {}. Export with opset_version={}", path,
                set->second, newest_set(), newest_set());
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
