// Files of other programs: networks in ONNX, mindformers' YAML, scripts that start Megatron.

#include <fstream>
#include <string>

#include "models/onnx/import.hpp"
#include "study/files/foreign/megatron/megatron.hpp"
#include "study/files/foreign/mindformers.hpp"
#include "tests/fuzz/scratch_folder.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {

int fuzz_onnx(Input input) {
  static const ScratchFolder folder;
  folder.write("network.onnx", text_of(input));
  return attempt([&] {
    const models::Graph graph =
        models::onnx::import_graph(folder.path() + "/network.onnx", {.batch = 2, .dims = {}, .unsupported = 1e-6});
    require(graph.operators.size() > 1, "a network without operators");
    for (const models::Parameter& parameter : graph.parameters) {
      require(!parameter.name.empty() && parameter.elements > 0, "a parameter without a name or elements");
    }
  });
}

int fuzz_mindformers(Input input) {
  return attempt([&] {
    const study::ForeignMapping mapping = study::map_mindformers_text(text_of(input), "llm.yaml", {});
    require(!mapping.options.empty(), "a file that asks for nothing");
  });
}

int fuzz_megatron(Input input) {
  return attempt([&] {
    const study::ForeignMapping mapping = study::map_megatron_text(text_of(input), "train.sh", {});
    require(mapping.options.size() > 4, "a script that asks for nothing");
  });
}

}  // namespace hcclsim::fuzz
