#include "hccl/parallel/pipeline/message_order.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "base/error.hpp"

namespace hcclsim::hccl {
namespace {

using models::Kernel;
using models::Launched;
using models::OperatorKind;
using models::Phase;

constexpr double never = std::numeric_limits<double>::infinity();

/// A message of every micro-batch, or of one of them.
struct Link {
  std::uint32_t source = 0;  // stage
  std::uint32_t destination = 0;
  std::uint32_t send = 0;  // kernel
  std::uint32_t receive = 0;
  std::uint32_t tag = 0;
  Phase phase = Phase::forward;
  std::uint32_t source_chunk = 0;
  std::uint32_t destination_chunk = 0;
  Launched launched = Launched::always;
};

std::vector<Link> links_of(std::span<const models::Program* const> programs, Rank ranks_per_stage) {
  // Source, destination, tag.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> receives;
  const auto each = [&](OperatorKind kind, const auto& visit) {
    for (std::uint32_t stage = 0; stage < programs.size(); ++stage) {
      for (std::uint32_t k = 0; k < programs[stage]->micro_batch_kernels; ++k) {
        const Kernel& kernel = programs[stage]->kernels[k];
        if (kernel.kind != models::KernelClass::communication || kernel.communication->kind != kind) continue;
        const auto stages = kernel.communication->peer.offset / static_cast<std::int64_t>(ranks_per_stage);
        visit(stage, static_cast<std::uint32_t>(stage + stages), k, kernel);
      }
    }
  };
  each(OperatorKind::receive, [&](std::uint32_t stage, std::uint32_t peer, std::uint32_t k, const Kernel& kernel) {
    receives[{peer, stage, kernel.communication->peer.tag}] = k;
  });
  std::vector<Link> links;
  each(OperatorKind::send, [&](std::uint32_t stage, std::uint32_t peer, std::uint32_t k, const Kernel& kernel) {
    const std::uint32_t tag = kernel.communication->peer.tag;
    const auto found = receives.find({stage, peer, tag});
    if (found == receives.end()) bad_input("pipeline", "{}: stage {} does not receive it", kernel.name, peer);
    links.push_back({.source = stage,
                     .destination = peer,
                     .send = k,
                     .receive = found->second,
                     .tag = tag,
                     .phase = kernel.phase,
                     .source_chunk = kernel.chunk,
                     .destination_chunk = programs[peer]->kernels[found->second].chunk,
                     .launched = kernel.launched});
    receives.erase(found);
  });
  if (!receives.empty()) {
    const auto& [source, destination, tag] = receives.begin()->first;
    bad_input("pipeline", "stage {} waits for a message with tag {} that stage {} does not send", destination, tag,
              source);
  }
  return links;
}

/// Cells without communication: those that start as early as they can.
class IdealDates {
 public:
  IdealDates(std::span<const models::Program* const> programs, const PipelineShape& shape,
             const std::vector<Link>& links)
      : shape_(shape), before_(2) {
    starts_.assign(std::size_t{2} * shape.stages * shape.chunks * shape.micro_batches, never);
    durations_.assign(starts_.size(), 0);
    if (shape.schedule != PipelineSchedule::one_f_one_b) add_up_kernels(programs);
    for (auto& of_phase : before_) of_phase.resize(std::size_t{shape.stages} * shape.chunks);
    for (const Link& link : links) {
      if (link.launched != Launched::always) continue;
      auto& cells = before_[direction(link.phase)][link.destination * shape.chunks + link.destination_chunk];
      cells.emplace_back(link.source, link.source_chunk);
    }
    compute();
  }

  [[nodiscard]] double start(std::uint32_t stage, const Cell& cell) const { return starts_[place(stage, cell)]; }

 private:
  static std::size_t direction(Phase phase) { return phase == Phase::forward ? 0 : 1; }

  void add_up_kernels(std::span<const models::Program* const> programs) {
    for (std::uint32_t stage = 0; stage < programs.size(); ++stage) {
      for (const Kernel& kernel : programs[stage]->micro_batch()) {
        if (kernel.launched == Launched::before_all) continue;
        const std::uint32_t first = kernel.launched == Launched::with_last ? shape_.micro_batches - 1 : 0;
        const std::uint32_t end = kernel.launched == Launched::always ? shape_.micro_batches : first + 1;
        for (std::uint32_t micro = first; micro < end; ++micro) {
          durations_[place(stage, {kernel.phase, kernel.chunk, micro})] += kernel.duration;
        }
      }
    }
  }
  [[nodiscard]] double duration(std::uint32_t stage, const Cell& cell) const {
    const double kernels = durations_[place(stage, cell)];
    if (kernels > 0) return kernels;
    return cell.phase == Phase::forward ? 1 : 2;
  }
  [[nodiscard]] std::size_t place(std::uint32_t stage, const Cell& cell) const {
    const std::size_t of_stage = direction(cell.phase) * shape_.stages + stage;
    return (of_stage * shape_.chunks + cell.chunk) * shape_.micro_batches + cell.micro_batch;
  }

  void compute() {
    std::vector<std::vector<Cell>> cells;
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) cells.push_back(cells_of_stage(shape_, stage));
    std::vector<std::size_t> next(shape_.stages, 0);
    std::vector<double> ends(shape_.stages, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
        for (; next[stage] < cells[stage].size(); ++next[stage], moved = true) {
          const Cell& cell = cells[stage][next[stage]];
          const double start = std::max(ends[stage], inputs_of(stage, cell));
          if (start == never) break;
          starts_[place(stage, cell)] = start;
          ends[stage] = start + duration(stage, cell);
        }
      }
    }
    for (std::uint32_t stage = 0; stage < shape_.stages; ++stage) {
      if (next[stage] == cells[stage].size()) continue;
      bad_input("pipeline", "stage {} cannot compute {}: what it reads is not made before", stage,
                to_string({cells[stage][next[stage]]}, shape_.chunks));
    }
  }

  /// The date at which all that a cell reads is made; never if that is not known yet.
  [[nodiscard]] double inputs_of(std::uint32_t stage, const Cell& cell) const {
    double date = 0;
    for (const auto& [source, chunk] : before_[direction(cell.phase)][stage * shape_.chunks + cell.chunk]) {
      const Cell maker{cell.phase, chunk, cell.micro_batch};
      date = std::max(date, starts_[place(source, maker)] + duration(source, maker));
    }
    return date;
  }

  const PipelineShape& shape_;
  std::vector<std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>> before_;  // stage and chunk of sources
  std::vector<double> durations_;                                                          // of the kernels of a cell
  std::vector<double> starts_;
};

struct Message {
  double needed = 0;
  std::uint32_t link = 0;
  std::uint32_t micro_batch = 0;
};

}  // namespace

std::vector<std::vector<MessageTurn>> message_order(std::span<const models::Program* const> programs,
                                                    const PipelineShape& shape, Rank ranks_per_stage) {
  const std::vector<Link> links = links_of(programs, ranks_per_stage);
  const IdealDates dates(programs, shape, links);
  std::vector<Message> messages;
  for (std::uint32_t number = 0; number < links.size(); ++number) {
    const Link& link = links[number];
    if (link.launched == Launched::before_all) continue;
    if (link.launched == Launched::with_first) {
      messages.push_back({-1, number, 0});
    } else if (link.launched == Launched::with_last) {
      messages.push_back({never, number, shape.micro_batches - 1});
    } else {
      for (std::uint32_t micro = 0; micro < shape.micro_batches; ++micro) {
        const Cell reader{link.phase, link.destination_chunk, micro};
        messages.push_back({dates.start(link.destination, reader), number, micro});
      }
    }
  }
  const bool in_turn = shape.schedule == PipelineSchedule::one_f_one_b;
  const auto key = [&](const Message& message) {
    const Link& link = links[message.link];
    const std::uint32_t turn = in_turn ? 0 : link.source % 2;
    return std::tuple(message.needed, turn, link.phase == Phase::forward, message.micro_batch, link.source,
                      link.destination, link.tag);
  };
  std::ranges::sort(messages, {}, key);
  std::vector<std::vector<MessageTurn>> turns(programs.size());
  for (const Message& message : messages) {
    const Link& link = links[message.link];
    turns[link.source].push_back({link.send, message.micro_batch});
    turns[link.destination].push_back({link.receive, message.micro_batch});
  }
  return turns;
}

}  // namespace hcclsim::hccl
