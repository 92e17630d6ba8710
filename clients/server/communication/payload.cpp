#include "clients/server/communication/payload.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace hcclsim::clients {
namespace {

void gather(const Pieces& pieces, std::byte* to) {
  for (const DeviceSpan& piece : pieces) {
    std::memcpy(to, piece.data, piece.bytes);
    to += piece.bytes;
  }
}

void scatter(const std::byte* from, const Pieces& pieces) {
  for (const DeviceSpan& piece : pieces) {
    std::memcpy(piece.data, from, piece.bytes);
    from += piece.bytes;
  }
}

Bytes bytes_of(const Pieces& pieces) {
  Bytes bytes = 0;
  for (const DeviceSpan& piece : pieces) bytes += piece.bytes;
  return bytes;
}

bool overlap(const Pieces& some, const Pieces& others) {
  for (const DeviceSpan& one : some) {
    for (const DeviceSpan& other : others) {
      if (one.data < other.data + other.bytes && other.data < one.data + one.bytes) return true;
    }
  }
  return false;
}

}  // namespace

Payload::Payload(std::shared_ptr<const hccl::Schedule> schedule, std::shared_ptr<const hccl::DataFlow> flow)
    : schedule_(std::move(schedule)), flow_(std::move(flow)), states_(schedule_->ranks) {}

void Payload::arrive(Rank rank, RankBuffers buffers, device::Overflow overflow) {
  State& state = states_[rank];
  state.buffers = std::move(buffers);
  state.arrived = true;
  overflow_ = overflow;
  ++arrived_;
}

std::vector<std::byte> Payload::given_by(const State& state, Rank rank) const {
  const hccl::Buffer buffer = schedule_->in_place ? hccl::Buffer::output : hccl::Buffer::input;
  std::vector<std::byte> bytes(schedule_->size(buffer, rank));
  if (state.ended) return state.kept;
  if (state.arrived) gather(schedule_->in_place ? state.buffers.output : state.buffers.input, bytes.data());
  return bytes;
}

void Payload::end(Rank rank, device::WorkerPool& workers) {
  State& state = states_[rank];
  if (!executed_) {
    if (arrived_ == states_.size()) {
      execute(nullptr, workers);
      executed_ = true;
    } else {
      std::vector<std::byte> given = given_by(state, rank);
      execute(&state, workers);
      state.kept = std::move(given);
    }
  }
  state.ended = true;
  ++ended_;
  state.buffers = {};
}

void Payload::execute(const State* only, device::WorkerPool& workers) {
  const bool in_place = schedule_->in_place;
  std::vector<std::vector<std::byte>> copies;  // in the place of buffers that must not be used, or lie in pieces
  copies.reserve(2 * states_.size());
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::vector<std::pair<const std::byte*, const Pieces*>> results;
  for (Rank rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    const bool is_there = state.arrived && !state.ended;
    const bool writes = is_there && (only == nullptr || only == &state);
    const Pieces& input = state.buffers.input;
    const Pieces& output = state.buffers.output;
    if (!in_place) {
      const bool direct = is_there && input.size() == 1 && !overlap(input, output);
      if (!direct) copies.push_back(given_by(state, rank));
      inputs.push_back(direct ? input.front().data : copies.back().data());
    }
    if (writes && output.size() == 1) {
      outputs.push_back(output.front().data);
      continue;
    }
    copies.push_back(in_place ? given_by(state, rank)
                              : std::vector<std::byte>(schedule_->size(hccl::Buffer::output, rank)));
    outputs.push_back(copies.back().data());
    if (writes && bytes_of(output) > 0) results.emplace_back(copies.back().data(), &output);
  }
  hccl::execute(*flow_, inputs, outputs, overflow_, workers);
  for (const auto& [from, pieces] : results) scatter(from, *pieces);
}

}  // namespace hcclsim::clients
