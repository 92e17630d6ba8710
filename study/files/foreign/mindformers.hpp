#pragma once

#include <string>
#include <vector>

#include "study/files/foreign/mapping.hpp"

namespace hcclsim::study {

/// What a YAML file of MindSpore Transformers (mindformers) asks for: sizes of the model, ranks, micro-batches,
/// optimizer, recomputing, and the keys of `parallel`, which are those of set_auto_parallel_context. Devices are
/// data_parallel · model_parallel · pipeline_stage · context_parallel; a step has runner_config.batch_size samples per
/// micro-batch. Networks: LLaMA (with experts: Mixtral), GPT-2, PanGu-α, BERT. Throws Error(bad_input, "foreign").
[[nodiscard]] ForeignMapping map_mindformers(const std::string& file, const std::vector<std::string>& ignored);
/// The same of a text.
[[nodiscard]] ForeignMapping map_mindformers_text(const std::string& text, const std::string& file,
                                                  const std::vector<std::string>& ignored);

}  // namespace hcclsim::study
