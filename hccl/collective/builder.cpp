#include "hccl/collective/builder.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace hcclsim::hccl {

Builder::Builder(std::string collective, std::string algorithm, const CollectiveSpec& spec) {
  if (spec.ranks == 0) internal_error("a collective needs at least one rank");
  if (spec.alignment == 0 || spec.alignment % size_of(spec.type) != 0) {
    internal_error("alignment {} is not a multiple of the element size {}", spec.alignment, size_of(spec.type));
  }
  schedule_.collective = std::move(collective);
  schedule_.algorithm = std::move(algorithm);
  schedule_.ranks = spec.ranks;
  schedule_.elements = spec.elements;
  schedule_.type = spec.type;
  schedule_.op = spec.op;
  schedule_.alignment = spec.alignment;
}

std::uint16_t Builder::add_group(Group group) {
  schedule_.groups.push_back(std::move(group));
  return static_cast<std::uint16_t>(schedule_.groups.size() - 1);
}

std::int32_t Builder::reserve_notifies(std::uint32_t count) {
  const auto first = static_cast<std::int32_t>(schedule_.notifies);
  schedule_.notifies += count;
  return first;
}

Bytes Builder::reserve_scratch(std::uint32_t slots, const std::vector<Cut>& cuts) {
  Bytes length = schedule_.payload();
  for (const Cut& cut : cuts) {
    const Bytes even = (length + cut.parts - 1) / cut.parts;
    const Bytes slice = (even + schedule_.alignment - 1) / schedule_.alignment * schedule_.alignment;
    // Half of all slices is the largest window that halving leaves.
    const Bytes count = cut.kind == Cut::Kind::halving ? cut.parts / 2 : cut.count;
    length = std::min(length, slice * count);
  }
  const Bytes stride =
      std::max((length + schedule_.alignment - 1) / schedule_.alignment, Bytes{1}) * schedule_.alignment;
  schedule_.scratch = std::max(schedule_.scratch, stride * slots);
  return stride;
}

Stage& Builder::add_stage(std::string name) {
  schedule_.stages.push_back({std::move(name), {}});
  return schedule_.stages.back();
}

Schedule Builder::finish() && {
  for (const Stage& stage : schedule_.stages) {
    for (const Strand& strand : stage.strands) {
      schedule_.queues = std::max(schedule_.queues, strand.first_queue + strand.queues);
    }
  }
  return std::move(schedule_);
}

Range output(std::vector<Cut> cuts) { return {Buffer::output, std::move(cuts), {}, 0}; }

Range scratch(std::vector<Cut> cuts, Linear slot, Bytes stride) {
  return {Buffer::scratch, std::move(cuts), slot, stride};
}

std::vector<Cut> append(std::vector<Cut> cuts, Cut cut) {
  cuts.push_back(cut);
  return cuts;
}

Task post(Peer peer, Linear slot) { return {TaskKind::post, peer, slot, {}, {}, false}; }

Task wait(Linear slot) { return {TaskKind::wait, {}, slot, {}, {}, false}; }

Task transfer(TaskKind kind, Peer peer, Range source, Range destination) {
  return {kind, peer, {}, std::move(source), std::move(destination), false};
}

Task reduce(Range source, Range destination, bool by_core) {
  return {TaskKind::reduce, {}, {}, std::move(source), std::move(destination), by_core};
}

}  // namespace hcclsim::hccl
