#include "hccl/parallel/step_spec.hpp"

namespace hcclsim::hccl {

CollectiveRequest StepSpec::request_of(const Operation& operation) const {
  CollectiveRequest request{.operation = operation, .launch = launch, .config = config};
  if (operation.collective == Collective::allreduce) {
    request.algorithm = allreduce;
    request.levels = levels;
  }
  return request;
}

}  // namespace hcclsim::hccl
