#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Writes files of ONNX byte by byte, by the numbers of the fields in onnx.proto: what reads them is tested by another
/// code than its own.
namespace hcclsim::models::onnx {

/// A message in protobuf's encoding.
class Message {
 public:
  Message& number(int field, std::int64_t value);
  Message& real(int field, float value);
  Message& bytes(int field, std::string_view value);
  Message& message(int field, const Message& value) { return bytes(field, value.bytes_); }
  [[nodiscard]] const std::string& text() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  std::string bytes_;
};

/// A dimension with a size, or a symbol, or neither: "?".
struct Dim {
  Dim(std::int64_t the_size) : size(the_size) {}       // NOLINT(google-explicit-constructor)
  Dim(const char* the_symbol) : symbol(the_symbol) {}  // NOLINT(google-explicit-constructor)
  std::int64_t size = 0;
  std::string symbol{};
};

struct Attr {
  std::string name;
  std::vector<std::int64_t> ints{};
  bool list = false;
  std::vector<float> floats{};
  std::string text{};
  bool graph = false;                  ///< it holds a graph, without nodes but for an Identity of what it reads
  std::string graph_reads{};           ///< of the graph around it; empty: nothing
  std::vector<Message> graph_nodes{};  ///< NodeProtos in it, the last of which makes its output "out"; empty: see above
  std::vector<Dim> graph_output{};     ///< shape of the output that the graph declares; empty: none
};
[[nodiscard]] inline Attr attr(std::string name, std::int64_t value) {
  return {.name = std::move(name), .ints = {value}};
}
[[nodiscard]] inline Attr attrs(std::string name, std::vector<std::int64_t> values) {
  return {.name = std::move(name), .ints = std::move(values), .list = true};
}

/// A NodeProto.
[[nodiscard]] Message node_of(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                              const std::vector<std::string>& outputs, const std::vector<Attr>& attributes = {},
                              const std::string& domain = "");

class ModelWriter {
 public:
  explicit ModelWriter(std::int64_t operator_set = 17) : set_(operator_set) {}

  /// element_type: 1 float, 7 int64.
  void input(const std::string& name, int element_type, const std::vector<Dim>& dims);
  void output(const std::string& name);
  /// A weight whose values are in another file, which need not exist.
  std::string weight(const std::string& name, const std::vector<std::int64_t>& dims);
  /// A weight with its numbers, all of them zero.
  std::string weight_with_numbers(const std::string& name, const std::vector<std::int64_t>& dims);
  /// The same as weight() in a node Constant.
  std::string weight_node(const std::string& name, const std::vector<std::int64_t>& dims);
  /// A tensor of one number that a node ConstantOfShape makes, as files without their weights are written.
  std::string filled(const std::string& name, const std::vector<std::int64_t>& dims, float value);
  std::string integers(const std::string& name, const std::vector<std::int64_t>& values, bool scalar = false);
  std::string real(const std::string& name, float value);
  /// Returns the name of its output.
  std::string node(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
                   const std::vector<Attr>& attributes = {}, const std::string& domain = "");
  std::vector<std::string> nodes(const std::string& type, const std::string& name,
                                 const std::vector<std::string>& inputs, std::size_t outputs,
                                 const std::vector<Attr>& attributes);
  /// A node that makes a tensor of this name.
  void node_to(const std::string& output, const std::string& type, const std::string& name,
               const std::vector<std::string>& inputs, const std::vector<Attr>& attributes = {});
  /// An operator of domain "local" that the file describes itself. `nodes`: NodeProtos.
  void function(const std::string& name, const std::vector<std::string>& inputs, const std::string& output,
                const std::vector<Message>& nodes);
  [[nodiscard]] std::string finish() const;
  /// Writes the file; returns its path.
  std::string save(const std::string& path) const;

 private:
  void append(const std::string& type, const std::string& name, const std::vector<std::string>& inputs,
              const std::vector<std::string>& outputs, const std::vector<Attr>& attributes, const std::string& domain);

  std::int64_t set_;
  Message graph_;
  std::vector<Message> functions_;
  std::vector<std::string> initializers_;
};

}  // namespace hcclsim::models::onnx
