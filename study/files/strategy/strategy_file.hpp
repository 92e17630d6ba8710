#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "hccl/parallel/layout/tensor_layout.hpp"

/// The files of MindSpore's strategy_ckpt_config and group_ckpt_save_file. A name that ends in ".json" is JSON, any
/// other ProtoBuf; files of groups are ProtoBuf. They are written whole, readable by their owner alone.
namespace hcclsim::study {

/// Of an operator: how many parts each axis of each input is cut into.
struct NodeStrategy {
  std::string name;  ///< "<primitive>_<parameter>"
  std::uint32_t stage = 0;
  std::vector<std::vector<std::uint32_t>> inputs;
  // What MindSpore's files do not have, and its readers leave out:
  std::vector<std::uint32_t> output{};         ///< parts of a sum that is scattered; empty: every device gets all of it
  bool gathers_again = false;                  ///< inputs that are put together are not kept for the backward pass
  std::vector<std::uint32_t> device_matrix{};  ///< of a strategy by a Layout: sizes of the axes of the devices; and
  std::vector<hccl::TensorMap> maps{};         ///< … what cuts each axis of each input
  std::optional<hccl::TensorMap> output_map{};  ///< … and of the output
  std::vector<std::uint32_t> manual_split{};    ///< rows of the parts of a table
  bool on_host = false;                         ///< MindSpore's primitive_target "CPU"
  std::uint32_t group_size = 0;                 ///< devices that share statistics of a batch norm; 0: all that can
  bool recompute = false;                       ///< its results are not kept for the backward pass

  bool operator==(const NodeStrategy&) const = default;
};

/// Of a parameter.
struct ParameterLayout {
  std::string name;
  std::vector<std::uint32_t> dev_matrix;
  std::vector<std::int32_t> tensor_map;  ///< axis of dev_matrix, counted from the right, that cuts each axis; −1: none
  std::vector<std::int64_t> tensor_shape;      ///< of the part on a device; JSON alone has it
  std::int32_t field = 0;                      ///< fields of an embedding; 0 otherwise
  std::int32_t shard_step = 0;                 ///< distance of the ranks that share it
  std::int32_t shard_size = 0;                 ///< how many they are; 0: it is kept whole
  std::vector<std::int64_t> split_shape{};     ///< of a table that is split by hand
  std::vector<std::int64_t> indices_offset{};  ///< likewise

  bool operator==(const ParameterLayout&) const = default;
};

struct StrategyMap {
  std::uint32_t current_stage = 0;  ///< raised by one with every save
  std::vector<NodeStrategy> nodes;
  std::vector<ParameterLayout> parameters;

  bool operator==(const StrategyMap&) const = default;
};

/// The groups that a rank is in, and the ranks that keep the same weights as it does.
struct GroupMap {
  std::vector<std::pair<std::string, std::vector<Rank>>> groups;
  std::vector<Rank> restore_ranks;

  bool operator==(const GroupMap&) const = default;
};

/// Throws Error(bad_input, "runtime-error") if there is no such file, "strategy" if it cannot be understood.
[[nodiscard]] StrategyMap read_strategies(const std::string& path);
[[nodiscard]] GroupMap read_groups(const std::string& path);

/// Makes folders that are missing. A file that is there gives the number of its saves. Throws Error(bad_input,
/// "output").
void write_strategies(const std::string& path, StrategyMap strategies);
void write_groups(const std::string& path, const GroupMap& groups);

/// "hccl_world_group" of all ranks, else "<ranks>-<hash of the ranks>": the same ranks have the same name.
[[nodiscard]] std::string group_name(const std::vector<Rank>& ranks, Rank world);

}  // namespace hcclsim::study
