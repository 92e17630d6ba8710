#pragma once

#include <map>
#include <set>
#include <string>

#include "models/onnx/model_file.hpp"

/// Which tensors of a file may be trained: its initializers, and what nodes make that exporters write in their place.
namespace hcclsim::models::onnx {

class StoredWeights {
 public:
  explicit StoredWeights(const ModelFile& model);

  /// An initializer, or what a node Constant holds; nullptr: neither. Other types and axes are looked through.
  [[nodiscard]] const Constant* stored(const std::string& name) const;
  /// Whether an initializer, or the output of a node Constant, is of floating point and of more than one element, or
  /// the bias of a product that makes one feature or channel.
  [[nodiscard]] bool may_be_trained(const std::string& name, const Constant& constant) const;
  /// Whether a node ConstantOfShape makes a tensor that an operator reads as its weight: files without their weights
  /// are written so.
  [[nodiscard]] bool is_filled(const std::string& name) const { return filled_.contains(name); }

 private:
  /// What a tensor has other axes, or another type, of.
  [[nodiscard]] std::string source(std::string name) const;
  [[nodiscard]] std::vector<std::int64_t> dims(const std::string& name) const;
  void add_single(const ModelFile& model);
  void add_filled(const ModelFile& model);

  const ModelFile& model_;
  std::map<std::string, const Constant*> of_nodes_;  ///< by the output of their nodes Constant
  std::map<std::string, std::string> views_;         ///< of which tensor a tensor has the numbers
  std::set<std::string> single_;
  std::set<std::string> filled_;
};

}  // namespace hcclsim::models::onnx
