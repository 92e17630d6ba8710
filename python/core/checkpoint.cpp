#include "python/core/checkpoint.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "hccl/training/numerics/checkpoint.hpp"

namespace hcclsim::python {
namespace {

namespace py = pybind11;

/// A new array of the parameter's shape, filled with the tensor that comes next. Other threads run while it is read.
py::array_t<float> next_array(hccl::CheckpointReader& reader, const hccl::CheckpointParameter& parameter) {
  py::array_t<float> array(std::vector<py::ssize_t>(parameter.shape.begin(), parameter.shape.end()));
  const std::span<float> values(array.mutable_data(), static_cast<std::size_t>(array.size()));
  const py::gil_scoped_release release;
  reader.read(values);
  return array;
}

}  // namespace

py::dict read_checkpoint(const std::filesystem::path& path) {
  const auto opened = [&] {
    const py::gil_scoped_release release;
    return hccl::CheckpointReader(path.string());
  };
  hccl::CheckpointReader reader = opened();
  const hccl::Checkpoint& header = reader.checkpoint();
  py::dict tensors;
  for (const std::string& kind : header.tensors) {
    py::dict of_kind;
    for (const hccl::CheckpointParameter& parameter : header.parameters) {
      of_kind[py::str(parameter.name)] = next_array(reader, parameter);
    }
    tensors[py::str(kind)] = of_kind;
  }
  py::dict facts;
  facts["model"] = header.model;
  facts["iteration"] = header.iteration;
  facts["seed"] = header.seed;
  facts["optimizer"] = header.optimizer;
  facts["optimizer_steps"] = header.optimizer_steps;
  facts["loss_scale"] = header.loss_scale;
  facts["iteration_ends_s"] = header.iteration_ends;
  facts["tensors"] = tensors;
  return facts;
}

}  // namespace hcclsim::python
