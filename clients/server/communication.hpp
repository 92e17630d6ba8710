#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "clients/server/communicators.hpp"
#include "clients/server/core.hpp"
#include "clients/server/devices.hpp"
#include "clients/server/meetings.hpp"
#include "clients/server/payload.hpp"

/// Collectives and messages. A call becomes a task of its stream, as the host of its rank issues it; the collective
/// forms in the runtime (hccl/runtime/runtime.hpp), and its data move when it ends (payload.hpp).
///
/// The first call that needs a transport waits on the host for all peers: of a collective all ranks of the
/// communicator, for each operator and algorithm; of a message its other end. So does every call whose counts only the
/// other ranks know (HcclAlltoAllV).
namespace hcclsim::clients {

class Communication {
 public:
  Communication(Core& core, Devices& devices, Communicators& communicators, Meetings& meetings)
      : core_(core), devices_(devices), communicators_(communicators), meetings_(meetings) {}

  std::optional<Result> handle(ThreadId id, const Question& question);
  /// The thread is between HcclGroupStart and HcclGroupEnd.
  [[nodiscard]] bool in_group(ThreadId id) const { return groups_.contains(id); }
  /// Calls that other ranks have not made, line by line.
  [[nodiscard]] std::string missing_calls() const;
  /// A process is gone. Throws Error(simulated_failure, "client") if it has not issued the calls of a group.
  void end_process(std::uint32_t process) const;

 private:
  using Done = std::function<void(Result)>;
  /// Group, collective or its messages, source, destination, number.
  using RecordKey = std::tuple<std::uint32_t, std::uint32_t, Rank, Rank, std::uint64_t>;

  /// A call of a rank that is in order.
  struct RankCall {
    ThreadId thread = 0;
    std::string function{};  // of HCCL
    std::shared_ptr<CommunicatorGroup> group{};
    Rank rank = 0;
    ClientStream* stream = nullptr;
    hccl::Operation operation{};
    RankBuffers buffers{};
    bool zero_copy = false;
    Rank peer = 0;  // of a message
    bool receives = false;
    bool batch = false;
    RecordKey key{};  // of what it belongs to
    Rank place = 0;   // its rank there

    [[nodiscard]] bool is_message() const { return operation.collective == hccl::Collective::send_recv; }
    [[nodiscard]] Rank source() const { return receives ? peer : rank; }
    [[nodiscard]] Rank destination() const { return receives ? rank : peer; }
  };
  /// A collective or message of which some ranks may not have called yet.
  struct Record {
    std::shared_ptr<Payload> payload{};
    std::string what{};  // "HcclAllReduce of 8 fp32 (sum)"
    std::string name{};  // "HcclAllReduce #3 on world"
    std::shared_ptr<CommunicatorGroup> group{};
    std::vector<Rank> members{};                    // of the group, by rank of the payload
    std::set<Rank> called{};                        // ranks of the payload …
    std::set<Rank> arrived{};                       // … and those that have begun it on the device
    std::map<Rank, const ClientStream*> streams{};  // … in which they do
    hccl::Operation operation{};
    bool zero_copy = false;
  };
  /// Calls of a thread that are answered together.
  struct Answers {
    std::size_t left = 0;
    Result worst{};
    bool parked = false;
    std::vector<std::function<std::string()>> waits{};  // for what, or nothing any more
  };

  /// What a thread has called between HcclGroupStart and HcclGroupEnd.
  struct Group {
    std::uint32_t depth = 1;  // of groups in groups
    std::vector<Question> calls{};
    std::vector<std::pair<Question, std::optional<Rank>>> beginnings{};  // of communicators, and the NPU that was set
  };
  /// Keeps a call until the group ends.
  Result keep(ThreadId id, Group& group, Question question);
  std::optional<Result> end_group(ThreadId id);
  static std::vector<Question> with_merged_messages(const std::vector<Question>& calls);

  /// Calls of a group that follow each other: of a communicator's rank, and of messages the peer and the direction.
  using Chain = std::vector<Question>;
  using ChainKey = std::tuple<std::uint64_t, std::uint32_t, bool>;
  [[nodiscard]] static ChainKey chain_of(const Question& question);
  /// Carries out the calls from a place of the chain on, each when the one before it has been issued.
  void begin(ThreadId id, const std::shared_ptr<const Chain>& chain, std::size_t place,
             const std::shared_ptr<Answers>& answers, const Done& done);
  std::optional<Result> run(ThreadId id, const std::vector<Question>& questions);
  void collective(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers, const Done& done);
  void batch(ThreadId id, const Question& question, const std::shared_ptr<Answers>& answers, const Done& done);
  [[nodiscard]] static std::string transport_of(const RankCall& message);
  /// What a batch sends from its rank to itself.
  Result copy_to_itself(const std::vector<RankCall>& calls);
  /// Why the call cannot be; status 0: nothing.
  Result prepare(RankCall& call, const CollectiveArguments& arguments, const std::vector<std::uint64_t>& counts);
  Result prepare_message(RankCall& call, std::uint32_t type, std::uint32_t peer, std::uint64_t address,
                         std::uint64_t count, bool may_be_itself = false);
  /// The type of the call's elements, of which there are so many.
  Result find_type(RankCall& call, std::uint32_t type, std::uint64_t count,
                   const std::vector<std::uint64_t>& counts) const;
  Result find_pieces(const RankCall& call, const char* which, std::uint64_t address,
                     const std::vector<std::uint64_t>& counts, const std::vector<std::uint64_t>& places,
                     Pieces& pieces);
  /// HcclAlltoAllV: waits for the counts of all ranks.
  void exchange_counts(RankCall call, const std::vector<std::uint64_t>& counts, const std::shared_ptr<Answers>& answers,
                       const Done& done);
  /// Issues the call at once, or when all have connected.
  void connect(RankCall call, const std::shared_ptr<Answers>& answers, const Done& done);
  void meet(const std::string& meeting, Rank place, Rank needed, const RankCall& call, std::string bytes,
            const std::shared_ptr<Answers>& answers, const Done& failed,
            const std::function<void(const std::map<Rank, Guest>&)>& met);
  void issue(const RankCall& call);
  /// Enqueues the call on a stream, whose tasks are there from `begin` on.
  void enqueue(const RankCall& call, ClientStream& stream, const MadeSchedule& made, const hccl::Pace& pace);
  MadeSchedule& schedule_for(const RankCall& call);
  /// Finds out what the call belongs to, in the order of the calls of its rank. Throws Error(simulated_failure,
  /// "mismatch") if another rank has called something else.
  void announce(RankCall& call);
  static std::string text_of(const std::string& function, const hccl::Operation& operation, bool zero_copy);
  /// Throws Error(simulated_failure, "client") if the program has freed memory of a call that is under way.
  void require_memory(const std::string& name, Rank rank, const RankBuffers& buffers) const;
  /// Whom a call waits for; `ranks`: those that have not come to its meeting.
  static std::string missing(const RankCall& call, const std::string& ranks);
  /// What their threads do instead: "; process 2 has ended".
  [[nodiscard]] std::string doing_of(const RankCall& call, const std::vector<Rank>& missing) const;

  Core& core_;
  Devices& devices_;
  Communicators& communicators_;
  Meetings& meetings_;
  std::map<RecordKey, Record> records_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, Rank, Rank, bool>, std::uint64_t> messages_;  // ends, so far
  std::map<std::tuple<std::uint32_t, Rank>, std::uint64_t> exchanges_;                            // of counts, so far
  std::map<ThreadId, Group> groups_;
  std::map<const ClientStream*, std::pair<hccl::EventId, hccl::EventId>> forks_;  // of hidden streams: begin, end
};

}  // namespace hcclsim::clients
