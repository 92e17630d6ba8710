#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.hpp"
#include "models/onnx/model_file.hpp"

/// Sums of products by an equation, such as "bhid,bhjd->bhij" for queries and keys: a letter is an axis, and letters
/// that the result has not are summed over.
namespace hcclsim::models::onnx {

class Einsum {
 public:
  /// Nothing if the equation does not go with tensors of these sizes.
  [[nodiscard]] static std::optional<Einsum> read(const std::string& equation,
                                                  const std::vector<std::vector<std::int64_t>>& inputs);

  [[nodiscard]] std::vector<std::int64_t> dims() const;
  /// Of two tensors that share all axes that are summed over; else nothing.
  [[nodiscard]] std::optional<MatrixProduct> product() const;
  /// The result of known numbers; nothing if it has more than max_values elements, or they are sums of too many.
  [[nodiscard]] std::optional<Constant> value(const std::vector<const Constant*>& inputs) const;

 private:
  [[nodiscard]] std::int64_t size_of(char letter) const;
  [[nodiscard]] std::int64_t elements_of_letters(const std::string& letters) const;

  std::vector<std::string> inputs_;
  std::string output_;
  std::string letters_;              ///< all, each once
  std::vector<std::int64_t> sizes_;  ///< of `letters_`
};

}  // namespace hcclsim::models::onnx
