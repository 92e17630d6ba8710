#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "models/graph.hpp"

/// The networks that hcclsim knows, by name. Those that torchvision has are as it defines them (operators, parameter
/// names and order), at any input size, batch and number of classes; lenet, smallres and tinygpt are small enough to be
/// trained with real numbers in a test.
namespace hcclsim::models {

struct ModelOptions {
  std::string name = "resnet50";              ///< a name of model_list(), or "mlp:<in>,<hidden>,…,<out>"
  std::uint32_t batch = 32;                   ///< samples per step on one NPU, 1 … 65536
  std::optional<std::uint32_t> input = {};    ///< pixels per side; unset: ModelInfo::input. For networks of images only
  std::optional<std::uint32_t> classes = {};  ///< unset: ModelInfo::classes. For networks of images only
  bool fc_bias = true;                        ///< whether the last linear operator has a bias; tinygpt's never has
};

struct ModelInfo {
  std::string_view name;      ///< as --model takes it
  std::string_view title;     ///< "ResNet50 v1.5"
  std::string_view note;      ///< one line for `models list`
  std::uint32_t input = 224;  ///< pixels per side unless told; 0: does not read images
  std::uint32_t classes = 1000;
};

/// All networks, in the order in which they are listed; the last one is the form of the multi-layer perceptron.
[[nodiscard]] std::span<const ModelInfo> model_list();

/// Builds a network. Case, '-' and '_' in the name do not matter. Throws Error(bad_input) of kind "model" for an
/// unknown name (with all names and the nearest one) and for sizes that cannot be.
[[nodiscard]] Graph make_model(const ModelOptions& options);

}  // namespace hcclsim::models
