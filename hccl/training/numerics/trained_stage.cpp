#include "hccl/training/numerics/trained_stage.hpp"

#include <algorithm>
#include <atomic>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "hccl/parallel/compressed_plan.hpp"
#include "hccl/training/numerics/compressed_reduction.hpp"
#include "hccl/training/numerics/replicas/replicas.hpp"
#include "hccl/training/numerics/replicas/sharded_replicas.hpp"

namespace hcclsim::hccl {
namespace {

/// Parameters by their gradients, then those that other roles own.
std::vector<std::uint32_t> production_order(const Role& role) {
  std::vector<std::uint32_t> order;
  for (const models::Gradient& gradient : role.program->gradients) order.push_back(gradient.parameter);
  for (std::uint32_t parameter = 0; parameter < role.program->parameters.size(); ++parameter) {
    if (role.program->parameters[parameter].borrowed) order.push_back(parameter);
  }
  return order;
}

/// The gradients of each segment as a compression hook sees them.
std::vector<std::vector<BucketTensor>> tensors_of_segments(const Role& role) {
  std::vector<std::vector<BucketTensor>> tensors;
  for (const Segment& segment : role.segments) tensors.push_back(bucket_tensors(*role.program, segment));
  return tensors;
}

/// Most micro-batches between their first message or pass and their last one at a role.
std::uint32_t most_open(std::span<const NumericTask> tasks, std::uint32_t role) {
  std::set<std::uint32_t> open;
  std::size_t most = 0;
  for (const NumericTask& task : tasks) {
    const bool message = task.kind == NumericTask::Kind::message;
    const bool pass = task.kind == NumericTask::Kind::forward || task.kind == NumericTask::Kind::backward;
    if ((message && task.to == role) || (pass && task.role == role)) open.insert(task.micro_batch);
    most = std::max(most, open.size());
    if (task.role == role && task.ends) open.erase(task.micro_batch);
  }
  return static_cast<std::uint32_t>(most);
}

/// Chunk in which each parameter is used.
std::vector<std::uint32_t> chunks_of_parameters(const models::Graph& graph) {
  constexpr std::uint32_t unknown = ~0U;
  std::vector<std::uint32_t> chunk_of(graph.parameters.size(), unknown);
  for (const models::Operator& op : graph.operators) {
    if (models::communicates(op.kind)) continue;
    for (const std::uint32_t parameter : op.parameters) {
      if (chunk_of[parameter] != unknown && chunk_of[parameter] != op.chunk) {
        bad_input("numerics", "{}: {} is used in several chunks of a stage, which has no real numbers yet", graph.title,
                  graph.parameters[parameter].name);
      }
      chunk_of[parameter] = op.chunk;
    }
  }
  return chunk_of;
}

/// Segments that are reduced more than once per step.
std::set<std::uint32_t> repeated_segments(const Role& role) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> seen;  // segment, micro-batch
  std::set<std::uint32_t> once;
  std::set<std::uint32_t> repeated;
  for (const PlanTask& task : role.tasks) {
    if (task.purpose.phase != StepPhase::reduction) continue;
    if (!seen.insert({task.purpose.segment, task.purpose.micro_batch}).second) continue;
    if (!once.insert(task.purpose.segment).second) repeated.insert(task.purpose.segment);
  }
  return repeated;
}

/// Place of a device in its group of each family.
std::vector<std::uint32_t> places_in(const std::vector<DeviceGroups>& families, Rank device) {
  std::vector<std::uint32_t> places;
  for (const DeviceGroups& family : families) {
    for (const std::vector<Rank>& group : family) {
      const auto found = std::ranges::find(group, device);
      if (found != group.end()) places.push_back(static_cast<std::uint32_t>(found - group.begin()));
    }
  }
  if (places.size() != families.size()) internal_error("device {} is not in one group of each family", device);
  return places;
}

/// What a device has of the results of operators that draw random numbers.
std::vector<device::TensorPart> parts_drawn_by(const ShardedGraph& stage, std::uint32_t samples, Rank device) {
  std::vector<device::TensorPart> parts(stage.graph.operators.size());
  const std::vector<std::uint32_t> first_value = stage.graph.first_values();
  for (models::OperatorId id = 0; id < parts.size(); ++id) {
    if (stage.graph.operators[id].drop_rate == 0) continue;
    const std::optional<TensorLayout>& layout = stage.values[first_value[id]];
    if (!layout.has_value()) internal_error("{}: it is not known what is cut", stage.graph.operators[id].name);
    parts[id] = {layout->shape.sizes(), layout->slice_shape().sizes(), layout->offsets(device),
                 layout->shape.elements() / samples};
  }
  return parts;
}

/// Ranks that have the same of a parameter and sum up its gradient in other groups train several networks.
void require_mirrors(const StageSetup& setup) {
  for (const SegmentReduction& reduction : setup.communication.reductions) {
    if (reduction.scattered) continue;
    std::vector<std::vector<Rank>> groups = reduction.reduction.groups;
    std::ranges::sort(groups);
    for (std::uint32_t slot = reduction.segment.first; slot <= reduction.segment.last; ++slot) {
      if (groups == setup.parts.holders(slot)) continue;
      bad_input("numerics",
                "{}: real gradients are summed over all ranks that have the same of a parameter; in this step they are "
                "summed in other groups",
                setup.computation.parameters()[slot].name);
    }
  }
}

}  // namespace

StageSetup::StageSetup(const Plan& plan, std::uint32_t number, const models::Graph& network, const ShardedGraph& stage,
                       std::span<const NumericTask> tasks, const device::ComputationOptions& options,
                       const ScheduleMaker& make_schedule)
    : role(&plan.roles[computing_roles(plan)[number]]),
      communication(replica_communication(plan, role->stage)),
      owned(role->program->gradients.size()),
      computation(stage.graph, production_order(*role), options),
      parts(network, stage, computation, communication.replicas),
      open_micro_batches(most_open(tasks, number)),
      compression(plan.compression) {
  for (const NumericTask& task : tasks) {
    if (task.role == number && task.computes()) micro_batches = std::max(micro_batches, task.micro_batch + 1);
  }
  require_mirrors(*this);
  for (Rank rank = 0; rank < communication.replicas; ++rank) {
    family_places.push_back(places_in(stage.families, rank));
    if (parts.cut()) drawn_parts.push_back(parts_drawn_by(stage, network.batch(), rank));
  }
  if (StageCollectives::exist(*role)) {
    collectives = std::make_shared<StageCollectives>(plan, *role, computation, make_schedule);
  }
}

unsigned StageSetup::places(unsigned workers) const { return std::min<unsigned>(workers, communication.replicas); }

unsigned StageSetup::scratches(unsigned workers) const {
  if (micro_batches == 1) return 0;
  return collectives == nullptr ? places(workers) : communication.replicas;
}

Bytes StageSetup::bytes(const device::OptimizerSettings& optimizer, unsigned workers) const {
  const Bytes kept = communication.shares_parameters()
                         ? ShardedReplicas::bytes(computation, *role, communication, optimizer)
                         : Replicas::bytes(computation, communication, parts, optimizer);
  const std::uint64_t workspaces =
      open_micro_batches > 0 ? std::uint64_t{open_micro_batches} * communication.replicas : places(workers);
  const Bytes scratch = scratches(workers) * computation.elements() * sizeof(float);
  const Bytes wires = collectives == nullptr ? 0 : collectives->bytes();
  const Bytes hook =
      compression.has_value() ? CompressedReduction::bytes(*compression, communication, tensors_of_segments(*role)) : 0;
  return kept + hook + workspaces * computation.workspace_bytes() + scratch + wires;
}

/// A place where a replica's micro-batch is computed.
struct TrainedStage::Seat {
  explicit Seat(const device::Computation& computation) : workspace(computation) {}
  device::Workspace workspace;
  models::Batch batch;
};

TrainedStage::TrainedStage(const StageSetup& setup, const device::OptimizerSettings& optimizer,
                           device::Overflow overflow, std::uint64_t seed, device::WorkerPool& pool)
    : pool_(pool),
      replicas_(setup.communication.replicas),
      micro_batches_(setup.micro_batches),
      computation_(setup.computation),
      parts_(setup.parts),
      family_places_(setup.family_places),
      drawn_parts_(setup.drawn_parts),
      collectives_(setup.collectives),
      overflow_(overflow),
      slot_of_(computation_.parameters().size()),
      each_micro_batch_(computation_.parameters().size(), false),
      outputs_(replicas_) {
  if (setup.communication.shares_parameters()) {
    store_ = std::make_unique<ShardedReplicas>(computation_, setup.owned, *setup.role, setup.communication, parts_,
                                               optimizer, overflow, seed, pool);
  } else {
    auto replicas = std::make_unique<Replicas>(computation_, setup.owned, setup.communication, parts_, optimizer,
                                               overflow, seed, pool);
    if (setup.compression.has_value()) {
      replicas->compress(*setup.compression, setup.communication, tensors_of_segments(*setup.role), overflow);
    }
    store_ = std::move(replicas);
  }
  const std::vector<std::uint32_t> chunks = chunks_of_parameters(computation_.graph());
  for (std::size_t slot = 0; slot < slot_of_.size(); ++slot) {
    const std::uint32_t parameter = computation_.parameters()[slot].parameter;
    slot_of_[parameter] = slot;
    chunk_of_.push_back(chunks[parameter]);
  }
  for (const std::uint32_t number : repeated_segments(*setup.role)) {
    const Segment& segment = setup.communication.reductions[number].segment;
    for (std::uint32_t slot = segment.first; slot <= segment.last; ++slot) each_micro_batch_[slot] = true;
  }
  for (unsigned place = 0; place < setup.places(pool.workers()); ++place) {
    places_.push_back(setup.open_micro_batches > 0 ? nullptr : std::make_unique<Seat>(computation_));
  }
  scratch_.assign(setup.scratches(pool.workers()), std::vector<float>(computation_.elements()));
}

TrainedStage::~TrainedStage() = default;

void TrainedStage::begin_step() {
  store_->begin_step();
  std::ranges::fill(outputs_, device::StepOutput{});
  for (auto& [micro_batch, seats] : open_) free_.push_back(std::move(seats));
  open_.clear();
  returned_.clear();
}

void TrainedStage::each_replica(const std::function<void(Rank replica, std::size_t place)>& work) {
  std::atomic<Rank> next = 0;
  pool_.for_each(places_.size(), [&](std::size_t place, unsigned) {
    for (Rank replica = next++; replica < replicas_; replica = next++) work(replica, place);
  });
}

TrainedStage::Seats& TrainedStage::seats_of(std::uint32_t micro_batch, const Source& source) {
  const auto [found, is_new] = open_.try_emplace(micro_batch);
  Seats& seats = found->second;
  if (!is_new) return seats;
  if (!free_.empty()) {
    seats = std::move(free_.back());
    free_.pop_back();
  } else {
    for (Rank replica = 0; replica < replicas_; ++replica) seats.push_back(std::make_unique<Seat>(computation_));
  }
  if (computation_.reads_batch()) {
    source.open(micro_batch);
    each_replica([&](Rank replica, std::size_t) { source.read(replica, micro_batch, seats[replica]->batch); });
  }
  return seats;
}

void TrainedStage::end(std::uint32_t micro_batch) {
  const auto open = open_.find(micro_batch);
  if (open == open_.end()) return;
  free_.push_back(std::move(open->second));
  open_.erase(open);
}

void TrainedStage::compute(const NumericTask& task, const Source& source) {
  store_->prepare(pool_);
  if (task.kind == NumericTask::Kind::step) {
    source.open(task.micro_batch);
    each_replica([&](Rank replica, std::size_t place) {
      source.read(replica, task.micro_batch, places_[place]->batch);
      run(task, {}, replica, *places_[place], scratch_of(place), source);
    });
    return;
  }
  run_pass(task, seats_of(task.micro_batch, source), source);
  const bool last = task.kind == NumericTask::Kind::backward && task.micro_batch + 1 == micro_batches_;
  if (last && task.chunk == 0) take_returned();
}

std::span<float> TrainedStage::scratch_of(std::size_t place) {
  return scratch_.empty() ? std::span<float>() : std::span<float>(scratch_[place]);
}

void TrainedStage::run_pass(const NumericTask& task, Seats& seats, const Source& source) {
  const bool backward = task.kind == NumericTask::Kind::backward;
  const std::span<const device::Exchange> exchanges =
      computation_.exchanges({.backward = backward, .chunk = task.chunk});
  std::vector<device::Workspace*> workspaces;
  for (const auto& seat : seats) workspaces.push_back(&seat->workspace);
  const auto parts = static_cast<std::uint32_t>(exchanges.size() + 1);
  for (std::uint32_t part = 0; part < parts; ++part) {
    each_replica([&](Rank replica, std::size_t place) {
      run(task, {part, parts}, replica, *seats[replica], scratch_of(collectives_ == nullptr ? place : replica), source);
    });
    if (part + 1 == parts) break;
    if (collectives_ == nullptr) internal_error("{}: its Plan has no collectives", computation_.graph().title);
    if (collectives_->run(pool_, exchanges[part], workspaces, overflow_)) outputs_.front().overflow = true;
  }
}

void TrainedStage::run(const NumericTask& task, PassPart part, Rank replica, Seat& seat, std::span<float> scratch,
                       const Source& source) {
  const device::Weights& weights = store_->weights_of(replica);
  device::StepInput input = source.input(replica, task.micro_batch);
  input.places = family_places_[replica];
  if (!drawn_parts_.empty()) input.parts = drawn_parts_[replica];
  const bool whole = task.kind == NumericTask::Kind::step;
  const bool backward = task.kind == NumericTask::Kind::backward;
  const bool adds = task.micro_batch > 0 && (whole || backward);
  const std::span<float> gradients = adds ? scratch : store_->gradients_of(replica);
  const device::Pass pass{.backward = backward, .chunk = task.chunk, .part = part.number};
  const device::StepOutput output = whole ? seat.workspace.step(weights, seat.batch, input, gradients)
                                          : seat.workspace.pass(pass, weights, seat.batch, input, gradients);
  if (adds && part.number + 1 == part.parts) accumulate(task.chunk, whole, replica, gradients);
  outputs_[replica].loss += output.loss;
  outputs_[replica].correct += output.correct;
  outputs_[replica].overflow = outputs_[replica].overflow || output.overflow;
}

std::vector<float> TrainedStage::whole(
    std::size_t slot, const std::function<void(std::span<const Rank> holders, std::span<float> stored)>& read) const {
  std::vector<float> values(parts_.whole_elements(slot));
  std::vector<float> stored(computation_.parameters()[slot].elements);
  std::vector<float> plain(stored.size());
  for (const std::vector<Rank>& holders : parts_.holders(slot)) {
    read(holders, stored);
    computation_.to_plain(slot, stored, plain);
    parts_.put(slot, holders.front(), plain, values);
  }
  return values;
}

std::vector<float> TrainedStage::read(std::size_t kind, std::size_t slot) {
  return whole(
      slot, [&](std::span<const Rank> holders, std::span<float> stored) { store_->read(kind, slot, holders, stored); });
}

std::vector<float> TrainedStage::read_gradient(std::size_t slot) const {
  return whole(slot, [&](std::span<const Rank> holders, std::span<float> stored) {
    store_->read_gradient(slot, holders, stored);
  });
}

void TrainedStage::write(std::size_t kind, std::size_t slot, std::span<const float> whole) {
  std::vector<float> stored(computation_.parameters()[slot].elements);
  for (const std::vector<Rank>& holders : parts_.holders(slot)) {
    computation_.to_storage(slot, parts_.part_of(slot, holders.front(), whole), stored);
    store_->write(kind, slot, holders, stored);
  }
}

void TrainedStage::accumulate(std::uint32_t chunk, bool whole_step, Rank replica, std::span<const float> gradients) {
  for (std::size_t slot = 0; slot < chunk_of_.size(); ++slot) {
    if (!whole_step && chunk_of_[slot] != chunk) continue;
    const device::ParameterSlot& place = computation_.parameters()[slot];
    const std::span<const float> later = place.in(gradients);
    const std::span<float> sum = place.in(store_->gradients_of(replica));
    if (each_micro_batch_[slot]) {
      std::ranges::copy(later, sum.begin());
    } else {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += later[i];
    }
  }
}

void TrainedStage::send(const NumericTask& task, TrainedStage& receiver, const Source& source) {
  const models::Operator& sent = computation_.graph().operators[task.sender];
  const models::Operator& received = receiver.computation_.graph().operators[task.receiver];
  if (sent.parameters.empty()) {
    Seats& from = seats_of(task.micro_batch, source);
    Seats& to = receiver.seats_of(task.micro_batch, source);
    for (Rank replica = 0; replica < replicas_; ++replica) {
      std::ranges::copy(from[replica]->workspace.message(task.sender),
                        to[replica]->workspace.message(task.receiver).begin());
    }
    return;
  }
  const std::size_t own = slot_of_[sent.parameters.front()];
  const std::size_t other = receiver.slot_of_[received.parameters.front()];
  if (task.returns) {
    receiver.returned_.push_back({other, store_.get(), computation_.parameters()[own]});
  } else {
    receiver.store_->borrow(other, *store_, computation_.parameters()[own]);
  }
}

void TrainedStage::take_means() {
  std::vector<float> factors;
  for (std::size_t slot = 0; slot < computation_.parameters().size(); ++slot) {
    factors.push_back(1 / static_cast<float>(parts_.holders(slot).front().size()));
  }
  store_->scale_gradients(pool_, factors);
}

/// Its own last pass has written what is added to.
void TrainedStage::take_returned() {
  for (const Returned& one : returned_) {
    for (Rank replica = 0; replica < replicas_; ++replica) {
      const std::span<const float> more = one.place.in(one.borrower->gradients_of(replica));
      const std::span<float> sum = computation_.parameters()[one.slot].in(store_->gradients_of(replica));
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
    }
  }
  returned_.clear();
}

}  // namespace hcclsim::hccl
