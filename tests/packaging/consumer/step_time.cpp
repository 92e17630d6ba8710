#include <cstdio>

#include "study/run/run.hpp"

int main() {
  hcclsim::study::RunSpec spec;
  spec.model = {.name = "lenet", .batch = 8};
  spec.platform.file = "atlas800t-a2";
  std::printf("%.9f\n", hcclsim::study::simulate(spec).step_time);
}
