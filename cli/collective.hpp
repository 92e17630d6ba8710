#pragma once

#include <CLI/CLI.hpp>

/// `hcclsim collective`: measures a collective as HCCL's test tool hccl_test does, with its options and its table.
namespace hcclsim::cli {

void add_collective_command(CLI::App& app);

}  // namespace hcclsim::cli
