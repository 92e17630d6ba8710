#include "hccl/execute/data_flow.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/error.hpp"
#include "device/numerics/loops/reduce.hpp"

namespace hcclsim::hccl {
namespace {

/// What the memory that a part touches should fit in: half of a core's second-level cache.
constexpr Bytes working_set = 512 * 1024;
/// Lengths of parts are multiples of this, a cache line: it holds whole elements of every type.
constexpr Bytes line = 64;

/// Disjoint sets of atoms.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0U); }

  std::uint32_t find(std::uint32_t atom) {
    while (parent_[atom] != atom) {
      parent_[atom] = parent_[parent_[atom]];
      atom = parent_[atom];
    }
    return atom;
  }

  /// The smaller number stands for the set.
  void unite(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parent_;
};

std::uint32_t longest_chain(const AtomMoves& moves, const MoveList& list) {
  std::vector<std::uint32_t> passed(moves.atoms.size(), 0);
  for (const AtomMove& move : moves.moves) {
    std::uint32_t& to = passed[move.destination];
    to = move.reduces ? std::max(to, passed[move.source]) + 1 : passed[move.source];
  }
  std::uint32_t longest = 0;
  for (std::size_t atom = 0; atom < passed.size(); ++atom) {
    if (list.is_output(moves.atoms[atom].memory)) longest = std::max(longest, passed[atom]);
  }
  return longest;
}

}  // namespace

DataFlow::DataFlow(const Schedule& schedule)
    : type_(schedule.type), op_(schedule.op), ranks_(schedule.ranks), in_place_(schedule.in_place) {
  const MoveList list = moves_of(schedule);
  const AtomMoves moves = cut_into_atoms(list);
  additions_ = longest_chain(moves, list);
  group(moves, list);
  for (std::size_t component = 0; component + 1 < components_.size(); ++component) {
    assign_slots(component);
    divide(component);
  }
  components_.back().first_part = parts_;
}

/// Sorts atoms and moves by component, each in the order that it had.
void DataFlow::group(const AtomMoves& moves, const MoveList& list) {
  const std::vector<Atom>& atoms = moves.atoms;
  Sets sets(atoms.size());
  for (const AtomMove& move : moves.moves) sets.unite(move.destination, move.source);

  std::vector<std::uint32_t> component_of_atom(atoms.size());
  for (std::uint32_t atom = 0; atom < atoms.size(); ++atom) {
    const std::uint32_t first = sets.find(atom);
    if (first == atom) {
      component_of_atom[atom] = static_cast<std::uint32_t>(components_.size());
      components_.push_back({.length = atoms[atom].length});
    }
    component_of_atom[atom] = component_of_atom[first];
  }
  components_.emplace_back();
  for (const std::uint32_t component : component_of_atom) ++components_[component + 1].first_place;
  for (const AtomMove& move : moves.moves) ++components_[component_of_atom[move.source] + 1].first_step;
  for (std::size_t i = 1; i < components_.size(); ++i) {
    components_[i].first_place += components_[i - 1].first_place;
    components_[i].first_step += components_[i - 1].first_step;
  }

  std::vector<std::uint32_t> filled(components_.size(), 0);
  std::vector<std::uint32_t> place_of_atom(atoms.size());
  places_.resize(atoms.size());
  for (std::size_t atom = 0; atom < atoms.size(); ++atom) {
    const std::uint32_t component = component_of_atom[atom];
    const std::uint32_t memory = atoms[atom].memory;
    place_of_atom[atom] = filled[component]++;
    Place& place = places_[components_[component].first_place + place_of_atom[atom]];
    if (list.is_output(memory)) {
      place = {Buffer::output, memory, atoms[atom].offset};
    } else if (list.is_input(memory)) {
      place = {Buffer::input, memory - ranks_, atoms[atom].offset};
    } else {
      place = {Buffer::scratch, 0, 0};
    }
  }
  std::fill(filled.begin(), filled.end(), 0);
  steps_.resize(moves.moves.size());
  for (const AtomMove& move : moves.moves) {
    const std::uint32_t component = component_of_atom[move.source];
    steps_[components_[component].first_step + filled[component]++] = {place_of_atom[move.destination],
                                                                       place_of_atom[move.source], move.reduces};
  }
}

/// Gives every scratch place a slot from its first to its last use.
void DataFlow::assign_slots(std::size_t component) {
  constexpr std::uint32_t none = ~0U;
  Component& of = components_[component];
  const std::span<Place> places(places_.data() + of.first_place, places_of(component).size());
  const std::span<const Step> steps = steps_of(component);
  std::vector<std::size_t> last_use(places.size());
  for (std::size_t step = 0; step < steps.size(); ++step) {
    last_use[steps[step].source] = step;
    last_use[steps[step].destination] = step;
  }
  std::vector<std::uint32_t> slot(places.size(), none);
  std::vector<std::uint32_t> free;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::uint32_t written = steps[step].destination;
    if (places[written].buffer == Buffer::scratch && slot[written] == none) {
      if (free.empty()) free.push_back(of.slots++);
      slot[written] = free.back();
      places[written].number = free.back();
      free.pop_back();
    }
    for (const std::uint32_t place : {written, steps[step].source}) {
      if (places[place].buffer == Buffer::scratch && last_use[place] == step) free.push_back(slot[place]);
    }
  }
}

/// Cuts a component into parts whose places and slots fit in the working set.
void DataFlow::divide(std::size_t component) {
  Component& of = components_[component];
  Bytes pieces = of.slots;
  std::vector<Place> outputs;  // by rank, then by offset, as all places
  for (const Place& place : places_of(component)) {
    if (place.buffer != Buffer::scratch) ++pieces;
    if (place.buffer == Buffer::output) outputs.push_back(place);
  }
  const auto of_first_rank = [](const Place& place) { return place.number == 0; };
  of.ranges = static_cast<std::uint32_t>(std::count_if(outputs.begin(), outputs.end(), of_first_rank));
  of.same_on_all_ranks = outputs.size() == std::size_t{of.ranges} * ranks_;
  for (std::size_t i = 0; i < outputs.size() && of.same_on_all_ranks; ++i) {
    of.same_on_all_ranks = outputs[i].number == i / of.ranges && outputs[i].offset == outputs[i % of.ranges].offset;
  }
  of.piece = std::max(working_set / std::max<Bytes>(pieces, 1) / line * line, line);
  of.first_part = parts_;
  of.first_range = ranges_.size();
  for (Bytes begin = 0; begin < of.length; begin += of.piece, ++parts_) {
    const Bytes length = std::min(of.piece, of.length - begin);
    for (std::uint32_t i = 0; i < of.ranges; ++i) {
      ranges_.push_back({Buffer::output, outputs[i].offset + begin, length});
    }
  }
}

std::span<const DataFlow::Place> DataFlow::places_of(std::size_t component) const {
  const std::uint32_t first = components_[component].first_place;
  return {places_.data() + first, components_[component + 1].first_place - first};
}

std::span<const DataFlow::Step> DataFlow::steps_of(std::size_t component) const {
  const std::uint32_t first = components_[component].first_step;
  return {steps_.data() + first, components_[component + 1].first_step - first};
}

std::size_t DataFlow::component_of(std::size_t part) const {
  if (part >= parts_) internal_error("part {} of {}", part, parts_);
  const auto next = std::upper_bound(components_.begin(), components_.end() - 1, part,
                                     [](std::size_t number, const Component& of) { return number < of.first_part; });
  return static_cast<std::size_t>(next - components_.begin()) - 1;
}

std::span<const ByteRange> DataFlow::outputs(std::size_t part) const {
  const Component& of = components_[component_of(part)];
  if (!of.same_on_all_ranks) {
    bad_input("schedule", "part {} of the data flow computes different bytes on different ranks", part);
  }
  return {ranges_.data() + of.first_range + (part - of.first_part) * of.ranges, of.ranges};
}

bool DataFlow::run(std::size_t part, std::span<const std::byte* const> input, std::span<std::byte* const> output,
                   device::Overflow overflow, Scratch& scratch) const {
  if (output.size() != ranks_ || (input.size() != ranks_ && !(in_place_ && input.empty()))) {
    internal_error("data flow of {} ranks{} called with {} inputs and {} outputs", ranks_,
                   in_place_ ? "" : ", out of place,", input.size(), output.size());
  }
  const std::size_t component = component_of(part);
  const Component& of = components_[component];
  const Bytes begin = (part - of.first_part) * of.piece;
  const Bytes length = std::min(of.piece, of.length - begin);
  const std::span<const Place> places = places_of(component);

  scratch.places_.resize(std::max(scratch.places_.size(), places.size()));
  scratch.bytes_.resize(std::max<std::size_t>(scratch.bytes_.size(), of.slots * of.piece));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (place.buffer == Buffer::scratch) {
      scratch.places_[i] = scratch.bytes_.data() + place.number * of.piece;
    } else if (place.buffer == Buffer::output) {
      scratch.places_[i] = output[place.number] + place.offset + begin;
      if (!in_place_ || input.empty() || input[place.number] == output[place.number]) continue;
      std::memcpy(scratch.places_[i], input[place.number] + place.offset + begin, length);
    } else {
      // Nothing writes there: moves_of refuses such a schedule.
      scratch.places_[i] = const_cast<std::byte*>(input[place.number]) + place.offset + begin;
    }
  }

  bool overflowed = false;
  const std::size_t elements = length / size_of(type_);
  for (const Step& step : steps_of(component)) {
    std::byte* destination = scratch.places_[step.destination];
    const std::byte* source = scratch.places_[step.source];
    if (step.reduces) {
      overflowed = device::reduce(type_, op_, overflow, destination, source, elements) || overflowed;
    } else {
      std::memcpy(destination, source, length);
    }
  }
  return overflowed;
}

bool execute(const DataFlow& flow, std::span<const std::byte* const> input, std::span<std::byte* const> output,
             device::Overflow overflow, device::WorkerPool& workers) {
  std::vector<DataFlow::Scratch> scratch(workers.workers());
  std::atomic<bool> overflowed = false;
  workers.for_each(flow.parts(), [&](std::size_t part, unsigned worker) {
    if (flow.run(part, input, output, overflow, scratch[worker])) overflowed = true;
  });
  return overflowed;
}

bool execute(const DataFlow& flow, std::span<std::byte* const> output, device::Overflow overflow,
             device::WorkerPool& workers) {
  return execute(flow, {}, output, overflow, workers);
}

ReductionBound::ReductionBound(DataType type, std::uint32_t roundings, std::uint32_t contributions) {
  const double lost = roundings * device::unit_roundoff(type);
  infinite_ = lost >= 1;
  if (infinite_) return;
  relative_ = lost / (1 - lost);
  below_normal_ = (1 + relative_) * contributions * device::smallest_subnormal(type) / 2;
}

}  // namespace hcclsim::hccl
