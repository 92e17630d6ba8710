#include "tests/models/onnx/wire.hpp"

#include <algorithm>
#include <bit>
#include <fstream>

namespace hcclsim::models::onnx {

void Message::varint(std::uint64_t value) {
  while (value >= 0x80) {
    bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    value >>= 7;
  }
  bytes_ += static_cast<char>(value);
}

Message& Message::number(int field, std::int64_t value) {
  varint(static_cast<std::uint64_t>(field) << 3);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

Message& Message::real(int field, float value) {
  varint((static_cast<std::uint64_t>(field) << 3) | 5);
  const auto bits = std::bit_cast<std::uint32_t>(value);
  for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
  return *this;
}

Message& Message::bytes(int field, std::string_view value) {
  varint((static_cast<std::uint64_t>(field) << 3) | 2);
  varint(value.size());
  bytes_ += value;
  return *this;
}

namespace {

/// A ValueInfoProto.
Message value_info(const std::string& name, int element_type, const std::vector<Dim>& dims) {
  Message shape;
  for (const Dim& dim : dims) {
    Message one;
    if (dim.symbol.empty()) {
      one.number(1, dim.size);
    } else if (dim.symbol != "?") {
      one.bytes(2, dim.symbol);
    }
    shape.message(1, one);
  }
  Message tensor;
  tensor.number(1, element_type).message(2, shape);
  Message info;
  info.bytes(1, name).message(2, Message().message(1, tensor));
  return info;
}

}  // namespace

void ModelWriter::input(const std::string& name, int element_type, const std::vector<Dim>& dims) {
  graph_.message(11, value_info(name, element_type, dims));
}

void ModelWriter::output(const std::string& name) {
  const Message tensor = Message().number(1, 1);
  graph_.message(12, Message().bytes(1, name).message(2, Message().message(1, tensor)));
}

namespace {

Message without_numbers(const std::string& name, const std::vector<std::int64_t>& dims) {
  Message tensor;
  for (const std::int64_t size : dims) tensor.number(1, size);
  tensor.number(2, 1).bytes(8, name).message(13, Message().bytes(1, "location").bytes(2, "weights.bin")).number(14, 1);
  return tensor;
}

}  // namespace

std::string ModelWriter::weight(const std::string& name, const std::vector<std::int64_t>& dims) {
  if (std::ranges::find(initializers_, name) != initializers_.end()) return name;
  initializers_.push_back(name);
  graph_.message(5, without_numbers(name, dims));
  return name;
}

std::string ModelWriter::weight_with_numbers(const std::string& name, const std::vector<std::int64_t>& dims) {
  Message tensor;
  std::size_t numbers = 1;
  for (const std::int64_t size : dims) {
    tensor.number(1, size);
    numbers *= static_cast<std::size_t>(size);
  }
  graph_.message(5, tensor.number(2, 1).bytes(8, name).bytes(9, std::string(4 * numbers, '\0')));
  return name;
}

std::string ModelWriter::weight_node(const std::string& name, const std::vector<std::int64_t>& dims) {
  const Message value = Message().bytes(1, "value").message(5, without_numbers(name, dims)).number(20, 4);
  graph_.message(1, Message().bytes(2, name).bytes(4, "Constant").message(5, value));
  return name;
}

std::string ModelWriter::filled(const std::string& name, const std::vector<std::int64_t>& dims, float value) {
  const std::string shape = integers(name + ":shape", dims);
  const Message number = Message().number(1, 1).number(2, 1).real(4, value);
  const Message filling = Message().bytes(1, "value").message(5, number).number(20, 4);
  graph_.message(1, Message().bytes(1, shape).bytes(2, name).bytes(4, "ConstantOfShape").message(5, filling));
  return name;
}

std::string ModelWriter::integers(const std::string& name, const std::vector<std::int64_t>& values, bool scalar) {
  if (std::ranges::find(initializers_, name) != initializers_.end()) return name;
  initializers_.push_back(name);
  Message tensor;
  if (!scalar) tensor.number(1, static_cast<std::int64_t>(values.size()));
  tensor.number(2, 7);
  for (const std::int64_t value : values) tensor.number(7, value);
  graph_.message(5, tensor.bytes(8, name));
  return name;
}

std::string ModelWriter::real(const std::string& name, float value) {
  if (std::ranges::find(initializers_, name) != initializers_.end()) return name;
  initializers_.push_back(name);
  graph_.message(5, Message().number(2, 1).real(4, value).bytes(8, name));
  return name;
}

Message node_of(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                const std::vector<std::string>& outputs, const std::vector<Attr>& attributes,
                const std::string& domain) {
  Message node;
  for (const std::string& input : inputs) node.bytes(1, input);
  for (const std::string& output : outputs) node.bytes(2, output);
  node.bytes(3, name).bytes(4, type);
  for (const Attr& attribute : attributes) {
    Message one;
    one.bytes(1, attribute.name);
    if (attribute.graph) {
      Message inside;
      inside.bytes(2, "inside");
      if (!attribute.graph_reads.empty()) {
        inside.message(1, Message().bytes(1, attribute.graph_reads).bytes(2, "out").bytes(4, "Identity"));
      }
      for (const Message& one_inside : attribute.graph_nodes) inside.message(1, one_inside);
      if (!attribute.graph_output.empty()) inside.message(12, value_info("out", 1, attribute.graph_output));
      one.message(6, inside).number(20, 5);
    } else if (!attribute.text.empty()) {
      one.bytes(4, attribute.text).number(20, 3);
    } else if (attribute.list) {
      for (const std::int64_t value : attribute.ints) one.number(8, value);
      one.number(20, 7);
    } else if (!attribute.floats.empty()) {
      one.real(2, attribute.floats.front()).number(20, 1);
    } else {
      one.number(3, attribute.ints.front()).number(20, 2);
    }
    node.message(5, one);
  }
  if (!domain.empty()) node.bytes(7, domain);
  return node;
}

void ModelWriter::append(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, const std::vector<Attr>& attributes,
                         const std::string& domain) {
  graph_.message(1, node_of(type, name, inputs, outputs, attributes, domain));
}

std::string ModelWriter::node(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                              const std::vector<Attr>& attributes, const std::string& domain) {
  append(type, name, inputs, {name + ":out"}, attributes, domain);
  return name + ":out";
}

std::vector<std::string> ModelWriter::nodes(const std::string& type, const std::string& name,
                                            const std::vector<std::string>& inputs, std::size_t outputs,
                                            const std::vector<Attr>& attributes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < outputs; ++i) names.push_back(name + ":out" + std::to_string(i));
  append(type, name, inputs, names, attributes, "");
  return names;
}

void ModelWriter::node_to(const std::string& output, const std::string& type, const std::string& name,
                          const std::vector<std::string>& inputs, const std::vector<Attr>& attributes) {
  append(type, name, inputs, {output}, attributes, "");
}

void ModelWriter::function(const std::string& name, const std::vector<std::string>& inputs, const std::string& output,
                           const std::vector<Message>& nodes) {
  Message function;
  function.bytes(1, name);
  for (const std::string& input : inputs) function.bytes(4, input);
  function.bytes(5, output);
  for (const Message& node : nodes) function.message(7, node);
  function.message(9, Message().bytes(1, "").number(2, set_)).bytes(10, "local");
  functions_.push_back(function);
}

std::string ModelWriter::finish() const {
  Message graph = graph_;
  graph.bytes(2, "network");
  Message model;
  model.number(1, 8).message(7, graph).message(8, Message().bytes(1, "").number(2, set_));
  for (const Message& function : functions_) model.message(25, function);
  return model.text();
}

std::string ModelWriter::save(const std::string& path) const {
  std::ofstream(path, std::ios::binary) << finish();
  return path;
}

}  // namespace hcclsim::models::onnx
