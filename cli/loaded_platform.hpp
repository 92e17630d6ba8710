#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/hccl_options.hpp"
#include "cli/options/parse/origins.hpp"
#include "cli/options/rank_table_option.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/settings/config.hpp"
#include "sim/cluster.hpp"

/// The platform that a command works on, under what the user sets of HCCL: every command that has a platform obeys the
/// same rank tables and variables in the same way, and begins here.
namespace hcclsim::cli {

struct PlatformChoice {
  std::string platform;  ///< name or file; empty: none
  RankTableChoice rank_table{};
  HcclOptions hccl_options{};                      ///< as given; what counts are the settings
  std::vector<hccl::HcclSetting> hccl_settings{};  ///< of environment and options
};

/// Adds --platform, --rank-table and the options of HCCL's variables. The description is that of --platform.
void add_platform_options(Command& command, const std::string& description, PlatformChoice& choice);
/// After parsing: completes what they say; throws Error(bad_input). `selecting` as in finish_rank_table_option. Where
/// there is no platform, --rank-table is an error and RANK_TABLE_FILE is not looked at.
void finish_platform_options(const OptionOrigins& origins, std::initializer_list<const char*> selecting,
                             PlatformChoice& choice);

/// A loaded platform with its ranks placed as the rank table says, its NPUs, its costs, and HCCL's settings checked for
/// them.
struct LoadedPlatform {
  /// `obeyed`: the variables of HCCL that have an effect on what the command does; HCCL_INTER_HCCS_DISABLE, which A3
  /// alone has, counts where it can. Changes the cluster, of which no route may have been asked for, and which must
  /// outlive the object. Throws Error(bad_input).
  LoadedPlatform(const RankTableChoice& choice, std::span<const hccl::HcclSetting> settings,
                 std::span<const std::string_view> obeyed, sim::Cluster& on);

  /// NPUs that take part: those of the rank table, else as many as --ranks says, 0 for all of the platform. Throws
  /// Error(bad_input, "option") for more than there are.
  [[nodiscard]] Rank participating(Rank asked_for) const;
  /// Adds to the notes, once, what HCCL_ALGO among the settings does not do to the collective.
  void note_algorithm(std::span<const hccl::HcclSetting> settings, const hccl::CollectiveRequest& request,
                      const hccl::Topology& topology);
  /// Throws Error(bad_input, "option") if `what`, such as a schedule's file, is for more ranks than there are.
  void require_ranks(const std::string& what, Rank ranks) const;

  std::vector<std::string> notes;       ///< sentences: ignored settings, fall-backs
  std::vector<std::string> soc_notes;   ///< the same of the NPUs' properties, which matter to kernels alone
  std::vector<std::string> unmodelled;  ///< settings of HCCL without effect
  std::string rank_table;               ///< its file; empty: none
  sim::Cluster& cluster;
  std::optional<Rank> placed;  ///< ranks of the rank table
  device::Soc soc;
  device::TaskCosts costs;
  hccl::HcclConfig config;
};

}  // namespace hcclsim::cli
