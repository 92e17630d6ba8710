#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "device/soc.hpp"

/// HCCL_ALGO: which algorithms HCCL shall use between servers (level 1) and between super-pods (level 2). Inside a
/// server (level 0) it chooses by itself, which is written as NA. There is one choice for all operators, or one per
/// operator:
///
///     level0:NA;level1:NHR;level2:ring
///     allreduce=level0:NA;level1:ring/allgather=level0:NA;level1:H-D_R/others=level1:NHR
///
/// Levels may be in any order; HCCL chooses for levels that are not named. Spaces are ignored. Names are
/// case-sensitive, as in HCCL. Sources: HCCL's documentation of the variable and of the algorithms that each product
/// has.
namespace hcclsim::hccl {

/// An algorithm of one level.
enum class LevelAlgorithm : std::uint8_t {
  automatic,  ///< as HCCL chooses
  ring,
  halving_doubling,  ///< "H-D_R"
  nhr,
  nhr_v1,
  nb,
  ahc,
  pipeline,
  pairwise,
};

/// As HCCL_ALGO spells it; "NA" for automatic.
[[nodiscard]] std::string_view name_of(LevelAlgorithm algorithm);

/// The operators that HCCL_ALGO distinguishes; forms with counts (V, VC) belong to the plain one.
enum class AlgoOperator : std::uint8_t { allgather, reduce_scatter, allreduce, broadcast, reduce, scatter, alltoall };
inline constexpr std::size_t algo_operators = 7;

/// As HCCL_ALGO spells it: "allgather", "reducescatter", …
[[nodiscard]] std::string_view name_of(AlgoOperator op);

struct AlgoLevels {
  LevelAlgorithm between_servers = LevelAlgorithm::automatic;
  /// Between super-pods. AHC if level 1 is AHC, even if another algorithm was asked for, because AHC spans both levels.
  LevelAlgorithm between_super_pods = LevelAlgorithm::automatic;
};

struct AlgoSetting {
  std::array<AlgoLevels, algo_operators> operators;

  [[nodiscard]] const AlgoLevels& of(AlgoOperator op) const { return operators[static_cast<std::size_t>(op)]; }
  [[nodiscard]] AlgoLevels& of(AlgoOperator op) { return operators[static_cast<std::size_t>(op)]; }
};

/// Reads the value of HCCL_ALGO; throws Error(bad_input, "environment") that says which part is wrong and what is
/// accepted, without naming the variable. Blank: all automatic.
[[nodiscard]] AlgoSetting parse_algo_setting(std::string_view text);

/// Whether products of the generation have the algorithm at level 1 for the operator; if not, HCCL chooses by itself.
[[nodiscard]] bool has_between_servers(device::Generation generation, AlgoOperator op, LevelAlgorithm algorithm);
/// The same for level 2, which A3 alone has.
[[nodiscard]] bool has_between_super_pods(device::Generation generation, AlgoOperator op, LevelAlgorithm algorithm);
/// `levels` as they apply on products of the generation: automatic where these do not have the algorithm.
[[nodiscard]] AlgoLevels available(AlgoLevels levels, device::Generation generation, AlgoOperator op);

}  // namespace hcclsim::hccl
