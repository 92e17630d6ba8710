#include "cli/options/parse/common.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "hccl/collective/algorithm.hpp"

namespace hcclsim::cli {

Option& add_levels_option(Command& command, std::string& levels) {
  return command
      .add("--levels", parsed(hccl::parse_levels, levels),
           "Levels of a hierarchy from the innermost on, such as 2:ring,8:mesh,4:nhr")
      .value_name("LIST");
}

Option& add_format_option(Command& command, std::string& format, const std::vector<std::string>& words) {
  const std::string help =
      words.size() == 2 ? words[0] + " or " + words[1] : words[0] + ", " + words[1] + " or " + words[2];
  return command.add("--format", one_of(words, format), help).value_name("TEXT").with_default();
}

Option& add_launch_option(Command& command, std::string& launch, const std::string& help) {
  return command.add("--launch", one_of({"graph", "op"}, launch), help).value_name("TEXT").with_default();
}

Option& add_output_option(Command& command, const std::string& names, std::string& file) {
  return command.add(names, written_file(file), "File to write, - for standard output").with_default();
}

void add_platform_edits(Command& command, std::vector<sim::PlatformEdit>& edits) {
  struct Given {
    std::vector<sim::PlatformEdit> set;
    std::string hosts;
    std::string soc = "Ascend910B2";
  };
  const auto given = std::make_shared<Given>();
  const auto put_together = [given, &edits] {
    edits.clear();
    if (!given->hosts.empty()) edits.push_back(sim::npus_edit(given->hosts, given->soc));
    edits.insert(edits.end(), given->set.begin(), given->set.end());
  };
  Value value{.check = [](const std::string& text) { static_cast<void>(sim::parse_platform_edit(text)); },
              .take =
                  [given, put_together](const std::vector<std::string>& texts) {
                    given->set.clear();
                    for (const std::string& text : texts) given->set.push_back(sim::parse_platform_edit(text));
                    put_together();
                  },
              .name = "TARGET=VALUE",
              .count = Count::list};
  command.add("--set", value,
              "Change what the platform file says, such as 'link[hccs*].bandwidth=20GBps'; may be repeated");
  const auto text_of = [put_together, given](std::string Given::*field) {
    return parsed([](const std::string& text) { return text; },
                  [put_together, given, field](const std::string& text) {
                    *given.*field = text;
                    put_together();
                  });
  };
  command.add("--npu-hosts", text_of(&Given::hosts), "Hosts of the platform file that are NPUs, where it does not say")
      .value_name("PATTERN");
  command.add("--soc", text_of(&Given::soc), "What these NPUs are").value_name("NAME").with_default(given->soc);
}

Option& add_faults(Command& command, std::vector<sim::Fault>& faults) {
  Value value{.check = [](const std::string& text) { static_cast<void>(sim::parse_faults(text)); },
              .take =
                  [&faults](const std::vector<std::string>& given) {
                    faults.clear();
                    for (const std::string& text : given) {
                      for (sim::Fault& fault : sim::parse_faults(text)) faults.push_back(std::move(fault));
                    }
                  },
              .name = "FAULT",
              .count = Count::several};
  return command
      .add("--fault", value,
           "What goes wrong at a simulated date: 'link[hccs-0-1].bandwidth=0 at 5ms' (or 12.5GBps, 50%), "
           "'link[..].latency=10us from 1ms to 2ms', 'npu[3].lost at 5ms', .paused from .. to .., .speed=0.5, "
           ".late=3ms; may be repeated")
      .with_commas();
}

void add_routing_options(Command& command, std::optional<sim::Routing>& routing, std::uint32_t& seeds) {
  command
      .add("--routing", parsed(sim::parse_routing, routing),
           "How a fabric of several ways chooses one: dmodk, ecmp[:seed=N] (by hash), ideal, file (SimGrid's routes) "
           "[as the platform file says]")
      .value_name("TEXT");
  constexpr std::uint32_t usual_seeds = 20;
  constexpr std::uint64_t most_seeds = 10000;
  seeds = usual_seeds;
  command
      .add("--routing-seeds", whole_number(seeds, 0, most_seeds),
           "With routing ecmp: simulate so many seeds, from its own on, and ideal routing, for mean and worst")
      .value_name("UINT")
      .with_default();
}

}  // namespace hcclsim::cli
