#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include <hccl/hccl_types.h>

#include "clients/server/communication.hpp"
#include "hccl/runtime/collective/issue.hpp"

// From the arguments of HCCL's functions to operations and buffers.
namespace hcclsim::clients {
namespace {

using hccl::Collective;

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

/// What a type is that this chip lacks; empty: nothing is known of it.
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

Result Communication::find_pieces(const RankCall& call, const char* which, std::uint64_t address,
                                  const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& places,
                                  Pieces& pieces) {
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

Result Communication::find_type(RankCall& call, std::uint32_t type, std::uint64_t count,
                                const std::vector<std::uint64_t>& counts) const {
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

Result Communication::prepare_message(RankCall& call, std::uint32_t type, std::uint32_t peer, std::uint64_t address,
                                      std::uint64_t count, bool may_be_itself) {
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
  return find_pieces(call, call.receives ? "recvBuf" : "sendBuf", address, {count}, {0},
                     call.receives ? call.buffers.output : call.buffers.input);
}

Result Communication::prepare(RankCall& call, const CollectiveArguments& arguments,
                              const std::vector<std::uint64_t>& counts) {
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
  const bool is_root = operation.root == call.rank;
  std::vector<std::uint64_t> sent{count};
  std::vector<std::uint64_t> sent_places{0};
  std::vector<std::uint64_t> received{count};
  std::vector<std::uint64_t> received_places{0};
  switch (arguments.collective) {
    case CollectiveCall::allreduce:
      break;
    case CollectiveCall::broadcast:
      sent.clear();
      break;
    case CollectiveCall::reduce:
      if (!is_root) received.clear();
      break;
    case CollectiveCall::reduce_scatter:
      sent = {count * ranks};
      break;
    case CollectiveCall::scatter:
      sent = {count * ranks};
      if (!is_root) sent.clear();
      break;
    case CollectiveCall::allgather:
      received = {count * ranks};
      break;
    case CollectiveCall::alltoall:
      sent = received = {count * ranks};
      break;
    case CollectiveCall::reduce_scatter_v:
      sent = part(counts, 0, ranks);
      sent_places = part(counts, ranks, ranks);
      operation.counts = hccl::BlockCounts::of_blocks(sent);
      if (sent[call.rank] != count) {
        return refused(HCCL_E_PARA,
                       fmt::format("recvCount is {}, sendCounts[{}] is {}", count, call.rank, sent[call.rank]));
      }
      break;
    case CollectiveCall::allgather_v:
      received = part(counts, 0, ranks);
      received_places = part(counts, ranks, ranks);
      operation.counts = hccl::BlockCounts::of_blocks(received);
      if (received[call.rank] != count) {
        return refused(HCCL_E_PARA,
                       fmt::format("sendCount is {}, recvCounts[{}] is {}", count, call.rank, received[call.rank]));
      }
      break;
    case CollectiveCall::alltoall_v:
      sent = part(counts, 0, ranks);
      sent_places = part(counts, ranks, ranks);
      received = part(counts, 2 * std::size_t{ranks}, ranks);
      received_places = part(counts, 3 * std::size_t{ranks}, ranks);
      break;
    case CollectiveCall::alltoall_vc: {
      operation.counts = hccl::BlockCounts::of_pairs(ranks, counts);
      sent = part(counts, std::size_t{call.rank} * ranks, ranks);
      received.clear();
      for (Rank sender = 0; sender < ranks; ++sender)
        received.push_back(counts[std::size_t{sender} * ranks + call.rank]);
      sent_places = places_behind_each_other(sent);
      received_places = places_behind_each_other(received);
      break;
    }
    default:
      return refused(HCCL_E_INTERNAL, "no collective");
  }
  if (!operation.counts.empty()) operation.elements = 0;
  wrong = find_pieces(call, "sendBuf", arguments.send, sent, sent_places, call.buffers.input);
  if (wrong.status != 0) return wrong;
  const bool is_elementwise =
      operation.collective == Collective::allreduce || (operation.collective == Collective::reduce && is_root);
  const std::uint64_t apart = std::max(arguments.send, arguments.receive) - std::min(arguments.send, arguments.receive);
  if (is_elementwise && apart > 0 && apart < count * size_of(operation.type)) {
    return refused(HCCL_E_PARA, fmt::format("sendBuf and recvBuf overlap: {} bytes apart, with {} bytes each; they may "
                                            "be the same",
                                            apart, count * size_of(operation.type)));
  }
  const char* const output = operation.in_place ? "buf" : "recvBuf";
  return find_pieces(call, output, arguments.receive, received, received_places, call.buffers.output);
}

void Communication::collective(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers,
                               const Done& done) {
  CollectiveArguments arguments;
  std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
  std::vector<std::uint64_t> counts((question.bytes.size() - sizeof arguments) / sizeof(std::uint64_t));
  std::memcpy(counts.data(), question.bytes.data() + sizeof arguments, counts.size() * sizeof counts[0]);

  const ClientCommunicator* const own = communicators_.find(id, arguments.communicator);
  if (own == nullptr) return done(Communicators::unknown(arguments.communicator));
  if (own->suspended) return done(refused(HCCL_E_SUSPENDING, "the communicator is suspended"));
  RankCall call{.thread = id,
                .function = function_of(arguments.collective).name,
                .group = own->group,
                .rank = own->rank,
                .stream = devices_.stream_of(id, arguments.stream)};
  if (call.stream == nullptr) return done(refused(HCCL_E_PARA, "stream is no stream, or it was destroyed"));
  if (call.stream->npu != own->group->npus[own->rank]) {
    return done(refused(HCCL_E_PARA, fmt::format("the stream is on NPU {}, the communicator's rank on NPU {}",
                                                 call.stream->npu, own->group->npus[own->rank])));
  }
  call.receives = arguments.collective == CollectiveCall::receive;
  const bool is_message = call.receives || arguments.collective == CollectiveCall::send;
  const Result wrong = is_message ? prepare_message(call, arguments.type, arguments.peer,
                                                    call.receives ? arguments.receive : arguments.send, arguments.count)
                                  : prepare(call, arguments, counts);
  if (wrong.status != 0) return done(wrong);
  if (arguments.collective == CollectiveCall::alltoall_v) {
    announce(call);
    return exchange_counts(std::move(call), counts, answers, done);
  }
  const bool empty = call.operation.collective != Collective::barrier && call.operation.payload() == 0;
  if (empty) {  // HCCL starts nothing
    own->group->empty_calls[own->rank] = text_of(call.function, call.operation, false);
    return done({});
  }
  const auto direct = [&](const Pieces& pieces, std::uint64_t address) {
    const auto add = [](Bytes sum, const DeviceSpan& piece) { return sum + piece.bytes; };
    const Bytes bytes = std::accumulate(pieces.begin(), pieces.end(), Bytes{0}, add);
    return bytes == 0 || is_active(*own, address, bytes);
  };
  call.zero_copy = (!own->active.empty() || !own->window_bytes.empty()) && !is_message &&
                   direct(call.buffers.input, arguments.send) && direct(call.buffers.output, arguments.receive);
  announce(call);
  connect(std::move(call), answers, done);
}

std::string Communication::transport_of(const RankCall& message) {
  return fmt::format("{} {} to {}", message.batch ? "batch" : "message", message.source(), message.destination());
}

Result Communication::copy_to_itself(const std::vector<RankCall>& calls) {
  if (calls.empty()) return {};
  const bool both = calls.size() == 2;  // not more, as no two items have the same peer and direction
  if (!both || calls[0].operation != calls[1].operation) {
    return refused(HCCL_E_PARA, "what a rank sends to itself and what it receives from itself differ");
  }
  const RankCall& from = calls[calls[0].receives ? 1 : 0];
  const RankCall& to = calls[calls[0].receives ? 0 : 1];
  devices_.reach(*from.stream, core_.hosts.thread(from.thread).date);
  devices_.copy_within(*from.stream, to.buffers.output.front(), from.buffers.input.front());
  return {};
}

void Communication::batch(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers,
                          const Done& done) {
  std::vector<BatchItem> items(question.bytes.size() / sizeof(BatchItem));
  std::memcpy(items.data(), question.bytes.data(), question.bytes.size());
  const ClientCommunicator* const own = communicators_.find(id, question.values[0]);
  if (own == nullptr) return done(Communicators::unknown(question.values[0]));
  if (own->suspended) return done(refused(HCCL_E_SUSPENDING, "the communicator is suspended"));
  ClientStream* const stream = devices_.stream_of(id, question.values[1]);
  if (stream == nullptr || stream->npu != own->group->npus[own->rank]) {
    return done(refused(HCCL_E_PARA, "stream is no stream of the communicator's NPU"));
  }
  const bool of_a_group = question.values[2] != 0;  // messages, not a batch
  const auto calls = std::make_shared<std::vector<RankCall>>();
  std::vector<RankCall> to_itself;
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
    const Result wrong = prepare_message(call, item.type, item.peer, item.address, item.count, true);
    if (wrong.status != 0) return done(wrong);
    if (!ends.emplace(item.peer, call.receives).second) {
      return done(refused(HCCL_E_PARA,
                          fmt::format("two items {} rank {}", call.receives ? "receive from" : "send to", item.peer)));
    }
    std::vector<RankCall>& kind = item.peer == own->rank ? to_itself : *calls;
    if (item.count > 0) kind.push_back(std::move(call));
  }
  const Result wrong = copy_to_itself(to_itself);
  if (wrong.status != 0 || calls->empty()) return done(wrong);
  for (RankCall& call : *calls) announce(call);

  // When all transports are there: the items work side by side, between two places of the stream.
  const auto issue_all = [this, calls, stream, id, done] {
    HostThread& thread = core_.hosts.thread(id);
    hccl::Issue whole;
    std::vector<hccl::Issue> issues;
    for (const RankCall& call : *calls) {
      issues.push_back(issue_of(core_.costs, core_.launch, *schedule_for(call).schedule, call.place));
      whole.call = issues.back().call;
      whole.together += issues.back().together;
      whole.behind_the_call += issues.back().behind_the_call;
    }
    const Seconds begin = std::max(thread.date, core_.loop.now()) + whole.until_start();
    thread.date = begin + whole.behind_the_call;
    devices_.reach(*stream, begin);
    const char* const what = calls->front().batch ? "HcclBatchSendRecv" : "messages of a group";
    devices_.begin_task(*stream, fmt::format("{} on {}", what, calls->front().group->name));
    std::vector<hccl::EventId> ended;
    for (std::size_t i = 0; i < calls->size(); ++i) {
      const RankCall& call = (*calls)[i];
      constexpr std::uint32_t most_items = 1024;
      const std::uint32_t number = 1 + stream->number * most_items + static_cast<std::uint32_t>(i);
      ClientStream& side = devices_.hidden_stream(stream->process, stream->npu, number);
      const auto [fork, is_new] = forks_.try_emplace(&side);
      if (is_new) fork->second = {core_.runtime.create_event(), core_.runtime.create_event()};
      const auto [begins, ends_here] = fork->second;
      core_.runtime.record(stream->id, begins);
      core_.runtime.wait(side.id, begins);
      enqueue(call, side, MadeSchedule(schedule_for(call)), {begin, issues[i].task});
      core_.runtime.record(side.id, ends_here);
      ended.push_back(ends_here);
    }
    for (const hccl::EventId event : ended) core_.runtime.wait(stream->id, event);
    devices_.end_task(*stream, [] {});
    done({});
  };
  const auto left = std::make_shared<std::size_t>(1);  // and one more for this loop
  const auto failed = std::make_shared<bool>(false);
  const auto connected = [left, issue_all] {
    if (--*left == 0) issue_all();
  };
  for (const RankCall& call : *calls) {
    const std::string transport = transport_of(call);
    if (call.group->connected[transport]) continue;
    ++*left;
    meet(
        fmt::format("connect {} {}", call.group->number, transport), call.place, 2, call, {}, answers,
        [failed, done](const Result& result) {
          if (!std::exchange(*failed, true)) done(result);
        },
        [group = call.group, transport, connected](const auto&) {
          group->connected[transport] = true;
          connected();
        });
  }
  connected();
}

}  // namespace hcclsim::clients
