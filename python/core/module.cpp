// The module hcclsim._core: what Python needs of the library without a simulation, in its own process. Simulations run
// in the helper (python/hcclsim/helper.py).

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hccl/compression/settings.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "python/core/checkpoint.hpp"
#include "python/core/literal.hpp"
#include "study/files/context/auto_parallel_context.hpp"

namespace hcclsim::python {
namespace {

namespace py = pybind11;
using study::AutoParallelContext;

/// An Error becomes the exception of its kind: hcclsim.errors.of_kind.
void translate(std::exception_ptr thrown) {
  try {
    std::rethrow_exception(std::move(thrown));
  } catch (const Error& error) {
    const py::object exception = py::module_::import("hcclsim.errors")
                                     .attr("of_kind")(error.kind(), static_cast<int>(error.code()), error.what());
    PyErr_SetObject(py::type::of(exception).ptr(), exception.ptr());
  }
}

void bind_context(py::module_& module) {
  py::class_<AutoParallelContext>(module, "AutoParallelContext", "The options of set_auto_parallel_context, checked.")
      .def(py::init<bool>(), py::arg("compat") = false)
      .def(
          "set",
          [](AutoParallelContext& context, const std::string& key, const py::object& value) {
            context.set(key, literal_of(value));
          },
          py::arg("key"), py::arg("value"), "Sets an option; keeps the old value if the new one is not accepted.")
      .def(
          "get", [](const AutoParallelContext& context, const std::string& key) { return object_of(context.get(key)); },
          py::arg("key"), "What was set, or the default.")
      .def(
          "read",
          [](const AutoParallelContext& context, const std::string& key) { return object_of(context.read(key)); },
          py::arg("key"), "As get_auto_parallel_context returns it.")
      .def("is_set", &AutoParallelContext::is_set, py::arg("key"))
      .def("reset", &AutoParallelContext::reset)
      .def("set_graph_mode", &AutoParallelContext::set_graph_mode, py::arg("graph_mode"))
      .def("set_device_target", &AutoParallelContext::set_device_target, py::arg("target"))
      .def_property_readonly("graph_mode", &AutoParallelContext::graph_mode)
      .def_property_readonly("device_target", &AutoParallelContext::device_target)
      .def_property_readonly("keys", &AutoParallelContext::keys, "Options that were set, each once, in their order.")
      .def_property_readonly("warnings", &AutoParallelContext::warnings);
}

/// The segments of gradients of these sizes, shape (segments, 2): first and last gradient in production order.
py::array_t<std::uint32_t> segments(const std::vector<Bytes>& gradient_bytes,
                                    const std::optional<std::vector<double>>& by_size,
                                    std::optional<std::vector<std::uint32_t>> by_idx, bool allow_many_segments) {
  hccl::SplitStrategies strategies(0, 1, allow_many_segments);
  if (by_size.has_value()) strategies.set_split_strategy_by_size(*by_size);
  if (by_idx.has_value()) strategies.set_split_strategy_by_idx(std::move(*by_idx));
  const auto found = strategies.resolve(hccl::world_group, gradient_bytes);
  py::array_t<std::uint32_t> rows({static_cast<py::ssize_t>(found.size()), py::ssize_t{2}});
  auto cells = rows.mutable_unchecked<2>();
  for (py::ssize_t row = 0; row < cells.shape(0); ++row) {
    cells(row, 0) = found[static_cast<std::size_t>(row)].first;
    cells(row, 1) = found[static_cast<std::size_t>(row)].last;
  }
  return rows;
}

}  // namespace
}  // namespace hcclsim::python

PYBIND11_MODULE(_core, module) {
  namespace py = pybind11;
  using namespace hcclsim::python;
  module.doc() = "hcclsim's library, as far as Python calls it in its own process.";
  py::register_exception_translator(translate);
  bind_context(module);
  module.def("segments", segments, py::arg("gradient_bytes"), py::arg("by_size") = py::none(),
             py::arg("by_idx") = py::none(), py::arg("allow_many_segments") = false,
             R"(How HCCL cuts gradients, without a simulation.

gradient_bytes: bytes of each gradient, in the order in which back-propagation produces them; by_size: percentages of
the bytes, by_idx: last gradient of each segment; by_size counts before by_idx, and without both the default is 96.54
and 3.46 percent. allow_many_segments: more than 8, the most that HCCL documents.

Returns an array of uint32, shape (segments, 2): first and last gradient of each. Raises errors.SplitError for settings
that HCCL refuses.)");
  module.def(
      "check_compression", [](const std::string& text) { return to_string(hcclsim::hccl::parse_compression(text)); },
      py::arg("text"), "The settings of a hook in full; raises for what PowerSGDState refuses.");
  module.def("read_checkpoint", read_checkpoint, py::arg("path"),
             R"(What a checkpoint holds, or the gradients that run(save_gradients=...) has written.

Returns a dict: model, iteration, seed, optimizer, optimizer_steps, loss_scale, iteration_ends_s (seconds, per NPU) and
tensors, a dict by kind ("weights", "velocity", ... or "gradients") of dicts by parameter of float32 arrays of the
parameters' shapes. Raises errors.CheckpointError for a file that is damaged or none.)");
}
