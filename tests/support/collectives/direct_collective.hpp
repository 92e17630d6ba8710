#pragma once

#include <vector>

#include "hccl/schedule/schedule.hpp"

/// Every collective in the plainest way, written rank by rank: everybody says that it is ready, reads what it needs
/// straight from where it lies, and says that it has. Tests use it as it is, or put defects into it.
namespace hcclsim::test {

/// Tasks of one rank, in this order.
struct DirectRank {
  std::vector<hccl::Task> own;          ///< copies within the rank
  std::vector<hccl::Task> ready_posts;  ///< to the other ranks, ascending
  std::vector<hccl::Task> ready_waits;
  std::vector<hccl::Task> reads;  ///< by rank they come from, ascending
  std::vector<hccl::Task> read_posts;
  std::vector<hccl::Task> read_waits;
};

class DirectCollective {
 public:
  explicit DirectCollective(const hccl::Operation& operation);

  /// Not allreduce and alltoall in place, which need other memory.
  [[nodiscard]] static bool suits(const hccl::Operation& operation);

  [[nodiscard]] DirectRank& rank(Rank number) { return ranks_[number]; }
  [[nodiscard]] hccl::Schedule schedule() const;

  /// A peer by its rank, in tasks of any rank.
  [[nodiscard]] static hccl::Peer peer(Rank rank);
  /// Block `block` of a buffer, or all of one that has a single block.
  [[nodiscard]] hccl::Range block(hccl::Buffer buffer, Rank block) const;

 private:
  struct Need {
    Rank source = 0;
    Rank block = 0;  ///< there
    Rank to = 0;     ///< here
  };
  [[nodiscard]] std::vector<Need> needs(Rank rank) const;
  void write(Rank rank);

  hccl::Operation operation_;
  std::vector<DirectRank> ranks_;
};

}  // namespace hcclsim::test
