#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/onnx/import.hpp"
#include "models/onnx/model_file.hpp"
#include "models/onnx/weights.hpp"

/// A file of ONNX with the shapes of all tensors for one batch, in an order in which everything is there when it is
/// read, and with all that depends on constants and shapes alone computed.
namespace hcclsim::models::onnx {

enum class Role : std::uint8_t {
  constant,    ///< depends on constants and shapes alone
  weight,      ///< an initializer of floating point of more than one element, or another view of it
  side,        ///< depends on constants, weights and inputs but the first: masks, positions. Takes no time
  activation,  ///< depends on the batch, or is a part of it
};

inline constexpr std::size_t no_node = ~std::size_t{0};

struct TensorInfo {
  TensorType type{};
  Role role = Role::constant;
  Constant constant{};      ///< of constants, and of what is computed from weights whose numbers are known
  std::string weight{};     ///< of weights: the initializer
  bool transposed = false;  ///< of weights: its last two dimensions are
  std::size_t producer = no_node;
  std::vector<std::size_t> readers{};  ///< nodes that read its numbers, each once
};

class Network {
 public:
  /// Reads and evaluates; throws what import_graph() does.
  Network(const std::string& file, const ImportOptions& options);

  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const ModelFile& model() const { return open_->file(); }
  [[nodiscard]] const Node& node(std::size_t number) const { return model().nodes[number]; }
  /// Numbers of the nodes, in their order.
  [[nodiscard]] const std::vector<std::size_t>& order() const { return order_; }
  /// The input that is the batch.
  [[nodiscard]] const std::string& batch_input() const { return batch_input_; }
  [[nodiscard]] const TensorInfo& tensor(const std::string& name) const { return tensors_.at(name); }
  [[nodiscard]] const std::vector<std::int64_t>& dims(const std::string& name) const { return tensor(name).type.dims; }
  [[nodiscard]] std::vector<std::vector<std::int64_t>> dims_of_inputs(const Node& node) const;
  [[nodiscard]] bool is(const std::string& name, Role role) const { return !name.empty() && tensor(name).role == role; }
  /// Which of its axes numbers the samples: the second one of networks that go through sequences step by step, and have
  /// the steps in front.
  [[nodiscard]] std::size_t batch_axis() const { return batch_axis_; }
  /// The fixed batch of the file, if another one is asked for; else 0.
  [[nodiscard]] std::int64_t samples_of_file() const { return samples_of_file_; }
  /// Whether a tensor comes from inputs but the batch, and an operator with weights reads it: the batch has such parts.
  [[nodiscard]] bool is_part_of_batch(const std::string& name) const { return parts_of_batch_.contains(name); }
  /// Whether the file's set of operators has the node's, with an inference.
  [[nodiscard]] bool is_known(std::size_t number) const { return !unknown_.contains(number); }

  /// "FILE: node 'conv1' (Conv)".
  [[nodiscard]] std::string place(std::size_t number) const;
  /// Refuses an operator, with its domain and set.
  [[noreturn]] void refuse(std::size_t number, std::string_view why) const;

 private:
  /// Returns false if a branch took the place of an If, so that all begins anew.
  [[nodiscard]] bool evaluate_all(const ImportOptions& options);
  /// Takes the branch of an If whose condition is known; returns false if the node is none.
  [[nodiscard]] bool take_branch(std::size_t number);
  /// Rows of a number of features that only a constant says.
  [[nodiscard]] bool set_one_hot(const Node& node, TensorType& type) const;
  void add_inputs(const ImportOptions& options);
  void choose_batch_input();
  void choose_batch_axis();
  /// Has what an operator with weights of its own reads of other inputs depend on the batch.
  void join_batch(const Node& node);
  /// Gives all tensors as many samples, in the place of those that the file has.
  void change_samples(std::int64_t samples);
  void sort_nodes();
  void evaluate(std::size_t number, const ImportOptions& options);
  /// Types of the outputs by inference, or as far as that is not known, as stated or as of the first input.
  [[nodiscard]] std::vector<TensorType> types_of(std::size_t number, const ImportOptions& options);
  [[nodiscard]] Role role_of(const Node& node) const;
  [[nodiscard]] bool is_view_of_weight(const Node& node) const;

  std::string file_;
  std::unique_ptr<OpenModel> open_;
  std::optional<StoredWeights> weights_;
  std::string batch_input_;
  std::size_t batch_axis_ = 0;
  std::int64_t samples_of_file_ = 0;
  std::set<std::string> parts_of_batch_;
  std::map<std::string, TensorInfo> tensors_;
  std::map<std::string, std::size_t> producers_;
  std::vector<std::size_t> order_;
  std::set<std::size_t> unknown_;
};

/// Integers of an attribute, or of the constant input `input` (−1: none), as newer sets have them; empty: neither.
[[nodiscard]] std::vector<std::int64_t> integers(const Network& network, const Node& node, std::string_view attribute,
                                                 std::size_t input);
[[nodiscard]] std::int64_t integer(const Node& node, const std::string& attribute, std::int64_t otherwise);
[[nodiscard]] std::string text(const Node& node, const std::string& attribute);
[[nodiscard]] double real(const Node& node, const std::string& attribute, double otherwise);
/// The axis −1 … as a number from 0.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);
/// 2^62 if there are more.
[[nodiscard]] std::int64_t elements_of(const std::vector<std::int64_t>& dims);
[[nodiscard]] std::int64_t whole(double value);

}  // namespace hcclsim::models::onnx
