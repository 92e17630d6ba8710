#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/files/foreign/mapping.hpp"
#include "study/files/foreign/shell/shell_script.hpp"

/// What starts a program of training on several ranks: torchrun, torch.distributed.launch, msrun, mpirun, deepspeed.
namespace hcclsim::study {

struct Launch {
  std::optional<std::uint64_t> ranks{};          ///< of the job; none: the script does not say
  std::optional<std::uint64_t> ranks_of_node{};  ///< as the launcher says
  bool is_for_npus = false;                      ///< what the script sets is for NPUs
};

/// The first word that is a program in Python, by its place; nothing without one.
[[nodiscard]] std::optional<std::size_t> program_of(const ShellCommand& command);

/// `words`: of the command, in front of the program. Ranks that it does not say are those of the variable WORLD_SIZE.
[[nodiscard]] Launch read_launcher(const std::vector<std::string>& words,
                                   const std::map<std::string, std::string>& variables);

/// Sets the platform and its NPUs, as the name of the script and the launcher tell.
void map_launch(MappingWriter& writer, const Launch& launch, std::uint32_t line);

}  // namespace hcclsim::study
