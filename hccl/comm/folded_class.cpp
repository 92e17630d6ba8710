#include "hccl/comm/folded_class.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "hccl/comm/communicator.hpp"

namespace hcclsim::hccl {
namespace {

constexpr std::size_t most_classes = 4;
constexpr std::size_t most_runs = 4;  // of ranks that follow each other, in a class

/// "0-7", "0,2,4", "0,8,..,4088" where all are as far apart, "0,1,3 and 9 more".
std::string ranks_text(std::span<const Rank> ranks) {
  std::size_t runs = 0;
  std::size_t shown = 0;  // ranks in these runs
  while (shown < ranks.size() && runs < most_runs) {
    ++shown;
    if (shown == ranks.size() || ranks[shown] != ranks[shown - 1] + 1) ++runs;
  }
  if (shown == ranks.size()) return rank_ranges(ranks);
  const auto uneven = [distance = ranks[1] - ranks[0]](Rank one, Rank next) { return next - one != distance; };
  if (std::adjacent_find(ranks.begin(), ranks.end(), uneven) == ranks.end()) {
    return fmt::format("{},{},..,{}", ranks[0], ranks[1], ranks.back());
  }
  return fmt::format("{} and {} more", rank_ranges(ranks.first(shown)), with_thousands(ranks.size() - shown));
}

}  // namespace

std::string folded_text(std::span<const FoldedClass> classes, Rank ranks) {
  std::string text = fmt::format("{} of {} ranks simulated, the others do the same as these at the same dates: ",
                                 with_thousands(classes.size()), with_thousands(ranks));
  const std::size_t shown = std::min(classes.size(), most_classes);
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{}{} for {}", i == 0 ? "" : "; ", classes[i].simulated, ranks_text(classes[i].ranks));
  }
  if (shown < classes.size()) text += fmt::format("; and {} more", with_thousands(classes.size() - shown));
  return text;
}

}  // namespace hcclsim::hccl
