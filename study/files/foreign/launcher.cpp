#include "study/files/foreign/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "base/text.hpp"

namespace hcclsim::study {
namespace {

/// NPUs of a generation, and the platforms that come with this program.
struct LaunchPlatform {
  std::string_view generation;
  std::string_view soc;  ///< of platforms of more servers
  std::uint64_t ranks_of_server;
  std::string_view server;
  std::string_view servers;  ///< several
  std::uint64_t most_ranks;
};
constexpr LaunchPlatform a2_platform{"A2", "910B2", 8, "atlas800t-a2", "atlas800t-a2-x2", 16};
constexpr LaunchPlatform a3_platform{"A3", "910_9391", 16, "atlas900-a3", "atlas900-a3-superpod", 64};

/// Whether a name has a generation as a word of its own: "pretrain_8k_A3_ptd.sh".
bool names_generation(std::string_view file, std::string_view generation) {
  const std::string name = in_lower_case(file.substr(file.rfind('/') + 1));
  const std::string word = in_lower_case(generation);
  const auto is_letter = [&](std::size_t at) {
    return at < name.size() && std::isalnum(static_cast<unsigned char>(name[at])) != 0;
  };
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

/// `from`: what tells which NPUs there are.
const LaunchPlatform& find_platform(MappingWriter& writer, const Launch& launch, std::string& from) {
  for (const LaunchPlatform* const platform : {&a2_platform, &a3_platform}) {
    from = fmt::format("the name of the script has {}", platform->generation);
    if (names_generation(writer.file(), platform->generation)) return *platform;
  }
  if (names_generation(writer.file(), "A5")) {
    writer.leave_out("an NPU of generation A5",
                     "no platform that comes with hcclsim has it: the figures are those of an A3, which is slower than "
                     "the real one");
    from = "the name of the script has A5";
    return a3_platform;
  }
  if (launch.ranks_of_node == a3_platform.ranks_of_server) {
    from = "16 ranks of a node are the dies of an A3";
    return a3_platform;
  }
  from = "a script that does not say which NPUs: --platform says otherwise";
  return a2_platform;
}

}  // namespace

std::optional<std::size_t> program_of(const ShellCommand& command) {
  const auto found = std::ranges::find_if(command.words, [](const std::string& word) { return word.ends_with(".py"); });
  if (found == command.words.end()) return std::nullopt;
  return static_cast<std::size_t>(found - command.words.begin());
}

Launch read_launcher(const std::vector<std::string>& words, const std::map<std::string, std::string>& variables) {
  static constexpr std::array<std::string_view, 5> signs{"NPUS_PER_NODE", "PYTORCH_NPU_ALLOC_CONF", "ASCEND_", "HCCL_",
                                                         "CPU_AFFINITY_CONF"};
  Launch launch;
  launch.is_for_npus = std::ranges::any_of(variables, [](const auto& variable) {
    return std::ranges::any_of(signs, [&](std::string_view sign) { return variable.first.starts_with(sign); });
  });
  std::uint64_t per_node = 0;  // 0: not said
  std::uint64_t all = 0;       // as msrun says it
  std::uint64_t nodes = 1;
  bool known = true;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string name = words[i].substr(0, words[i].find('='));
    std::ranges::replace(name, '_', '-');
    const bool joined = words[i].find('=') != std::string::npos;
    const std::string value = joined                 ? words[i].substr(words[i].find('=') + 1)
                              : i + 1 < words.size() ? words[i + 1]
                                                     : "";
    const std::uint32_t number = parse_number<std::uint32_t>(value).value_or(0);
    if (name == "--nproc-per-node") per_node = number;
    if (name == "--worker-num") all = number;
    if (name == "--local-worker-num" && number > 0) launch.ranks_of_node = number;
    launch.is_for_npus = launch.is_for_npus || name == "msrun";
    if (name == "--nnodes") {
      known = number > 0;  // "1:4" and "$NODES" are not
      nodes = number;
    }
    if ((name == "-np" || name == "-n" || name == "--num-gpus") && per_node == 0) per_node = number;
  }
  if (per_node > 0) launch.ranks_of_node = per_node;
  if (!known) return launch;
  if (all > 0 || per_node > 0) {
    launch.ranks = all > 0 ? all : per_node * nodes;
    return launch;
  }
  const auto world = variables.find("WORLD_SIZE");
  if (world != variables.end()) launch.ranks = parse_number<std::uint32_t>(world->second);
  return launch;
}

void map_launch(MappingWriter& writer, const Launch& launch, std::uint32_t line) {
  std::string from;
  const LaunchPlatform& platform = find_platform(writer, launch, from);
  const std::uint64_t ranks = launch.ranks.value_or(0);
  const std::uint64_t servers = (ranks + platform.ranks_of_server - 1) / platform.ranks_of_server;
  const std::string_view shipped = servers > 1 ? platform.servers : platform.server;
  writer.set(from, "platform",
             ranks > platform.most_ranks ? fmt::format("{}:{}", platform.soc, servers) : std::string(shipped), line);
  if (ranks == 0) {
    writer.leave_out("ranks", "the script does not say how many there are: --npus, or all of the platform");
    return;
  }
  writer.set(fmt::format("{} ranks of the launcher", ranks), "npus", std::to_string(ranks), line);
}

}  // namespace hcclsim::study
