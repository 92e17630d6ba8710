#include "models/lowering/step_writer.hpp"

namespace hcclsim::models {

Kernel& StepWriter::launch(std::string_view op, std::string_view what, Phase phase, KernelClass kind, DataType dtype) {
  Kernel& kernel = step_.kernels.emplace_back();
  kernel.name.reserve(op.size() + what.size() + 16);
  kernel.name.append(op).append(":").append(what);
  kernel.phase = phase;
  kernel.kind = kind;
  kernel.dtype = dtype;
  return kernel;
}

TensorId StepWriter::input(Bytes bytes) {
  step_.live_tensors.push_back({.bytes = bytes, .first_kernel = 0, .last_kernel = 0});
  return static_cast<TensorId>(step_.live_tensors.size() - 1);
}

TensorId StepWriter::write(Bytes bytes) {
  kernel().written += bytes;
  step_.live_tensors.push_back({.bytes = bytes, .first_kernel = kernel_index(), .last_kernel = kernel_index()});
  return static_cast<TensorId>(step_.live_tensors.size() - 1);
}

void StepWriter::write_part(TensorId tensor, Bytes bytes) {
  LiveTensor& live = step_.live_tensors[tensor];
  kernel().written += bytes;
  live.bytes += bytes;
  live.last_kernel = kernel_index();
}

void StepWriter::read(TensorId tensor) { read_part(tensor, step_.live_tensors[tensor].bytes); }

void StepWriter::read_part(TensorId tensor, Bytes bytes) {
  kernel().read += bytes;
  step_.live_tensors[tensor].last_kernel = kernel_index();
}

void StepWriter::vector_work(std::uint64_t operations, std::uint64_t elements) {
  kernel().vector_elements += operations * elements;
  kernel().flops += static_cast<Flops>(operations * elements);
}

void StepWriter::fused(std::string_view what) { kernel().name.append("+").append(what); }

}  // namespace hcclsim::models
