#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/strategies/options.hpp"
#include "study/run/experiment/sharding/find_strategies.hpp"
#include "study/run/split_search/split_search.hpp"
#include "study/spec/run_spec.hpp"

/// How the operators of a run's network are to be cut: a search (hccl/strategies/) finds strategies by a cost model of
/// its own, and the simulation says what they are worth, beside data parallelism and the usual ways to cut a
/// transformer. MindSpore's cost models count bytes, not seconds: what they find need not be the fastest. The exact
/// search, their judge, counts simulated steps (least_choice.hpp).
namespace hcclsim::study {

struct StrategySearchSpec {
  RunSpec run{};  ///< without strategies; without a number of samples it has samples_per_npu for each NPU
  StrategySearchMode mode = StrategySearchMode::recursive_programming;
  hccl::SearchOptions options{};  ///< but for the devices
  bool memory_given = false;      ///< in the options; else only the HBM of the NPU limits the exact search
  /// File of strategies that propagation begins at, and that dynamic programming and the exact search leave as they
  /// are; empty: none. The recursive search takes none.
  std::string given{};
  bool simulates = true;  ///< what was found, and what it is compared with
  std::string save{};     ///< file of the strategies that were found; empty: none
};

/// A step with strategies of one kind.
struct StrategyTrial {
  std::string name;  ///< "dynamic_programming", "data parallel", "model parallel 4"
  Seconds step = 0;
  Bytes hbm_peak = 0;     ///< of the NPU that needs most
  bool fits = true;       ///< into its HBM
  std::string refused{};  ///< why it could not be simulated; empty: it was
};

struct StrategySearchResult {
  StrategySearchMode mode = StrategySearchMode::recursive_programming;
  std::string network;
  std::string platform;
  std::string npu;
  Rank npus = 0;
  std::uint32_t stages = 1;
  Rank devices = 1;           ///< of a stage
  std::uint32_t samples = 0;  ///< of a micro-batch, over all devices
  FoundStrategies found;
  std::vector<StrategyTrial> compared;  ///< what was found first; empty: nothing was simulated
};

/// Searches in a child of this process, and simulates in others. `stage` is told what is being done. Throws
/// Error(bad_input) for what is wrong with the run, the options and files.
[[nodiscard]] StrategySearchResult search_strategies(const StrategySearchSpec& spec, const Stage& stage);

}  // namespace hcclsim::study
