#pragma once

#include <pybind11/pybind11.h>

#include "study/files/literal.hpp"

namespace hcclsim::python {

/// Throws Error(bad_input, "type-error") for an object that is none of None, bool, int, float, str, list, tuple, dict.
[[nodiscard]] study::Literal literal_of(const pybind11::handle& object);
[[nodiscard]] pybind11::object object_of(const study::Literal& literal);

}  // namespace hcclsim::python
