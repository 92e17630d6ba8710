#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

/// What may stand in the place of the last word of a command line, for shells that complete it.
namespace hcclsim::cli {

class Command;
class Option;

/// Words that an option or argument accepts beyond those of its table, such as names of networks.
using KnownValues = std::function<std::vector<std::string>(const Option&)>;

struct Completion {
  std::vector<std::string> words{};  ///< all begin with what is written of the last word; ascending
  bool files = false;                ///< names of files may stand there too
};

/// `words`: those behind "hcclsim", the last one as far as it is written. All of `app` is declared.
[[nodiscard]] Completion completion_of(const Command& app, std::span<const std::string> words,
                                       const KnownValues& known);

}  // namespace hcclsim::cli
