#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "study/files/foreign/emit/emit.hpp"

/// The ways to spread a training step over NPUs: parts of the samples, of the positions, of the operators, of the
/// experts and of the layers, the size of micro-batches, what is computed again and what replicas share.
namespace hcclsim::study {

/// What there is to spread.
struct PlannedNetwork {
  std::uint32_t layers = 0;      ///< that stages can be cut between
  std::uint32_t heads = 0;       ///< of keys and values, which model parallelism must divide; 0: it cannot be cut
  std::uint32_t features = 0;    ///< of a row, likewise
  std::uint32_t vocabulary = 0;  ///< rows of the table of tokens; 0: there is none
  std::uint32_t rows = 0;        ///< positions of a sample, which sequence and context parallelism cut
  std::uint32_t queries = 0;     ///< heads of queries, which all-to-alls of context parallelism share out
  std::uint32_t experts = 0;     ///< of a layer; 0: there are none
};

/// Where it is spread.
struct PlannedNpus {
  Rank npus = 1;
  std::uint32_t of_server = 1;  ///< those of them that are in the first one's server
};

/// Options of `run` and their values.
using PlanOptions = std::vector<std::pair<std::string, std::string>>;

/// What a search may choose from. Lists that are empty mean everything that is possible.
struct PlanSpace {
  Rank npus = 1;
  std::uint32_t global_batch = 1;  ///< samples of all replicas in a step
  std::uint32_t most_model = 8;    ///< ranks that share operators at most: those of a server
  /// Only plans that the launch file of a program can say; none: all. Megatron cuts the table of tokens with other
  /// operators, its replicas share optimizer states or nothing, its recomputed layers repeat their collectives.
  /// mindformers has MindSpore's optimizer parallel. FSDP2 shares parameters, positions and experts, and no operators.
  std::optional<LaunchProgram> said_by{};
  std::vector<std::uint32_t> model{};
  std::vector<std::uint32_t> context{};  ///< ranks that share positions; empty: parts of a sequence stay long enough
  std::vector<std::string> context_kind{};
  std::vector<std::uint32_t> experts{};  ///< ranks that share experts
  bool whole_experts = false;            ///< ranks that share other operators have experts as wholes
  std::vector<std::uint32_t> stages{};
  std::vector<std::uint32_t> micro_batch{};  ///< samples
  std::vector<std::uint32_t> chunks{};       ///< of a stage; more than one: the schedule is interleaved
  std::vector<std::string> recompute{};      ///< none, half of the layers and full where it is empty
  std::vector<std::string> optimizer{};      ///< kinds of optimizer parallelism
  std::optional<bool> sequence{};            ///< sequence parallelism; none: both ways
  std::optional<bool> vocabulary{};          ///< likewise
  std::optional<bool> repeat{};              ///< recomputed layers repeat collectives of cut operators; likewise
  /// How replicas that have everything whole reduce their gradients; a way without options is that of `run`.
  std::vector<PlanOptions> reductions{{}};
};

/// Positions that a rank keeps at least where the search itself shares them: with fewer of them parts of a sequence are
/// exchanged for little work.
inline constexpr std::uint32_t least_positions = 2048;
/// Servers whose ranks share experts at most where the search itself chooses them: all-to-alls over more of them take
/// long, and so does their simulation.
inline constexpr std::uint32_t most_servers_of_experts = 4;

/// All plans of the space that the sizes of the network allow, none twice; those that differ in nothing but the size of
/// micro-batches follow each other. NPUs = data × context × model × stages, and experts are shared by a divisor of the
/// ranks that have rows of their own. The samples of a replica are whole micro-batches, of which a pipeline has at
/// least as many as stages, and an interleaved one a multiple of them. Where no list says otherwise, powers of two are
/// tried, and as chunks all numbers that the layers of a stage can be cut into. Parts of a pipeline that do not divide
/// the layers have one more or less of them. Throws Error(bad_input, "option") if there are none.
[[nodiscard]] std::vector<PlanOptions> plans_of(const PlanSpace& space, const PlannedNetwork& network);

}  // namespace hcclsim::study
