#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/program.hpp"

/// Records kernels and the tensors between them. Reading and writing a tensor counts its bytes as the kernel's traffic
/// and stretches the tensor's life to the kernel, so that both always agree.
namespace hcclsim::models {

class ProgramWriter {
 public:
  /// Starts the next kernel; what follows describes it. The reference is valid until the next launch.
  Kernel& launch(std::string_view op, std::string_view what, Phase phase, KernelClass kind, DataType dtype) {
    Kernel& kernel = program_.kernels.emplace_back();
    kernel.name.reserve(op.size() + what.size() + 16);
    kernel.name.append(op).append(repeats_ ? ":recompute_" : ":").append(what);
    kernel.phase = phase;
    kernel.kind = kind;
    kernel.dtype = dtype;
    kernel.op = op_;
    kernel.chunk = chunk_;
    kernel.recomputed = repeats_;
    return kernel;
  }
  /// Kernels that are launched from now on come from this operator, of this chunk.
  void enter(OperatorId op, std::uint32_t chunk) {
    op_ = op;
    chunk_ = chunk;
  }
  /// Whether kernels that are launched from now on repeat those of the forward pass.
  void repeat(bool repeats) { repeats_ = repeats; }
  [[nodiscard]] bool repeats() const { return repeats_; }
  /// The kernel reads a parameter.
  void use(std::uint32_t parameter) { program_.uses.push_back({parameter, kernel_index()}); }
  /// The kernel last launched, and its index.
  [[nodiscard]] Kernel& kernel() { return program_.kernels.back(); }
  [[nodiscard]] std::uint32_t kernel_index() const { return static_cast<std::uint32_t>(program_.kernels.size() - 1); }

  /// A tensor that exists before the first kernel.
  TensorId input(Bytes bytes) {
    program_.tensors.push_back({.bytes = bytes, .first_kernel = 0, .last_kernel = 0});
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }
  /// A new tensor that the kernel writes.
  TensorId write(Bytes bytes) {
    kernel().written += bytes;
    const std::uint32_t kernel_number = kernel_index();
    program_.tensors.push_back({bytes, kernel_number, kernel_number, kernel_number});
    return static_cast<TensorId>(program_.tensors.size() - 1);
  }
  /// The kernel writes a further part of `tensor`. Its place, parts written later included, is taken with the first.
  void write_part(TensorId tensor, Bytes bytes) {
    LiveTensor& live = program_.tensors[tensor];
    kernel().written += bytes;
    live.bytes += bytes;
    live.last_kernel = kernel_index();
    live.writer = kernel_index();
  }
  void read(TensorId tensor) { read_part(tensor, program_.tensors[tensor].bytes); }
  /// The kernel reads only `bytes` of a tensor.
  void read_part(TensorId tensor, Bytes bytes) {
    kernel().read += bytes;
    program_.tensors[tensor].last_kernel = kernel_index();
    program_.reads.push_back({tensor, kernel_index()});
  }
  /// Traffic that is not a live tensor: weights, parameter gradients, labels.
  void read_bytes(Bytes bytes) { kernel().read += bytes; }
  void write_bytes(Bytes bytes) { kernel().written += bytes; }
  /// Element-wise work: `operations` per element of `elements`.
  void vector_work(std::uint64_t operations, std::uint64_t elements) {
    kernel().vector_elements += operations * elements;
    kernel().flops += static_cast<Flops>(operations * elements);
  }
  /// Notes a fused operator in the name: "+relu".
  void fused(std::string_view what) { kernel().name.append("+").append(what); }

  [[nodiscard]] Program& program() { return program_; }

 private:
  Program program_;
  OperatorId op_ = no_operator;
  std::uint32_t chunk_ = 0;
  bool repeats_ = false;
};

}  // namespace hcclsim::models
