#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "models/graph.hpp"

/// Networks of files in the ONNX format. Shapes are inferred for the batch that is asked for, what only depends on
/// shapes and constants is computed, and patterns that exporters write for one operation (attention, layer norm, GELU,
/// SwiGLU, rotary positions, embeddings) become the operator that the networks of the zoo have for it, so that both
/// launch the same kernels. Everything else becomes work of the vector unit or a product of matrices (OperatorKind
/// vector, product).
///
/// Weights are the initializers of floating point that products, norms, tables and element-wise operators read; they
/// are trained. The values of large tensors are not read, so files of weights beside it may be missing. Behind the
/// outputs a loss is put: the softmax cross-entropy of an output of several features per row, of one feature that of
/// its sigmoid. An output that is a softmax already gives its logits.
namespace hcclsim::models::onnx {

struct ImportOptions {
  std::uint32_t batch = 1;                      ///< in the place of the symbolic first dimension of the inputs
  std::map<std::string, std::uint32_t> dims{};  ///< of the other symbolic dimensions
  std::optional<Seconds> unsupported = {};      ///< forward duration of operators that are not known; none: refused
};

/// Throws Error(bad_input) of kind "onnx" that names the file, and the node where there is one: no such file, no ONNX,
/// an operator set that is too new, an operator that is not known (with its domain and set), a cycle, an input that
/// nothing makes, sizes that do not go together, a symbolic dimension without a size.
[[nodiscard]] Graph import_graph(const std::string& file, const ImportOptions& options);

}  // namespace hcclsim::models::onnx
