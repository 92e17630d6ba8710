#include "study/run/result.hpp"

namespace hcclsim::study {

std::vector<hccl::ParameterRange> RunResult::parameters_of(hccl::Segment segment) const {
  std::vector<std::uint32_t> parameter_of;
  parameter_of.reserve(segment.tensors());
  for (std::uint32_t index = segment.first; index <= segment.last; ++index) {
    parameter_of.push_back(program->gradients[index].parameter);
  }
  return hccl::parameter_ranges({0, segment.tensors() - 1}, parameter_of);
}

}  // namespace hcclsim::study
