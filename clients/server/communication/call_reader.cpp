#include "clients/server/communication/call_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <hccl/hccl_types.h>

#include "base/names.hpp"

namespace hcclsim::clients {

using hccl::Collective;

namespace {

struct Function {
  const char* name;
  Collective collective;
};

Function function_of(CollectiveCall call) {
  constexpr std::array<Function, 14> functions{{{"HcclAllReduce", Collective::allreduce},
                                                {"HcclBroadcast", Collective::broadcast},
                                                {"HcclReduceScatter", Collective::reduce_scatter},
                                                {"HcclReduceScatterV", Collective::reduce_scatter},
                                                {"HcclScatter", Collective::scatter},
                                                {"HcclAllGather", Collective::allgather},
                                                {"HcclAllGatherV", Collective::allgather},
                                                {"HcclReduce", Collective::reduce},
                                                {"HcclAlltoAll", Collective::alltoall},
                                                {"HcclAlltoAllV", Collective::alltoall},
                                                {"HcclAlltoAllVC", Collective::alltoall},
                                                {"HcclBarrier", Collective::barrier},
                                                {"HcclSend", Collective::send_recv},
                                                {"HcclRecv", Collective::send_recv}}};
  return functions.at(static_cast<std::size_t>(call));
}

/// None: not simulated.
std::optional<DataType> type_of(std::uint32_t type) {
  constexpr std::array<DataType, 12> types{DataType::int8,   DataType::int16,  DataType::int32,  DataType::fp16,
                                           DataType::fp32,   DataType::int64,  DataType::uint64, DataType::uint8,
                                           DataType::uint16, DataType::uint32, DataType::fp64,   DataType::bf16};
  return type < types.size() ? std::optional(types.at(type)) : std::nullopt;
}

/// Names a type that later chips have and this one lacks; empty for any other type.
std::string of_later_chips(std::uint32_t type, const std::string& chip) {
  constexpr std::array<const char*, 4> names{"HIF8", "FP8E4M3", "FP8E5M2", "FP8E8M0"};
  if (type < HCCL_DATA_TYPE_HIF8 || type > HCCL_DATA_TYPE_FP8E8M0) return {};
  return fmt::format(", {}: the Ascend 950 has it, {} does not", names.at(type - HCCL_DATA_TYPE_HIF8), chip);
}

/// Places of blocks that follow each other.
std::vector<std::uint64_t> places_behind_each_other(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> places(counts.size(), 0);
  std::exclusive_scan(counts.begin(), counts.end(), places.begin(), std::uint64_t{0});
  return places;
}

std::vector<std::uint64_t> part(const std::vector<std::uint64_t>& values, std::size_t first, std::size_t count) {
  return {values.begin() + static_cast<std::ptrdiff_t>(first),
          values.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

}  // namespace

Result CallReader::find_pieces(const RankCall& call, const char* which, std::uint64_t address, const Blocks& blocks,
                               Pieces& pieces) const {
  const auto& [counts, places] = blocks;
  const Bytes element = size_of(call.operation.type);
  const std::uint32_t process = core_.hosts.thread(call.thread).process;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const std::uint64_t at = address == 0 ? 0 : address + places[i] * element;
    FoundSpan found = core_.memory.find(process, at, counts[i] * element);
    if (!found.problem.empty()) {
      return refused(address == 0 ? HCCL_E_PTR : HCCL_E_PARA, fmt::format("{}: {}", which, found.problem));
    }
    if (found.span.npu != call.stream->npu) {
      return refused(HCCL_E_PARA, fmt::format("{} is memory of NPU {}, the communicator's rank is on NPU {}", which,
                                              found.span.npu, call.stream->npu));
    }
    const bool follows = !pieces.empty() && pieces.back().data + pieces.back().bytes == found.span.data;
    if (follows) {
      pieces.back().bytes += found.span.bytes;
    } else {
      pieces.push_back(std::move(found.span));
    }
  }
  return {};
}

Result CallReader::find_type(RankCall& call, std::uint32_t type, std::uint64_t count, const Counts& counts) const {
  const std::optional<DataType> known = type_of(type);
  if (!known.has_value()) {
    return refused(HCCL_E_NOT_SUPPORT,
                   fmt::format("dataType {}{}; accepted: 0 to {}", type, of_later_chips(type, core_.platform.soc.name),
                               HCCL_DATA_TYPE_BFP16));
  }
  call.operation.type = *known;
  const std::uint64_t most = core_.memory.total() / size_of(*known);
  const auto larger = [](std::uint64_t one, std::uint64_t other) { return std::max(one, other); };
  const std::uint64_t largest = std::accumulate(counts.begin(), counts.end(), count, larger);
  if (largest <= most) return {};
  return refused(HCCL_E_PARA,
                 fmt::format("{} elements of {}: an NPU has memory for {}", largest, name_of(*known), most));
}

Result CallReader::read_message(RankCall& call, std::uint32_t type, std::uint32_t peer, std::uint64_t address,
                                std::uint64_t count, bool may_be_itself) const {
  Result wrong = find_type(call, type, count, {});
  if (wrong.status != 0) return wrong;
  if (peer >= call.group->ranks()) {
    return refused(HCCL_E_PARA, fmt::format("rank {} of a communicator of {}", peer, call.group->ranks()));
  }
  if (peer == call.rank && !may_be_itself) {
    return refused(
        HCCL_E_PARA,
        fmt::format("rank {} is the caller itself; HcclBatchSendRecv can do that, and a group of both", peer));
  }
  call.peer = peer;
  call.operation = {.ranks = 2,
                    .type = call.operation.type,
                    .collective = Collective::send_recv,
                    .in_place = false,
                    .counts = hccl::BlockCounts::of_pairs(2, {0, count, 0, 0})};
  return find_pieces(call, call.receives ? "recvBuf" : "sendBuf", address, {{count}, {0}},
                     call.receives ? call.buffers.output : call.buffers.input);
}

Result CallReader::read_blocks(RankCall& call, const CollectiveArguments& arguments, const Counts& counts, Blocks& sent,
                               Blocks& received) {
  hccl::Operation& operation = call.operation;
  const Rank ranks = operation.ranks;
  const std::uint64_t count = arguments.count;
  const bool is_root = operation.root == call.rank;
  sent = received = {{count}, {0}};
  switch (arguments.collective) {
    case CollectiveCall::allreduce:
      break;
    case CollectiveCall::broadcast:
      sent.counts.clear();
      break;
    case CollectiveCall::reduce:
      if (!is_root) received.counts.clear();
      break;
    case CollectiveCall::reduce_scatter:
      sent.counts = {count * ranks};
      break;
    case CollectiveCall::scatter:
      sent.counts = {count * ranks};
      if (!is_root) sent.counts.clear();
      break;
    case CollectiveCall::allgather:
      received.counts = {count * ranks};
      break;
    case CollectiveCall::alltoall:
      sent.counts = received.counts = {count * ranks};
      break;
    case CollectiveCall::reduce_scatter_v:
      sent.counts = part(counts, 0, ranks);
      sent.places = part(counts, ranks, ranks);
      operation.counts = hccl::BlockCounts::of_blocks(sent.counts);
      if (sent.counts[call.rank] != count) {
        return refused(HCCL_E_PARA,
                       fmt::format("recvCount is {}, sendCounts[{}] is {}", count, call.rank, sent.counts[call.rank]));
      }
      break;
    case CollectiveCall::allgather_v:
      received.counts = part(counts, 0, ranks);
      received.places = part(counts, ranks, ranks);
      operation.counts = hccl::BlockCounts::of_blocks(received.counts);
      if (received.counts[call.rank] != count) {
        return refused(HCCL_E_PARA, fmt::format("sendCount is {}, recvCounts[{}] is {}", count, call.rank,
                                                received.counts[call.rank]));
      }
      break;
    case CollectiveCall::alltoall_v:
      sent.counts = part(counts, 0, ranks);
      sent.places = part(counts, ranks, ranks);
      received.counts = part(counts, 2 * std::size_t{ranks}, ranks);
      received.places = part(counts, 3 * std::size_t{ranks}, ranks);
      break;
    case CollectiveCall::alltoall_vc: {
      operation.counts = hccl::BlockCounts::of_pairs(ranks, counts);
      sent.counts = part(counts, std::size_t{call.rank} * ranks, ranks);
      received.counts.clear();
      for (Rank sender = 0; sender < ranks; ++sender)
        received.counts.push_back(counts[std::size_t{sender} * ranks + call.rank]);
      sent.places = places_behind_each_other(sent.counts);
      received.places = places_behind_each_other(received.counts);
      break;
    }
    default:
      return refused(HCCL_E_INTERNAL, "no collective");
  }
  if (!operation.counts.empty()) operation.elements = 0;
  return {};
}

Result CallReader::read_collective(RankCall& call, const CollectiveArguments& arguments, const Counts& counts) const {
  const Rank ranks = call.group->ranks();
  const std::uint64_t count = arguments.count;
  hccl::Operation& operation = call.operation;
  operation.ranks = ranks;
  operation.collective = function_of(arguments.collective).collective;
  operation.in_place = operation.collective == Collective::broadcast;
  operation.elements = count;
  if (operation.collective == Collective::barrier) return {};
  Result wrong = find_type(call, arguments.type, count, counts);
  if (wrong.status != 0) return wrong;
  if (reduces(operation.collective)) {
    if (arguments.op > HCCL_REDUCE_MIN)
      return refused(HCCL_E_PARA, fmt::format("op {}; accepted: 0 to {}", arguments.op, HCCL_REDUCE_MIN));
    operation.op = static_cast<ReduceOp>(arguments.op);
  }
  if (is_rooted(operation.collective)) {
    if (arguments.peer >= ranks) {
      return refused(HCCL_E_PARA, fmt::format("root {} of a communicator of {}", arguments.peer, ranks));
    }
    operation.root = arguments.peer;
  }
  Blocks sent;
  Blocks received;
  wrong = read_blocks(call, arguments, counts, sent, received);
  if (wrong.status != 0) return wrong;
  wrong = find_pieces(call, "sendBuf", arguments.send, sent, call.buffers.input);
  if (wrong.status != 0) return wrong;
  const bool is_elementwise = operation.collective == Collective::allreduce ||
                              (operation.collective == Collective::reduce && operation.root == call.rank);
  const std::uint64_t apart = std::max(arguments.send, arguments.receive) - std::min(arguments.send, arguments.receive);
  if (is_elementwise && apart > 0 && apart < count * size_of(operation.type)) {
    return refused(HCCL_E_PARA, fmt::format("sendBuf and recvBuf overlap: {} bytes apart, with {} bytes each; they may "
                                            "be the same",
                                            apart, count * size_of(operation.type)));
  }
  const char* const output = operation.in_place ? "buf" : "recvBuf";
  return find_pieces(call, output, arguments.receive, received, call.buffers.output);
}

const ClientCommunicator* CallReader::find(ThreadId id, std::uint64_t handle, Result& wrong) const {
  const ClientCommunicator* const own = communicators_.find(id, handle);
  if (own == nullptr) wrong = Communicators::unknown(handle);
  if (own != nullptr && own->suspended) wrong = refused(HCCL_E_SUSPENDING, "the communicator is suspended");
  return wrong.status == 0 ? own : nullptr;
}

Result CallReader::read(ThreadId id, const Question& question, RankCall& call) const {
  CollectiveArguments arguments;
  std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
  Counts counts((question.bytes.size() - sizeof arguments) / sizeof(std::uint64_t));
  std::memcpy(counts.data(), question.bytes.data() + sizeof arguments, counts.size() * sizeof counts[0]);

  Result wrong;
  const ClientCommunicator* const own = find(id, arguments.communicator, wrong);
  if (own == nullptr) return wrong;
  const bool receives = arguments.collective == CollectiveCall::receive;
  const bool is_message = receives || arguments.collective == CollectiveCall::send;
  call = {.thread = id,
          .function = function_of(arguments.collective).name,
          .group = own->group,
          .rank = own->rank,
          .stream = streams_.find(id, arguments.stream),
          .receives = receives};
  if (call.stream == nullptr) return refused(HCCL_E_PARA, "stream is no stream, or it was destroyed");
  if (call.stream->npu != own->npu()) {
    return refused(HCCL_E_PARA, fmt::format("the stream is on NPU {}, the communicator's rank on NPU {}",
                                            call.stream->npu, own->npu()));
  }
  wrong = is_message ? read_message(call, arguments.type, arguments.peer, receives ? arguments.receive : arguments.send,
                                    arguments.count, false)
                     : read_collective(call, arguments, counts);
  if (wrong.status != 0 || is_message) return wrong;
  if (arguments.collective == CollectiveCall::alltoall_v) {
    call.own_counts = part(counts, 0, call.group->ranks());
    const Counts received = part(counts, 2 * std::size_t{call.group->ranks()}, call.group->ranks());
    call.own_counts.insert(call.own_counts.end(), received.begin(), received.end());
    return {};
  }
  const auto is_direct = [&](const Pieces& pieces, std::uint64_t address) {
    const auto add = [](Bytes sum, const DeviceSpan& piece) { return sum + piece.bytes; };
    const Bytes bytes = std::accumulate(pieces.begin(), pieces.end(), Bytes{0}, add);
    return bytes == 0 || peer_memory_.is_active(*own, address, bytes);
  };
  call.zero_copy = !call.is_empty() && peer_memory_.has_any(*own) && is_direct(call.buffers.input, arguments.send) &&
                   is_direct(call.buffers.output, arguments.receive);
  return {};
}

Result CallReader::read(ThreadId id, const Question& question, Batch& batch) const {
  std::vector<BatchItem> items(question.bytes.size() / sizeof(BatchItem));
  std::memcpy(items.data(), question.bytes.data(), question.bytes.size());
  Result wrong;
  const ClientCommunicator* const own = find(id, question.values[0], wrong);
  if (own == nullptr) return wrong;
  ClientStream* const stream = streams_.find(id, question.values[1]);
  if (stream == nullptr || stream->npu != own->npu()) {
    return refused(HCCL_E_PARA, "stream is no stream of the communicator's NPU");
  }
  const bool of_a_group = question.values[2] != 0;  // messages, not a batch
  std::set<std::pair<Rank, bool>> ends;
  for (const BatchItem& item : items) {
    const char* const message = item.receives != 0 ? "HcclRecv" : "HcclSend";
    RankCall call{.thread = id,
                  .function = of_a_group ? message : "HcclBatchSendRecv",
                  .group = own->group,
                  .rank = own->rank,
                  .stream = stream,
                  .receives = item.receives != 0,
                  .batch = !of_a_group};
    wrong = read_message(call, item.type, item.peer, item.address, item.count, true);
    if (wrong.status != 0) return wrong;
    if (!ends.emplace(item.peer, call.receives).second) {
      return refused(HCCL_E_PARA,
                     fmt::format("two items {} rank {}", call.receives ? "receive from" : "send to", item.peer));
    }
    if (item.count == 0) continue;
    if (item.peer == own->rank) {
      batch.to_itself.push_back(std::move(call));
    } else {
      batch.calls.push_back(std::make_shared<RankCall>(std::move(call)));
    }
  }
  // Not more than two, as no two items have the same peer and direction.
  const std::vector<RankCall>& own_ends = batch.to_itself;
  const bool both = own_ends.empty() || (own_ends.size() == 2 && own_ends[0].operation == own_ends[1].operation);
  if (both) return {};
  return refused(HCCL_E_PARA, "what a rank sends to itself and what it receives from itself differ");
}

}  // namespace hcclsim::clients
