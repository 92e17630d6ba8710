#include "cli/html/memory_data.hpp"

#include <utility>

namespace hcclsim::cli {

Json memory_data(const RunReport& report) {
  const device::HbmAccount& hbm = report.hbm;
  Json dates = Json::array();
  Json activations = Json::array();
  for (const hccl::MemoryPoint& point : report.view.activations) {
    dates.push_back(point.date);
    activations.push_back(point.bytes);
  }
  Json fixed{{"weights", hbm.weights},
             {"gradients", hbm.gradients},
             {"optimizer state", hbm.optimizer_state},
             {"communication buffers", hbm.communication}};
  if (hbm.gathered > 0) fixed["gathered weights"] = hbm.gathered;
  if (hbm.compression > 0) fixed["compression"] = hbm.compression;
  return {{"capacity", report.hbm_capacity},
          {"peak", hbm.peak()},
          {"fixed", std::move(fixed)},
          {"date", std::move(dates)},
          {"activations", std::move(activations)}};
}

}  // namespace hcclsim::cli
