// Rank tables, gradient splits and HCCL's environment variables.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hccl/comm/rank_table.hpp"
#include "hccl/parallel/segments/split.hpp"
#include "hccl/settings/config.hpp"
#include "tests/fuzz/targets.hpp"

namespace hcclsim::fuzz {
namespace {

/// The segments of 161 gradients of very different sizes, of which every one must be in one segment.
void resolve(const hccl::SplitStrategies& strategies) {
  std::vector<Bytes> sizes(161);
  for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] = Bytes{4} << (i * 7 % 23);
  std::uint32_t next = 0;
  for (const hccl::Segment& segment : strategies.resolve(hccl::world_group, sizes)) {
    require(segment.first == next && segment.last >= segment.first, "segments that overlap or leave gaps");
    next = segment.last + 1;
  }
  require(next == sizes.size(), "gradients without a segment");
}

}  // namespace

int fuzz_rank_table(Input input) {
  const std::string text = text_of(input);
  return attempt([&] {
    const hccl::CheckedRankTable checked = hccl::check_rank_table(text, "ranks.json");
    hccl::require_none(checked.problems, "ranks.json");
    require(checked.table.ranks() > 0, "a rank table without ranks");
    if (checked.table.version == hccl::RankTableVersion::group_list) return;
    const hccl::CheckedRankTable again = hccl::check_rank_table(hccl::write_rank_table(checked.table), "written.json");
    require(again.problems.empty(), "a rank table that is written is not read again");
    require(again.table.ranks() == checked.table.ranks(), "a rank table that is written has other ranks");
  });
}

int fuzz_split_lists(Input input) {
  const std::string text = text_of(input);
  const Verdict by_index = attempt([&] {
    hccl::SplitStrategies strategies(0, 8);
    strategies.set_split_strategy_by_idx(hccl::parse_index_list(text));
    resolve(strategies);
  });
  const Verdict by_size = attempt([&] {
    hccl::SplitStrategies strategies(0, 8);
    strategies.set_split_strategy_by_size(hccl::parse_size_list(text));
    resolve(strategies);
  });
  return by_index == accepted ? by_index : by_size;
}

/// A variable a line, NAME=VALUE, for every generation of the chip; of two settings of a variable the first counts.
int fuzz_hccl_variables(Input input) {
  const std::string text = text_of(input);
  std::vector<hccl::HcclSetting> settings;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string variable(line.substr(0, line.find('=')));
    if (hccl::find_setting(settings, variable) != nullptr || variable.size() == line.size()) continue;
    settings.push_back({variable, std::string(line.substr(variable.size() + 1)), variable});
  }
  int verdict = refused;
  for (const auto generation : {device::Generation::a1, device::Generation::a2, device::Generation::a3}) {
    std::vector<std::string> notes;
    const Verdict one = attempt([&] {
      const hccl::HcclConfig config = hccl::read_hccl_config(settings, generation, notes);
      require(config.exec_timeout > 0 && config.buffer_bytes > 0, "a setting out of its range");
    });
    if (one == accepted) verdict = accepted;
  }
  return verdict;
}

}  // namespace hcclsim::fuzz
