#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "device/soc.hpp"
#include "device/task_cost.hpp"
#include "hccl/collective/selection/selection.hpp"
#include "hccl/settings/config.hpp"
#include "sim/cluster.hpp"
#include "sim/platform/edit.hpp"

/// The platform that an experiment works on, under what the user sets of HCCL: everything that has a platform obeys the
/// same rank tables and variables in the same way, and begins here.
namespace hcclsim::study {

/// Which NPUs the ranks are on: those of the rank table, which is that of --rank-table, else RANK_TABLE_FILE's, as HCCL
/// does; or those of a list.
struct RankTableChoice {
  std::string file;               ///< empty: the platform's order
  bool of_environment = false;    ///< the file is RANK_TABLE_FILE's
  std::string not_used_beside{};  ///< option for which RANK_TABLE_FILE, which is set, is not used; empty: none
  /// In place of a rank table, NPUs of the platform by its numbers, in the order of the ranks; empty: no list.
  std::vector<Rank> npus_list{};
};

struct PlatformSpec {
  std::string file{};  ///< or the name of a shipped one
  RankTableChoice rank_table{};
  std::vector<hccl::HcclSetting> hccl_settings{};  ///< of environment and options
  std::vector<sim::PlatformEdit> edits{};          ///< of what the file says
  std::optional<sim::Routing> routing{};           ///< of fabrics; none: as the file says
};

/// What results say of the platform on which they were found.
struct PlatformFacts {
  std::string platform{};                 ///< name of the file
  std::string rank_table{};               ///< its file; empty: none
  std::string npu{};                      ///< "Ascend910A"
  Rank npus = 0;                          ///< that take part: of the rank table or list, else of the platform
  std::vector<std::string> unmodelled{};  ///< settings of HCCL without effect
  std::vector<std::string> notes{};       ///< sentences: ignored settings, fall-backs
};

/// How connections over RDMA are cut into queue pairs: HCCL does so in op mode alone, and not on 910A.
inline constexpr std::array<std::string_view, 2> queue_pairs{"HCCL_RDMA_QPS_PER_CONNECTION", "HCCL_MULTI_QP_THRESHOLD"};

/// What has an effect on schedules that are made: how their bytes go and how long their ranks wait for each other.
inline constexpr std::array<std::string_view, 2> obeyed_by_schedules{"HCCL_EXEC_TIMEOUT", "HCCL_INTER_HCCS_DISABLE"};

/// A loaded platform with its ranks placed as the rank table says, its NPUs, its costs, and HCCL's settings checked for
/// them.
struct LoadedPlatform : PlatformFacts {
  /// `obeyed`: the variables of HCCL that have an effect on what the command does; HCCL_INTER_HCCS_DISABLE, which A3
  /// alone has, counts where it can, and the number of queue pairs where they go ways of their own. Changes the
  /// cluster, of which no route may have been asked for, and which must outlive the object. Throws Error(bad_input).
  LoadedPlatform(const RankTableChoice& choice, std::span<const hccl::HcclSetting> settings,
                 std::span<const std::string_view> obeyed, sim::Cluster& on);

  /// NPUs that take part: those of the rank table, else as many as --ranks says, 0 for all of the platform. Throws
  /// Error(bad_input, "option") for more than there are.
  [[nodiscard]] Rank participating(Rank asked_for) const;
  /// Adds to the notes, once, what HCCL_ALGO among the settings does not do to the collective.
  void note_algorithm(std::span<const hccl::HcclSetting> settings, const hccl::CollectiveRequest& request,
                      const hccl::Topology& topology);
  /// Adds to the notes what HCCL has against these NPUs as a group, if anything.
  void note_group(std::span<const Rank> ranks);
  /// Throws Error(bad_input, "option") if `what`, such as a schedule's file, is for more ranks than there are.
  void require_ranks(const std::string& what, Rank ranks) const;
  /// Throws Error(bad_input) for NPUs that are not there.
  void require_npus(const std::string& what, const std::vector<Rank>& npus) const;

  [[nodiscard]] const PlatformFacts& facts() const { return *this; }

  std::vector<std::string> soc_notes;  ///< sentences on the NPUs' properties, which matter to kernels alone
  sim::Cluster& cluster;
  std::optional<Rank> placed;  ///< ranks of the rank table, or of the list of NPUs
  std::string table_group;     ///< how the rank table calls the group of all ranks; empty: it does not
  device::Soc soc;
  device::TaskCosts costs;  ///< in the mode of HCCL_OP_EXPANSION_MODE, but for AIV, which depends on the collective
  hccl::HcclConfig config;
};

}  // namespace hcclsim::study
