#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <oneapi/dnnl/dnnl.hpp>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "device/numerics/computation.hpp"
#include "models/graph.hpp"

/// A Plan is what a Computation holds: the tasks of a step as data. Each task is a oneDNN primitive with the tensors
/// that it reads and writes, or a function of our own. Tensors of a step share one block of memory per workspace; a
/// tensor has its place from the first task that uses it to the last, and other tensors use the place before and after.
namespace hcclsim::device::onednn {

using Layout = dnnl::memory::desc;

/// A tensor of a step, by its number.
enum class TensorId : std::uint32_t {};

[[nodiscard]] constexpr std::size_t index_of(TensorId id) { return static_cast<std::size_t>(id); }

struct Tensor {
  Layout layout;
  TensorId root = {};         ///< whose memory it is: itself, or the tensor that it is a view of
  std::uint32_t first = ~0U;  ///< tasks that use the memory; of roots
  std::uint32_t last = 0;     ///< of roots
  std::size_t offset = 0;     ///< bytes in the block; of roots
  std::size_t skip = 0;       ///< bytes of the root's memory before it; of views
};

/// What a primitive reads or writes.
struct Operand {
  enum class Kind : std::uint8_t {
    tensor,    ///< index: TensorId
    weight,    ///< index: gradient, i.e. place in production order
    prepared,  ///< index: PreparedCopy
    gradient,  ///< index: place in production order
  };
  Kind kind = Kind::tensor;
  std::uint32_t index = 0;

  static Operand of(TensorId id) { return {Kind::tensor, static_cast<std::uint32_t>(id)}; }
};

struct Argument {
  int name = 0;  ///< DNNL_ARG_…
  Operand operand;
};

struct PrimitiveTask {
  dnnl::primitive primitive;
  std::vector<Argument> arguments;
};

/// What a function of our own sees of a step.
class StepContext {
 public:
  const Plan* plan = nullptr;
  std::byte* block = nullptr;         ///< memory of the tensors
  std::byte* const* boxes = nullptr;  ///< of messages
  float* sent = nullptr;              ///< into the next collective
  const float* received = nullptr;    ///< out of the last one
  const float* weights = nullptr;     ///< flat
  float* gradients = nullptr;         ///< flat; null in a forward pass alone
  const models::Batch* batch = nullptr;
  StepInput input;
  StepOutput* output = nullptr;

  /// Elements of a tensor in its layout; T must be its type.
  template <typename T = float>
  [[nodiscard]] T* data(TensorId id) const {
    return static_cast<T*>(static_cast<void*>(address(id)));
  }
  /// A parameter and its gradient in storage layout; `gradient`: place in production order.
  [[nodiscard]] const float* weight_of(std::uint32_t gradient) const;
  [[nodiscard]] float* gradient_of(std::uint32_t gradient) const;
  /// The rank's place in its group; 0 in one of one rank.
  [[nodiscard]] std::size_t place_in(const models::Group& group) const;

 private:
  [[nodiscard]] std::byte* address(TensorId id) const;
};

using HostTask = std::function<void(const StepContext&)>;
using Task = std::variant<PrimitiveTask, HostTask>;

/// Layouts of a parameter and of its gradient.
struct Storage {
  Layout plain;   ///< row-major
  Layout layout;  ///< in flat buffers; as many bytes as plain
};

/// A parameter in another layout or type, shared by all users of the weights.
struct PreparedCopy {
  std::uint32_t gradient = 0;  ///< of which parameter: place in production order
  Layout layout;
  dnnl::reorder reorder;
  Layout scratchpad;
  std::size_t offset = 0;  ///< bytes in the block of copies
};

/// Tasks first … end − 1.
struct TaskRange {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};

/// A pass from collective to collective: exchanges[i] is between parts i and i + 1.
struct PassTasks {
  std::vector<TaskRange> parts;
  std::vector<Exchange> exchanges;
};

/// Memory outside of the block in which a message waits: what a send hands over or a receive takes, and in the backward
/// pass the gradient that goes the other way. Row-major, in the type of activations.
struct MessageBox {
  models::OperatorId op = 0;
  std::size_t bytes = 0;
};

struct Plan {
  models::Graph graph;
  ComputationOptions options;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  std::vector<ParameterSlot> slots;  ///< production order
  std::uint64_t elements = 0;        ///< of a flat buffer
  std::vector<Storage> storage;      ///< per slot
  std::vector<PreparedCopy> prepared;
  std::size_t prepared_bytes = 0;
  std::vector<Tensor> tensors;
  std::size_t block_bytes = 0;
  std::vector<Task> tasks;  ///< forward, then backward
  std::uint32_t forward_tasks = 0;
  // Of every chunk.
  std::vector<PassTasks> forward_passes;
  std::vector<PassTasks> backward_passes;
  std::vector<MessageBox> boxes;
  bool reads_input = false;  ///< has the batch as an operator
  std::size_t labels = 0;    ///< that the losses read
  // Most elements that an exchange has.
  std::uint64_t sent = 0;
  std::uint64_t received = 0;

  [[nodiscard]] const Tensor& tensor(TensorId id) const { return tensors[index_of(id)]; }
};

/// Bytes between the starts of two tensors are a multiple of this: a cache line.
inline constexpr std::size_t alignment = 64;

[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) {
  return (bytes + alignment - 1) / alignment * alignment;
}

inline const float* StepContext::weight_of(std::uint32_t gradient) const {
  return weights + plan->slots[gradient].offset;
}

inline float* StepContext::gradient_of(std::uint32_t gradient) const {
  return gradients + plan->slots[gradient].offset;
}

inline std::size_t StepContext::place_in(const models::Group& group) const {
  if (group.ranks == 1) return 0;
  if (group.family >= input.places.size()) internal_error("no place in a group of family {}", group.family);
  return input.places[group.family];
}

inline std::byte* StepContext::address(TensorId id) const {
  return block + plan->tensor(plan->tensor(id).root).offset + plan->tensor(id).skip;
}

}  // namespace hcclsim::device::onednn
