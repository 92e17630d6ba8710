#pragma once

#include <memory>
#include <string>

#include "base/input_file.hpp"
#include "models/data/dataset.hpp"

/// The sources of data, each in a file of its own that says what it takes. They throw as open_dataset() does.
namespace hcclsim::models {

/// Opens a file of the user's; refuses an empty one, and one that gzip has compressed.
[[nodiscard]] InputFile open_data_file(const std::string& path);
/// Throws unless `path` is a folder.
void require_folder(const std::string& path);

/// Made data by the rules of synthetic.cpp.
enum class SyntheticRule : std::uint8_t { random_labels, learnable };

/// `samples`: how many there are, or unbounded.
[[nodiscard]] std::unique_ptr<Dataset> make_synthetic(const SampleForm& form, SyntheticRule rule, std::uint64_t samples,
                                                      std::uint64_t seed);
[[nodiscard]] std::unique_ptr<Dataset> open_cifar10(const SampleForm& form, const std::string& path);
[[nodiscard]] std::unique_ptr<Dataset> open_mnist(const SampleForm& form, const std::string& folder);
[[nodiscard]] std::unique_ptr<Dataset> open_image_folder(const SampleForm& form, const std::string& folder);

}  // namespace hcclsim::models
