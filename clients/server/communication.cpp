#include "clients/server/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include <hccl/hccl_types.h>

#include "base/names.hpp"
#include "hccl/runtime/collective/issue.hpp"

namespace hcclsim::clients {

using hccl::Collective;

namespace {

/// Where the counts of two ranks differ first; empty: nowhere.
std::string difference_of(const hccl::Operation& own, const hccl::Operation& other) {
  const std::vector<std::uint64_t>& counts = own.counts.counts();
  const std::vector<std::uint64_t>& others = other.counts.counts();
  if (own.collective != other.collective || counts.size() != others.size()) return "";
  const auto [at, at_other] = std::ranges::mismatch(counts, others);
  if (at == counts.end()) return "";
  const auto block = static_cast<std::size_t>(at - counts.begin());
  const std::string which = counts_pairs(own.collective)
                                ? fmt::format("from rank {} to rank {}", block / own.ranks, block % own.ranks)
                                : fmt::format("of block {}", block);
  return fmt::format(", {} {} and {} elements", which, *at, *at_other);
}

}  // namespace

std::string Communication::text_of(const std::string& function, const hccl::Operation& operation, bool zero_copy) {
  std::string text = function;
  if (operation.collective == Collective::barrier) return text;
  const std::uint64_t count =
      operation.counts.empty() ? operation.elements : operation.counts.offset(0, operation.ranks);
  text += fmt::format(" of {} {}", count, name_of(operation.type));
  if (reduces(operation.collective)) text += fmt::format(", {}", name_of(operation.op));
  if (is_rooted(operation.collective)) text += fmt::format(", root {}", operation.root);
  if (zero_copy) text += ", zero copy";
  return text;
}

std::optional<Result> Communication::handle(ThreadId id, const Question& question) {
  const auto grouped = groups_.find(id);
  if (question.call == Call::begin_group) {
    if (grouped == groups_.end()) {
      groups_[id];
    } else {
      ++grouped->second.depth;
    }
    return Result{};
  }
  if (question.call == Call::end_group) return end_group(id);
  return grouped == groups_.end() ? run(id, {question}) : keep(id, grouped->second, question);
}

Result Communication::keep(ThreadId id, Group& group, Question question) {
  if (question.call == Call::begin_communicator || question.call == Call::begin_from_table) {
    group.beginnings.emplace_back(std::move(question), core_.hosts.thread(id).npu);
    constexpr std::uint64_t later = 1;
    return {.values = {0, later}};
  }
  // The default stream is that of the device that is set now.
  ClientStream* const usual = devices_.stream_of(id, 0);
  const std::uint64_t handle = usual == nullptr ? 0 : devices_.handle_of(*usual);
  if (question.call == Call::batch) {
    if (question.values[1] == 0) question.values[1] = handle;
  } else {
    CollectiveArguments arguments;
    std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
    if (arguments.stream == 0) arguments.stream = handle;
    std::memcpy(question.bytes.data(), &arguments, sizeof arguments);
  }
  group.calls.push_back(std::move(question));
  return {};
}

/// The messages of a group that are on one stream, several in number, go side by side: as a batch of those that are the
/// first between their ends, one of the second, and so on.
std::vector<Question> Communication::with_merged_messages(const std::vector<Question>& calls) {
  struct Merged {
    std::map<std::pair<std::uint32_t, bool>, std::size_t> before{};  // peer, direction: how many
    std::vector<std::vector<BatchItem>> batches{};
    std::size_t count = 0;
  };
  using Place = std::pair<std::uint64_t, std::uint64_t>;  // communicator, stream
  std::map<Place, Merged> messages;
  const auto message_of = [](const Question& question) -> std::optional<std::pair<Place, BatchItem>> {
    if (question.call != Call::collective) return std::nullopt;
    CollectiveArguments arguments;
    std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
    const bool receives = arguments.collective == CollectiveCall::receive;
    if (!receives && arguments.collective != CollectiveCall::send) return std::nullopt;
    return std::pair(Place{arguments.communicator, arguments.stream},
                     BatchItem{.receives = receives ? 1U : 0U,
                               .type = arguments.type,
                               .peer = arguments.peer,
                               .address = receives ? arguments.receive : arguments.send,
                               .count = arguments.count});
  };
  for (const Question& question : calls) {
    const auto message = message_of(question);
    if (!message.has_value()) continue;
    const auto& [place, item] = *message;
    Merged& own = messages[place];
    const std::size_t round = own.before[{item.peer, item.receives != 0}]++;
    if (round == own.batches.size()) own.batches.emplace_back();
    own.batches[round].push_back(item);
    ++own.count;
  }
  std::vector<Question> merged;
  for (const Question& question : calls) {
    const auto message = message_of(question);
    if (!message.has_value() || messages[message->first].count == 1) {
      merged.push_back(question);
      continue;
    }
    const auto& [place, item] = *message;
    for (const std::vector<BatchItem>& batch : std::exchange(messages[place].batches, {})) {
      constexpr std::uint64_t of_a_group = 1;
      merged.push_back(
          {.call = Call::batch,
           .values = {place.first, place.second, of_a_group},
           .bytes = std::string(reinterpret_cast<const char*>(batch.data()), batch.size() * sizeof batch.front())});
    }
  }
  return merged;
}

std::optional<Result> Communication::end_group(ThreadId id) {
  const auto found = groups_.find(id);
  if (found == groups_.end()) return refused(HCCL_E_NOT_SUPPORT, "no group has begun");
  if (--found->second.depth > 0) return Result{.values = {found->second.depth}};
  const Group group = std::move(found->second);
  groups_.erase(found);
  if (group.beginnings.empty()) return run(id, with_merged_messages(group.calls));
  if (group.calls.empty()) return communicators_.begin_together(id, group.beginnings);
  return refused(HCCL_E_NOT_SUPPORT, "a group has communicators that begin, or communication, not both");
}

std::optional<Result> Communication::run(ThreadId id, const std::vector<Question>& questions) {
  if (core_.failure.has_value()) {
    const bool timed_out = core_.failure->kind() == "timeout";
    return refused(timed_out ? HCCL_E_TIMEOUT : HCCL_E_REMOTE, "the simulated cluster has failed");
  }
  const auto answers = std::make_shared<Answers>();
  answers->left = questions.size();
  const Done done = [this, id, answers](const Result& result) {
    if (result.status != 0 && answers->worst.status == 0) answers->worst = result;
    if (--answers->left == 0 && answers->parked) core_.hosts.resume(id, core_.loop.now(), answers->worst);
  };
  // Calls of a group that follow each other wait for each other; those of several NPUs, and messages, go together.
  std::vector<std::pair<ChainKey, Chain>> chains;
  for (const Question& question : questions) {
    const ChainKey key = chain_of(question);
    auto same = std::ranges::find(chains, key, &std::pair<ChainKey, Chain>::first);
    if (same == chains.end()) same = chains.insert(chains.end(), {key, {}});
    same->second.push_back(question);
  }
  for (auto& [key, chain] : chains) begin(id, std::make_shared<const Chain>(std::move(chain)), 0, answers, done);
  if (answers->left == 0) return answers->worst;
  answers->parked = true;
  core_.hosts.park(id, [answers] {
    for (const auto& waits : answers->waits) {
      std::string text = waits();
      if (!text.empty()) return text;
    }
    return std::string("waits for others to connect");
  });
  return std::nullopt;
}

Communication::ChainKey Communication::chain_of(const Question& question) {
  constexpr std::uint32_t no_peer = ~std::uint32_t{0};
  const bool of_a_group = question.call == Call::batch && question.values[2] != 0;
  if (of_a_group) return {question.values[1], no_peer, true};  // of the stream
  if (question.call == Call::batch) return {question.values[0], no_peer, false};
  CollectiveArguments arguments;
  std::memcpy(&arguments, question.bytes.data(), sizeof arguments);
  const bool receives = arguments.collective == CollectiveCall::receive;
  const bool is_message = receives || arguments.collective == CollectiveCall::send;
  return {arguments.communicator, is_message ? arguments.peer : no_peer, receives};
}

void Communication::begin(ThreadId id, const std::shared_ptr<const Chain>& chain, std::size_t place,
                          const std::shared_ptr<Answers>& answers, const Done& done) {
  const Question& question = (*chain)[place];
  const Done next = [this, id, chain, place, answers, done](const Result& result) {
    done(result);
    if (place + 1 < chain->size()) begin(id, chain, place + 1, answers, done);
  };
  if (question.call == Call::batch) {
    batch(id, question, answers, next);
  } else {
    collective(id, question, answers, next);
  }
}

void Communication::meet(const std::string& meeting, Rank place, Rank needed, const RankCall& call, std::string bytes,
                         const std::shared_ptr<Answers>& answers, const Done& failed,
                         const std::function<void(const std::map<Rank, Guest>&)>& met) {
  const auto missing_now = [this, call, meeting] { return missing(call, meetings_.missing(meeting)); };
  answers->waits.emplace_back([missing_now, function = call.function]() -> std::string {
    const std::string ranks = missing_now();
    return ranks.empty() ? "" : fmt::format("waits in {}, which connects for the first time, for {}", function, ranks);
  });
  const auto done = [this, call, meeting, failed, met](const std::map<Rank, Guest>* all, Seconds date) {
    HostThread& thread = core_.hosts.thread(call.thread);
    thread.date = std::max(thread.date, date);
    if (all != nullptr) {
      met(*all);
      return;
    }
    const Seconds waited = communicators_.connect_timeout();
    const Seconds since = date - waited;
    failed(refused(HCCL_E_TIMEOUT, fmt::format("it connects for the first time, and has waited {:.6g} s "
                                               "(HCCL_CONNECT_TIMEOUT) for {}{}",
                                               waited, missing(call, meetings_.missing(meeting, since)),
                                               doing_of(call, meetings_.missing_ranks(meeting, since)))));
  };
  const std::uint32_t process = core_.hosts.thread(call.thread).process;
  const std::string problem = meetings_.problem(meeting, place, needed);
  if (!problem.empty()) return failed(refused(HCCL_E_PARA, "it connects for the first time: " + problem));
  meetings_.join(meeting, place, needed,
                 {.thread = call.thread, .process = process, .bytes = std::move(bytes), .done = done},
                 communicators_.connect_timeout());
}

void Communication::connect(RankCall call, const std::shared_ptr<Answers>& answers, const Done& done) {
  CommunicatorGroup& group = *call.group;
  std::string transport;
  Rank place = call.rank;
  Rank needed = group.ranks();
  if (call.is_message()) {
    transport = transport_of(call);
    place = call.place;
    needed = 2;
  } else {
    transport = fmt::format("{} {}", name_of(call.operation.collective), schedule_for(call).schedule->algorithm);
  }
  if (group.connected[transport]) {
    issue(call);
    done({});
    return;
  }
  const std::string meeting = fmt::format("connect {} {}", group.number, transport);
  const auto shared = std::make_shared<RankCall>(std::move(call));
  meet(meeting, place, needed, *shared, {}, answers, done, [this, shared, transport, done](const auto&) {
    shared->group->connected[transport] = true;
    issue(*shared);
    done({});
  });
}

void Communication::exchange_counts(RankCall call, const std::vector<std::uint64_t>& counts,
                                    const std::shared_ptr<Answers>& answers, const Done& done) {
  const Rank ranks = call.group->ranks();
  const std::uint64_t number = exchanges_[{call.group->number, call.rank}]++;
  const std::string meeting = fmt::format("counts {} #{}", call.group->number, number);
  std::string own(reinterpret_cast<const char*>(counts.data()), ranks * sizeof counts[0]);  // sent, then received
  own.append(reinterpret_cast<const char*>(counts.data() + 2 * ranks), ranks * sizeof counts[0]);
  const auto shared = std::make_shared<RankCall>(std::move(call));
  const Rank place = shared->rank;
  meet(meeting, place, ranks, *shared, own, answers, done,
       [this, shared, answers, done, ranks](const std::map<Rank, Guest>& all) {
         std::vector<std::uint64_t> matrix(std::size_t{ranks} * ranks);
         for (const auto& [rank, guest] : all) {
           std::memcpy(&matrix[std::size_t{rank} * ranks], guest.bytes.data(), ranks * sizeof matrix[0]);
         }
         for (const auto& [receiver, guest] : all) {
           for (Rank sender = 0; sender < ranks; ++sender) {
             std::uint64_t expected = 0;
             std::memcpy(&expected, guest.bytes.data() + (ranks + sender) * sizeof expected, sizeof expected);
             const std::uint64_t sent = matrix[std::size_t{sender} * ranks + receiver];
             if (sent == expected) continue;
             simulated_failure("mismatch",
                               "HcclAlltoAllV on {}: rank {} sends {} elements to rank {}, which expects {}",
                               shared->group->name, sender, sent, receiver, expected);
           }
         }
         if (std::ranges::all_of(matrix, [](std::uint64_t count) { return count == 0; })) {
           records_.erase(shared->key);
           done({});
           return;
         }
         shared->operation.counts = hccl::BlockCounts::of_pairs(ranks, std::move(matrix));
         connect(std::move(*shared), answers, done);
       });
}

MadeSchedule& Communication::schedule_for(const RankCall& call) {
  std::vector<MadeSchedule>& all = call.group->schedules;
  const hccl::Determinism determinism = communicators_.determinism().value_or(call.group->config.determinism);
  for (MadeSchedule& one : all) {
    const bool same =
        one.operation == call.operation && one.zero_copy == call.zero_copy && one.determinism == determinism;
    if (same) return one;
  }
  constexpr std::size_t most_kept = 256;
  if (all.size() >= most_kept) all.erase(all.begin());
  hccl::CollectiveRequest request{
      .operation = call.operation, .launch = core_.launch, .zero_copy = call.zero_copy, .config = call.group->config};
  request.config.determinism = determinism;
  MadeSchedule made{.operation = call.operation, .zero_copy = call.zero_copy, .determinism = determinism};
  const hccl::Topology topology = call.is_message() ? hccl::Topology{.ranks = 2} : call.group->topology;
  made.schedule = make_collective(request, topology, core_.platform.soc);
  if (call.operation.collective != Collective::barrier) {
    made.flow = std::make_shared<const hccl::DataFlow>(*made.schedule);
  }
  all.push_back(std::move(made));
  return all.back();
}

std::string Communication::missing(const RankCall& call, const std::string& ranks) {
  if (ranks == "nobody") return {};
  return fmt::format("{} on {}", call.is_message() ? fmt::format("rank {}", call.peer) : ranks, call.group->name);
}

std::string Communication::doing_of(const RankCall& call, const std::vector<Rank>& missing) const {
  constexpr std::size_t most = 4;
  const std::vector<Rank> members = call.is_message() ? std::vector{call.peer} : missing;
  std::string text;
  for (std::size_t i = 0; i < std::min(members.size(), most); ++i) {
    const std::uint32_t process = call.group->processes[members[i]];
    if (core_.hosts.process(process).ended) {
      text += fmt::format("; process {} has ended", process);
      continue;
    }
    const std::optional<ThreadId> thread = core_.hosts.thread_for(process, call.group->npus[members[i]]);
    if (!thread.has_value() || core_.hosts.thread(*thread).state == HostThread::State::ready) continue;
    if (*thread == call.thread) {
      return "; it is in this thread's own process: calls of one thread for several NPUs belong between HcclGroupStart "
             "and HcclGroupEnd";
    }
    text += fmt::format("; {} {}", core_.hosts.name_of(*thread), core_.hosts.doing(*thread));
  }
  return text;
}

void Communication::announce(RankCall& call) {
  CommunicatorGroup& group = *call.group;
  std::string name;
  std::vector<Rank> members(group.ranks());
  std::iota(members.begin(), members.end(), Rank{0});
  call.place = call.rank;
  if (call.is_message()) {
    const std::uint32_t kind = call.batch ? 2 : 1;
    const std::uint64_t number = messages_[{group.number, kind, call.source(), call.destination(), call.receives}]++;
    call.key = {group.number, kind, call.source(), call.destination(), number};
    call.place = call.receives ? 1 : 0;
    members = {call.source(), call.destination()};
    name =
        fmt::format("message #{} from rank {} to rank {} on {}", number, call.source(), call.destination(), group.name);
  } else {
    const std::uint64_t number = group.calls[call.rank]++;
    group.empty_calls.erase(call.rank);
    call.key = {group.number, 0, 0, 0, number};
    name = fmt::format("{} #{} on {}", call.function, number, group.name);
  }
  Record& record = records_[call.key];
  const std::string what = text_of(call.function, call.operation, call.zero_copy);
  if (record.group == nullptr) {
    record = {.what = what,
              .name = name,
              .group = call.group,
              .members = std::move(members),
              .operation = call.operation,
              .zero_copy = call.zero_copy};
  } else if (record.operation != call.operation || record.zero_copy != call.zero_copy) {
    const Rank other = record.members[*record.called.begin()];
    simulated_failure("mismatch",
                      "{}: rank {} (process {}) calls {}, rank {} (process {}) has called {}{}; all ranks must "
                      "call the same",
                      record.name, call.rank, group.processes[call.rank], what, other, group.processes[other],
                      record.what, difference_of(call.operation, record.operation));
  }
  record.called.insert(call.place);
}

void Communication::issue(const RankCall& call) {
  const MadeSchedule made = schedule_for(call);
  HostThread& thread = core_.hosts.thread(call.thread);
  const hccl::Issue issue = issue_of(core_.costs, core_.launch, *made.schedule, call.place);
  const Seconds begin = std::max(thread.date, core_.loop.now()) + issue.until_start();
  thread.date = begin + issue.behind_the_call;
  devices_.reach(*call.stream, begin);
  enqueue(call, *call.stream, made, {begin, issue.task});
}

void Communication::enqueue(const RankCall& call, ClientStream& stream, const MadeSchedule& made,
                            const hccl::Pace& pace) {
  const RecordKey key = call.key;
  const Rank place = call.place;
  Record& record = records_[key];
  record.streams[place] = &stream;
  if (record.payload == nullptr && made.flow != nullptr) {
    record.payload = std::make_shared<Payload>(made.schedule, made.flow);
  }
  const std::shared_ptr<Payload> payload = record.payload;
  const std::uint32_t name = core_.trace.intern(call.function);
  const bool only_reads = call.operation.in_place && call.rank == call.operation.root;
  devices_.begin_task(stream, record.name,
                      only_reads ? Uses{.reads = call.buffers.output} : Uses{call.buffers.input, call.buffers.output});
  const auto overflow = devices_.saturates(stream.npu) ? device::Overflow::saturate : device::Overflow::infinity;
  const auto buffers = std::make_shared<const RankBuffers>(call.buffers);
  core_.runtime.host_function(stream.id, [this, key, payload, place, rank = call.rank, buffers, overflow] {
    Record& own = records_[key];
    own.arrived.insert(place);
    require_memory(own.name, rank, *buffers);
    if (payload != nullptr) payload->arrive(place, *buffers, overflow);
  });
  if (!call.is_message()) {
    core_.runtime.collective(stream.id, call.group->id, made.schedule, name, {}, pace);
  } else {
    const std::uint32_t tag = 2 * call.group->number + (call.batch ? 1 : 0);
    const Rank peer = call.group->npus[call.peer];
    if (call.receives) {
      core_.runtime.receive(stream.id, peer, tag, made.schedule, name, {}, pace);
    } else {
      core_.runtime.send(stream.id, peer, tag, made.schedule, name, {}, pace);
    }
  }
  devices_.end_task(stream, [this, key, payload, place, rank = call.rank, buffers, name = record.name] {
    require_memory(name, rank, *buffers);
    if (payload != nullptr) payload->end(place, core_.workers);
    const auto found = records_.find(key);
    if (found == records_.end()) return;
    const Record& own = found->second;
    const bool over = payload != nullptr ? payload->finished() : own.arrived.size() == own.members.size();
    if (over) records_.erase(found);
  });
}

void Communication::require_memory(const std::string& name, Rank rank, const RankBuffers& buffers) const {
  for (const Pieces* const pieces : {&buffers.input, &buffers.output}) {
    if (std::ranges::none_of(*pieces, [](const DeviceSpan& span) { return span.pages->freed(); })) continue;
    simulated_failure("client", "{}: memory of rank {} on NPU {} was freed before it had ended", name, rank,
                      pieces->front().npu);
  }
}

void Communication::end_process(std::uint32_t process) const {
  for (const auto& [id, group] : groups_) {
    const std::size_t calls = group.calls.size() + group.beginnings.size();
    if (core_.hosts.thread(id).process != process || calls == 0 || core_.failure.has_value()) continue;
    simulated_failure("client",
                      "process {} ended between HcclGroupStart and HcclGroupEnd: {} of the group {} not issued",
                      process, counted(calls, "call"), calls == 1 ? "was" : "were");
  }
}

std::string Communication::missing_calls() const {
  constexpr std::size_t most = 12;
  std::string text;
  std::size_t lines = 0;
  for (const auto& [key, record] : records_) {
    if (record.arrived.size() == record.members.size() || record.called.empty() || ++lines > most) continue;
    text += fmt::format("\n  {} ({}) waits for", record.name, record.what);
    std::size_t count = 0;
    for (Rank place = 0; place < record.members.size(); ++place) {
      if (record.arrived.contains(place) || ++count > most) continue;
      const Rank rank = record.members[place];
      text += fmt::format("{} rank {} (process {})", count > 1 ? "," : "", rank, record.group->processes[rank]);
      const auto stream = record.streams.find(place);
      if (stream == record.streams.end()) {
        const auto empty = record.group->empty_calls.find(rank);
        text += record.called.contains(place) ? ", whose host waits for others" : ", which has not called it";
        if (!record.called.contains(place) && empty != record.group->empty_calls.end()) {
          text += fmt::format(" (it has called {}, which does nothing)", empty->second);
        }
      } else if (!stream->second->tasks.empty()) {
        text += fmt::format(", whose stream {} is at {}", stream->second->number, stream->second->tasks.front().name);
      }
    }
    if (count > most) text += fmt::format(" and {} more", count - most);
  }
  if (lines > most) text += fmt::format("\n  and {} more", lines - most);
  return text;
}

}  // namespace hcclsim::clients
