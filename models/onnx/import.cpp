#include "models/onnx/import.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "models/onnx/emitter.hpp"
#include "models/onnx/network.hpp"
#include "models/onnx/patterns.hpp"

namespace hcclsim::models::onnx {

Graph import_graph(const std::string& file, const ImportOptions& options) {
  const Network network(file, options);
  const Patterns patterns = find_patterns(network);
  try {
    return Emitter(network, patterns, options).run();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::bad_input && network.samples_of_file() > 0) {
      const std::string_view place = error.kind() == "onnx" ? "" : ": ";
      bad_input("onnx", "{0}{1}{2}; the file was exported for a batch of {3}: give --batch {3}",
                place.empty() ? "" : file, place, error.what(), network.samples_of_file());
    }
    if (error.kind() == "onnx" || error.code() != ErrorCode::bad_input) throw;
    bad_input("onnx", "{}: {}", file, error.what());  // what the builder refuses
  }
}

}  // namespace hcclsim::models::onnx
