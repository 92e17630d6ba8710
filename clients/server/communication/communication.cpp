#include "clients/server/communication/communication.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <hccl/hccl_types.h>

#include "base/names.hpp"

namespace hcclsim::clients {

std::optional<Result> Communication::run(ThreadId id, const std::vector<Question>& questions) {
  if (core_.failure.has_value()) {
    const bool timed_out = core_.failure->kind() == "timeout";
    return refused(timed_out ? HCCL_E_TIMEOUT : HCCL_E_REMOTE, "the simulated cluster has failed");
  }
  // Calls of a group that follow each other wait for each other; those of several NPUs, and messages, go together.
  std::vector<std::pair<ChainKey, Chain>> chains;
  for (const Question& question : questions) {
    const ChainKey key = chain_of(question);
    auto same = std::ranges::find(chains, key, &std::pair<ChainKey, Chain>::first);
    if (same == chains.end()) same = chains.insert(chains.end(), {key, {}});
    same->second.push_back(question);
  }
  const auto answers = std::make_shared<Answers>(core_, id, questions.size());
  for (auto& [key, chain] : chains) begin(id, std::make_shared<const Chain>(std::move(chain)), 0, answers);
  return answers->now_or_later();
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
                          const std::shared_ptr<Answers>& answers) {
  const Question& question = (*chain)[place];
  const Done next = [this, id, chain, place, answers](const Result& result) {
    answers->add(result);
    if (place + 1 < chain->size()) begin(id, chain, place + 1, answers);
  };
  if (question.call == Call::batch) {
    batch(id, question, *answers, next);
  } else {
    collective(id, question, answers, next);
  }
}

void Communication::collective(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers,
                               const Done& done) {
  const auto call = std::make_shared<RankCall>();
  const Result wrong = reader_.read(id, question, *call);
  if (wrong.status != 0) return done(wrong);
  const bool counts_are_known = call->own_counts.empty();
  if (counts_are_known && call->is_empty()) {
    records_.note_empty(*call);
    return done({});
  }
  records_.announce(*call);
  if (counts_are_known) return connect(call, *answers, done);
  connections_.exchange_counts(call, *answers, done, [this, call, answers, done](Connections::Counts counts) {
    if (std::ranges::all_of(counts, [](std::uint64_t count) { return count == 0; })) {
      records_.forget(*call);
      return done({});
    }
    call->operation.counts = hccl::BlockCounts::of_pairs(call->group->ranks(), std::move(counts));
    connect(call, *answers, done);
  });
}

std::string Communication::transport_of(const RankCall& call) {
  if (!call.is_message()) {
    return fmt::format("{} {}", name_of(call.operation.collective), schedules_.of(call).schedule->algorithm);
  }
  return fmt::format("{} {} to {}", call.batch ? "batch" : "message", call.source(), call.destination());
}

void Communication::connect(const std::shared_ptr<const RankCall>& call, Answers& answers, const Done& done) {
  connections_.connect(call, transport_of(*call), answers, done, [this, call, done] {
    issuer_.issue(call);
    done({});
  });
}

void Communication::batch(ThreadId id, const Question& question, Answers& answers, const Done& done) {
  CallReader::Batch batch;
  const Result wrong = reader_.read(id, question, batch);
  if (wrong.status != 0) return done(wrong);
  if (!batch.to_itself.empty()) {
    const RankCall& from = batch.to_itself[batch.to_itself[0].receives ? 1 : 0];
    const RankCall& to = batch.to_itself[batch.to_itself[0].receives ? 0 : 1];
    copies_.copy_within(*from.stream, core_.hosts.thread(id).date, to.buffers.output.front(),
                        from.buffers.input.front());
  }
  if (batch.calls.empty()) return done({});
  for (const auto& call : batch.calls) records_.announce(*call);
  const auto left = std::make_shared<std::size_t>(batch.calls.size() + 1);  // one more for the loop below
  const auto failed = std::make_shared<bool>(false);
  const auto connected = [this, calls = batch.calls, left, done] {
    if (--*left > 0) return;
    issuer_.issue_together(calls);
    done({});
  };
  const auto failed_once = [failed, done](const Result& result) {
    if (!std::exchange(*failed, true)) done(result);
  };
  for (const auto& call : batch.calls) connections_.connect(call, transport_of(*call), answers, failed_once, connected);
  connected();
}

}  // namespace hcclsim::clients
