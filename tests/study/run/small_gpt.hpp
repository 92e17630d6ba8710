#pragma once

#include <string>
#include <utility>

#include "study/spec/run_spec.hpp"

/// Runs of networks that are small in what a test does not look at.
namespace hcclsim::study {

/// 12 layers, of which gradients are large and activations small.
inline const models::ModelOptions twelve_layers{
    .batch = 4, .sequence = 16, .layers = 12, .hidden = 768, .heads = 2, .vocabulary = 256};

/// GPT-2 of this size as MindSpore trains it.
inline RunSpec small_gpt(const std::string& platform, models::ModelOptions size) {
  RunSpec spec;
  spec.platform.file = platform;
  spec.model = std::move(size);
  spec.model.name = "gpt2-small";
  spec.step.framework = Framework::mindspore;
  spec.step.hcom_parallel = true;
  return spec;
}

}  // namespace hcclsim::study
