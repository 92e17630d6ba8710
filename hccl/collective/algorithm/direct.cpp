#include "hccl/collective/algorithm/direct.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace hcclsim::hccl {
namespace {

/// Every rank reads from the rank before it.
Schedule to_the_next(const Operation& operation) {
  Builder builder(operation, "direct");
  const std::uint16_t group = builder.add_group(Group::block(operation.ranks));
  Strand strand{.group = group};
  if (operation.ranks == 1) {
    strand.loops = {{.tasks = {copy(input({}), output({}))}}};
  } else {
    const std::int32_t ready = builder.reserve_notifies(2);
    const Peer before = peer_at(group, {-1});
    const Task read = transfer(TaskKind::read, before, input({}), output({}));
    strand.loops = {{.tasks = step(peer_at(group, {1}), before, {ready}, {ready + 1}, read)}};
  }
  builder.add_stage("send to the next rank").strands = {std::move(strand)};
  return std::move(builder).finish();
}

/// Messages from and to given ranks.
class Messages {
 public:
  explicit Messages(const Operation& operation)
      : operation_(operation), builder_(operation, "direct"), all_(builder_.add_group(Group::block(operation.ranks))) {}

  Schedule build() && {
    number_slots();
    std::vector<Strand> strands;
    for (Rank rank = 0; rank < operation_.ranks; ++rank) add_strands(rank, strands);
    if (!strands.empty()) builder_.add_stage("send and receive").strands = std::move(strands);
    return std::move(builder_).finish();
  }

 private:
  [[nodiscard]] std::size_t pair(Rank source, Rank destination) const {
    return std::size_t{source} * operation_.ranks + destination;
  }
  [[nodiscard]] bool has_message(Rank source, Rank destination) const {
    return operation_.counts.counts()[pair(source, destination)] > 0;
  }

  /// Slot 0 of a rank means that the reader of the current message has read. There is one more slot for each sender:
  /// "you may read".
  void number_slots() {
    slots_.resize(operation_.counts.counts().size());
    std::int32_t most = 0;
    for (Rank receiver = 0; receiver < operation_.ranks; ++receiver) {
      std::int32_t slot = 0;
      for (Rank distance = 1; distance < operation_.ranks; ++distance) {
        const Rank sender = below(receiver, distance);
        if (has_message(sender, receiver)) slots_[pair(sender, receiver)] = ++slot;
      }
      most = std::max(most, slot);
    }
    if (most > 0) static_cast<void>(builder_.reserve_notifies(static_cast<std::uint32_t>(most) + 1));
  }

  [[nodiscard]] Rank below(Rank rank, Rank distance) const {
    return (rank + operation_.ranks - distance) % operation_.ranks;
  }

  [[nodiscard]] std::vector<Cut> block(Rank number) const {
    return {{.kind = Cut::Kind::block,
             .group = all_,
             .parts = operation_.ranks,
             .index = {static_cast<std::int32_t>(number)}}};
  }

  void add_strands(Rank rank, std::vector<Strand>& strands) {
    std::vector<Task> sends;
    std::vector<Task> receives;
    if (has_message(rank, rank)) sends.push_back(copy(input(block(rank)), output(block(rank))));
    for (Rank distance = 1; distance < operation_.ranks; ++distance) {
      const Rank receiver = (rank + distance) % operation_.ranks;
      const auto offset = static_cast<std::int32_t>(distance);
      if (has_message(rank, receiver)) {
        sends.insert(sends.end(), {post(peer(rank, offset), {slots_[pair(rank, receiver)]}), wait({0})});
      }
      const Rank sender = below(rank, distance);
      if (!has_message(sender, rank)) continue;
      receives.insert(receives.end(),
                      {wait({slots_[pair(sender, rank)]}),
                       transfer(TaskKind::read, peer(rank, -offset), input(block(rank)), output(block(sender))),
                       post(peer(rank, -offset), {0})});
    }
    if (sends.empty() && receives.empty()) return;
    const std::uint16_t itself = builder_.add_group(Group::ordered(operation_.ranks, {rank}));
    const std::uint32_t receiving_queue = sends.empty() ? 0 : 1;
    if (!sends.empty()) strands.push_back({.group = itself, .loops = {{.tasks = std::move(sends)}}});
    if (receives.empty()) return;
    strands.push_back({.group = itself, .first_queue = receiving_queue, .loops = {{.tasks = std::move(receives)}}});
  }

  /// The rank `offset` above `rank`, which is position 0 of its strand's group.
  [[nodiscard]] Peer peer(Rank rank, std::int32_t offset) const {
    return peer_at(all_, {static_cast<std::int32_t>(rank) + offset});
  }

  Operation operation_;
  Builder builder_;
  std::uint16_t all_;
  std::vector<std::int32_t> slots_;  ///< of every pair
};

}  // namespace

Schedule direct_send_recv(const Operation& operation) {
  if (operation.counts.empty()) return to_the_next(operation);
  return Messages(operation).build();
}

}  // namespace hcclsim::hccl
