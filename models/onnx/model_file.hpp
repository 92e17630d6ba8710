#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

/// A file of ONNX as plain data, and the inference of types and shapes of one node. Parser, schemas and inference are
/// those of libonnx. It is in a library of its own, libhcclsim_onnx.so, loaded when a file is first read: its headers
/// are slow to compile, and registering its operators takes longer than a step takes to simulate.
namespace hcclsim::models::onnx {

/// What elements of a tensor are, as far as it matters here.
enum class ElementKind : std::uint8_t { floating, integer, other };

struct TensorType {
  int element_type = 0;                ///< number of TensorProto.DataType
  bool has_shape = false;              ///< its rank is known
  std::vector<std::int64_t> dims{};    ///< −1: not known
  std::vector<std::string> symbols{};  ///< of each dimension; empty: it has none
};

/// An initializer, or what was computed from constants.
struct Constant {
  int element_type = 0;
  std::vector<std::int64_t> dims{};
  /// Empty of tensors of more elements than max_values, or whose values are in another file.
  std::vector<double> values{};
  bool known = false;  ///< whether `values` are all of them
};
/// Elements of a tensor whose values are read.
inline constexpr std::int64_t max_values = 1 << 16;

struct Attribute {
  std::vector<std::int64_t> ints{};
  std::vector<double> floats{};
  std::vector<std::string> texts{};
  std::optional<Constant> tensor{};
};

struct Node {
  std::string name;  ///< may be empty
  std::string type;
  std::string domain;                 ///< empty: ONNX's own
  std::vector<std::string> inputs{};  ///< empty: one that is left out
  std::vector<std::string> outputs{};
  std::map<std::string, Attribute> attributes{};
  /// If, Loop, Scan: it has graphs of its own, which are not read. What they read of this one are inputs, too.
  bool holds_graph = false;
};

/// An input of a node for the inference.
struct KnownInput {
  const TensorType* type = nullptr;    ///< nullptr: it is left out
  const Constant* constant = nullptr;  ///< with known values
};

struct ModelFile {
  std::map<std::string, std::int64_t> operator_sets{};  ///< by domain
  std::vector<std::string> inputs{};                    ///< without initializers
  std::vector<std::string> outputs{};
  std::map<std::string, TensorType> types{};  ///< of inputs, outputs and other tensors, as far as they are stated
  std::map<std::string, Constant> initializers{};
  std::vector<Node> nodes{};
};

/// What inference says of a node.
struct Inference {
  bool known = false;  ///< the operator is in the set, and has an inference
  std::vector<TensorType> outputs{};
  std::string trouble{};  ///< why the inputs do not go together; empty: they do
};

class OpenModel {
 public:
  OpenModel() = default;
  OpenModel(const OpenModel&) = delete;
  OpenModel(OpenModel&&) = delete;
  OpenModel& operator=(const OpenModel&) = delete;
  OpenModel& operator=(OpenModel&&) = delete;
  virtual ~OpenModel() = default;
  [[nodiscard]] virtual const ModelFile& file() const = 0;
  /// Why a node cannot be one of its operator: inputs, outputs and attributes that its operator has not, or must have.
  /// Empty: it can, or the library does not know its operator.
  [[nodiscard]] virtual std::string trouble(std::size_t node) const = 0;
  /// Puts the nodes of a branch in the place of node number `node`, an If with this condition, and numbers all nodes
  /// anew; returns false if it has no such branch.
  [[nodiscard]] virtual bool take_branch(std::size_t node, bool condition) = 0;
  /// Types of the outputs of node number `node`, of which trouble() knows none.
  [[nodiscard]] virtual Inference infer(std::size_t node, std::span<const KnownInput> inputs) = 0;
};

class OnnxModule {
 public:
  virtual ~OnnxModule() = default;
  /// Throws Error(bad_input, "onnx") for what is no file of ONNX, or only a part of one, or has a set of operators that
  /// is newer than the library.
  [[nodiscard]] virtual std::unique_ptr<OpenModel> open(const std::string& path) = 0;
};

/// Loads the library if it is not loaded. Throws Error(internal) if it is not found.
[[nodiscard]] OnnxModule& onnx_module();

/// What the elements of TensorProto.DataType number `element_type` are.
[[nodiscard]] ElementKind kind_of(int element_type);

}  // namespace hcclsim::models::onnx
