#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "study/jobs/job/msjob/msjob.hpp"

/// The platform's servers as nodes of Kubernetes, and where pods find room.
namespace hcclsim::study {

/// Pods on a node, the default of Kubernetes.
inline constexpr std::uint32_t most_pods_per_server = 110;

struct JobServer {
  std::string name;               ///< "server0"
  std::vector<Rank> npus{};       ///< numbers in the cluster
  std::string npu_resource{};     ///< "huawei.com/Ascend910"; nvidia.com/gpu stands for the same NPUs
  std::uint32_t cpus = 0;         ///< cores
  std::optional<Bytes> memory{};  ///< none: it is not counted
};

/// Which of several servers with room gets a pod.
enum class PodPacking : std::uint8_t {
  pack,    ///< the first one
  spread,  ///< the one with the most free NPUs, then cores; the first of equals
};

/// A pod's place on a server.
struct PodSeat {
  std::uint32_t server = 0;
  std::vector<Rank> npus{};  ///< numbers in the cluster
  std::uint32_t slot = 0;    ///< number among the pods of the server
};

class ServerPool {
 public:
  ServerPool(std::vector<JobServer> servers, PodPacking packing);

  [[nodiscard]] const JobServer& server(std::uint32_t number) const { return places_[number].server; }
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;

  /// Takes what the pod needs of a server that has it; nothing if none has. NPUs are the lowest ones that are free.
  [[nodiscard]] std::optional<PodSeat> place(const PodTemplate& pod);
  void release(const PodSeat& seat, const PodTemplate& pod);
  /// The server takes no more pods.
  void lose(std::uint32_t server) { places_[server].lost = true; }

  /// "0/2 nodes are available: 2 Insufficient huawei.com/Ascend910", for a pod that was not placed.
  [[nodiscard]] std::string why_not(const PodTemplate& pod) const;
  /// A resource of which all servers together have less free than this; none: there is enough.
  [[nodiscard]] std::optional<std::string> lacking(const Resources& resources) const;

 private:
  struct Place {
    JobServer server;
    Resources free{};         ///< of what is counted, but for NPUs
    std::vector<bool> taken;  ///< of the server's NPUs
    std::vector<bool> slots;  ///< that have a pod
    bool lost = false;

    [[nodiscard]] Rank free_npus() const;
    /// What of these the server has free, in thousandths; nothing: it is not counted.
    [[nodiscard]] std::optional<std::uint64_t> free_of(const std::string& resource) const;
    [[nodiscard]] std::vector<std::string> reasons_against(const PodTemplate& pod) const;
  };

  std::vector<Place> places_;
  PodPacking packing_;
};

}  // namespace hcclsim::study
