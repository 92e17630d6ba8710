#include "models/lowering/program_writer.hpp"

namespace hcclsim::models {

Kernel& ProgramWriter::launch(std::string_view op, std::string_view what, Phase phase, KernelClass kind,
                              DataType dtype) {
  Kernel& kernel = program_.kernels.emplace_back();
  kernel.name.reserve(op.size() + what.size() + 16);
  kernel.name.append(op).append(":").append(what);
  kernel.phase = phase;
  kernel.kind = kind;
  kernel.dtype = dtype;
  kernel.op = op_;
  return kernel;
}

TensorId ProgramWriter::input(Bytes bytes) {
  program_.tensors.push_back({.bytes = bytes, .first_kernel = 0, .last_kernel = 0});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

TensorId ProgramWriter::write(Bytes bytes) {
  kernel().written += bytes;
  program_.tensors.push_back({.bytes = bytes, .first_kernel = kernel_index(), .last_kernel = kernel_index()});
  return static_cast<TensorId>(program_.tensors.size() - 1);
}

void ProgramWriter::write_part(TensorId tensor, Bytes bytes) {
  LiveTensor& live = program_.tensors[tensor];
  kernel().written += bytes;
  live.bytes += bytes;
  live.last_kernel = kernel_index();
}

void ProgramWriter::read(TensorId tensor) { read_part(tensor, program_.tensors[tensor].bytes); }

void ProgramWriter::read_part(TensorId tensor, Bytes bytes) {
  kernel().read += bytes;
  program_.tensors[tensor].last_kernel = kernel_index();
  program_.reads.push_back({tensor, kernel_index()});
}

void ProgramWriter::vector_work(std::uint64_t operations, std::uint64_t elements) {
  kernel().vector_elements += operations * elements;
  kernel().flops += static_cast<Flops>(operations * elements);
}

void ProgramWriter::fused(std::string_view what) { kernel().name.append("+").append(what); }

}  // namespace hcclsim::models
