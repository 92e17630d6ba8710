#pragma once

#include <pybind11/pybind11.h>

#include <filesystem>

namespace hcclsim::python {

/// A dict of the header's facts and, under "tensors", per kind of tensor ("weights", …) a dict from the name of a
/// parameter to its array of float32. Throws Error(bad_input, "checkpoint").
[[nodiscard]] pybind11::dict read_checkpoint(const std::filesystem::path& path);

}  // namespace hcclsim::python
