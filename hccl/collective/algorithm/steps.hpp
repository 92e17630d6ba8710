#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hccl/collective/algorithm/builder.hpp"

/// The steps of algorithms with logarithmically many steps. Every step has its own notify slots, because its peers
/// differ from those of the step before. A step moves all its pieces in one transfer, for one alpha.
///
///     alpha of a step   post "my memory is free" to the writer, wait for the reader's post, write, post "written",
///                       wait
namespace hcclsim::hccl {

/// ceil(log2 size): the number of steps after which every position can have heard from every other.
[[nodiscard]] std::int32_t steps_to_all(Rank size);

/// Every position writes what `sent` says to the position `offset` further on, where it replaces what is there.
[[nodiscard]] Loop shift(Builder& builder, const Level& level, std::int32_t offset, const std::vector<Cut>& sent);
/// The same with a reduction there; `received` says where the writer's bytes go, in the same order.
[[nodiscard]] Loop shift_and_reduce(Builder& builder, const Level& level, std::int32_t offset,
                                    const std::vector<Cut>& sent, const std::vector<Cut>& received);
/// Adds a stage in which all members of the level run these loops; no stage if there are none.
void add_loops(Builder& builder, const Level& level, const std::string& name, std::vector<Loop> loops);

/// Some positions of a group, and as many others, paired in this order.
struct Pairs {
  std::vector<Rank> from;
  std::vector<Rank> to;
};
/// What the first of each pair writes to the second.
struct PairWrite {
  Pairs pairs;
  std::vector<Cut> cuts;
};
/// Adds a stage in which pairs of places (0 … span−1 of the level's group) write at the same time; no rank is in two
/// pairs.
void add_writes(Builder& builder, const Level& level, const std::string& name, const std::vector<PairWrite>& writes);

/// Senders v = first, first + sender_step, … write `shares` shares of the payload, from number v + distance on and
/// share_step apart, to v + distance.
struct TreeWrite {
  Rank first = 0;
  Rank senders = 0;
  Rank sender_step = 1;
  Rank distance = 1;
  std::uint32_t shares = 1;
  std::uint32_t share_step = 1;
};
/// Stages of a scatter, one for each list: numbers v are those of `order`, places of the level's group with the root
/// first.
void add_scatter(Builder& builder, const Level& level, const std::string& name, const std::vector<Rank>& order,
                 const std::vector<std::vector<TreeWrite>>& stages);

}  // namespace hcclsim::hccl
