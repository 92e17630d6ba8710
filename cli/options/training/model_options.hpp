#pragma once

#include "cli/options/parse/command.hpp"
#include "models/zoo/zoo.hpp"

namespace hcclsim::cli {

/// The sizes of a network beside its batch, which both `run` and `models show` take. Which of them a network takes,
/// make_model says.
void add_model_size_options(Command& command, models::ModelOptions& model);

}  // namespace hcclsim::cli
