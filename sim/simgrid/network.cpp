#include "sim/simgrid/network.hpp"

#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "sim/faults/fault_plan.hpp"
#include "sim/flat_map.hpp"
#include "sim/simgrid/engine.hpp"
#include "sim/simgrid/source.hpp"

/// The network `simgrid`: every transfer is a Comm of SimGrid on SimGrid's own network model. Only the latency is paid
/// by us, before the Comm starts: SimGrid's sharing is max-min fair when no link has a latency.
namespace hcclsim::sim {
namespace {

/// A Comm carries whole bytes, and a read or write factor makes fractions of them. Links and payloads are scaled up by
/// this, which leaves times as they are and the rounding below 1e-12 of a transfer of 2 kB.
constexpr double payload_scale = 1 << 28;

class SimgridNetwork final : public Network, private EventHandler {
 public:
  /// Sets the capacities of SimGrid's links; only one such network can be made per process.
  SimgridNetwork(const Cluster& cluster, EventLoop& loop, const FaultPlan* faults)
      : cluster_(cluster), loop_(loop), faults_(faults) {
    if (cluster.splits_transfers()) {
      bad_input("network",
                "the network simgrid has one way between two NPUs, but routing {} gives each of their queue pairs "
                "(HCCL_RDMA_QPS_PER_CONNECTION) its own; use fluid",
                text_of(cluster.routing()));
    }
    if (std::exchange(receiver, this) != nullptr) internal_error("a second network `simgrid` at the same time");
    if (simgrid::s4u::Engine::get_clock() > 0) internal_error("network `simgrid` after another simulation");
    static const bool connected = [] {
      simgrid::s4u::Activity::on_completion_cb([](const simgrid::s4u::Activity& activity) {
        if (receiver != nullptr) receiver->on_completion(activity);
      });
      return true;
    }();
    static_cast<void>(connected);
    for (LinkId link = 0; link < cluster.links().size(); ++link) {
      links_.push_back(engine().link_by_name(cluster.links()[link].name));
      links_.back()->set_bandwidth(cluster.capacity(link) * payload_scale);
    }
    for (Rank rank = 0; rank < cluster.size(); ++rank) add_host(cluster.npu(rank).host, cluster.npu(rank).name);
    for (const Cpu& cpu : cluster.cpus()) add_host(cpu.host, cpu.name);
    if (faults_ == nullptr) return;
    for (const Seconds date : faults_->dates_of_transfers()) loop_.at(date, {}, *this, fault);
  }

  ~SimgridNetwork() override {
    receiver = nullptr;
    for (Transfer& transfer : transfers_) {
      if (transfer.comm != nullptr && transfer.payload > 0) transfer.comm->cancel();
    }
  }

  void transfer(const Route& route, Access access, Bytes bytes, Seconds date, EventOrder order, EventHandler& handler,
                std::uint64_t tag) override {
    const double factor = access == Access::write ? route.write_factor : route.read_factor;
    const double payload = static_cast<double>(bytes) * factor * payload_scale;
    if (payload >= 0x1p63) {
      bad_input("network", "a transfer of {} bytes is too large for the network simgrid (about 3e10); use fluid",
                bytes);
    }
    require_same_way(route);
    ++started_;
    auto slot = static_cast<std::uint32_t>(transfers_.size());
    if (free_.empty()) {
      transfers_.emplace_back();
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    transfers_[slot] = {&route, static_cast<std::uint64_t>(std::llround(payload)), order, &handler, tag, nullptr,
                        false};
    const Seconds latency = faults_ == nullptr ? route.latency : faults_->latency(route, date);
    loop_.at(date + latency, order, *this, slot);
  }

 private:
  void add_host(HostId host, const std::string& name) {
    if (host >= hosts_.size()) {
      hosts_.resize(host + 1);
      ports_.resize(host + 1);
    }
    hosts_[host] = engine().host_by_name(name);
    ports_[host] = engine().host_by_name_or_null(port_host_of(name));
  }

  /// By HostId: the hosts between which SimGrid has the route.
  [[nodiscard]] const std::vector<simgrid::s4u::Host*>& ends(const Route& route) const {
    return route.between_ports ? ports_ : hosts_;
  }

  /// Sees to it that SimGrid leads a transfer over the links of the route: it is told of ways that its zones do not
  /// lead.
  void require_same_way(const Route& route) {
    const std::uint64_t key = std::uint64_t{route.from} << 32 | route.to;
    if (known_.find(key) != FlatMap::none) return;
    known_.insert(key, 1);
    simgrid::s4u::Host& from = *ends(route)[route.from];
    simgrid::s4u::Host& to = *ends(route)[route.to];
    if (route.between_ports || route.by_property || route.by_fabric) {
      auto* const zone = from.get_englobing_zone();
      if (zone != to.get_englobing_zone()) {
        bad_input("platform",
                  "{}: property route:{}:{} joins NPUs of different zones; only NPUs of one zone can be joined",
                  cluster_.path(), from.get_name(), to.get_name());
      }
      std::vector<simgrid::s4u::LinkInRoute> links;
      for (const LinkId link : route.links) links.emplace_back(links_[link]);
      zone->add_bypass_route(from.get_netpoint(), to.get_netpoint(), nullptr, nullptr, links);
    }
    std::vector<simgrid::s4u::Link*> way;
    from.route_to(&to, way, nullptr);
    const auto same = [this](LinkId link, const simgrid::s4u::Link* other) { return links_[link] == other; };
    if (!std::ranges::equal(route.links, way, same)) {
      internal_error("{}: SimGrid leads from '{}' to '{}' over other links", cluster_.path(), from.get_name(),
                     to.get_name());
    }
  }

  struct Transfer {
    const Route* route = nullptr;
    std::uint64_t payload = 0;  // scaled bytes; 0 once they have arrived
    EventOrder order;
    EventHandler* handler = nullptr;
    std::uint64_t tag = 0;
    simgrid::s4u::CommPtr comm;  // dropped a round after its end: SimGrid still needs it in its own callback
    bool held = false;           // by a fault, before it could start
  };

  void on_event(std::uint64_t slot) override {
    if (slot == fault) {
      apply_faults();
      return;
    }
    if (transfers_[slot].payload > 0) {
      start(static_cast<std::uint32_t>(slot));
      return;
    }
    const Transfer ended = std::exchange(transfers_[slot], {});
    free_.push_back(static_cast<std::uint32_t>(slot));
    ++completed_;
    ended.handler->on_event(ended.tag);
  }

  [[nodiscard]] auto factor_now() const {
    return [this](LinkId link) { return faults_->bandwidth_factor(link, loop_.now()); };
  }

  void start(std::uint32_t slot) {
    Transfer& transfer = transfers_[slot];
    transfer.held = faults_ != nullptr && faults_->stops(*transfer.route, loop_.now());
    if (transfer.held) return;
    const bool changes = faults_ != nullptr && faults_->changes(*transfer.route);
    // SimGrid bounds a Comm by the bandwidths that the links have when it starts, also when they have more later.
    if (changes) set_bandwidths(transfer.route->links, [this](LinkId link) { return faults_->largest_factor(link); });
    transfer.comm = simgrid::s4u::Comm::sendto_init();
    under_way_.emplace(transfer.comm.get(), slot);
    const std::vector<simgrid::s4u::Host*>& route_ends = ends(*transfer.route);
    // The payload comes first: the Comm starts as soon as both ends are set.
    transfer.comm->set_payload_size(transfer.payload)->set_source(route_ends[transfer.route->from]);
    transfer.comm->set_destination(route_ends[transfer.route->to]);
    if (changes) set_bandwidths(transfer.route->links, factor_now());
  }

  /// Sets the bandwidths of links to factors on their capacities; those of links that are cut stay as they are.
  template <typename Links, typename Factor>
  void set_bandwidths(const Links& links, const Factor& factor_of) {
    for (const LinkId link : links) {
      const double factor = factor_of(link);
      if (factor > 0) links_[link]->set_bandwidth(cluster_.capacity(link) * factor * payload_scale);
    }
  }

  /// Takes capacities as they are from now on. SimGrid knows no bandwidth of 0, and a Comm that it suspends does not
  /// always share links as it should when it goes on: what is held ends, and another Comm moves what is left.
  void apply_faults() {
    set_bandwidths(faults_->changing_links(), factor_now());
    for (std::uint32_t slot = 0; slot < transfers_.size(); ++slot) {
      Transfer& transfer = transfers_[slot];
      if (transfer.held) {
        start(slot);
      } else if (transfer.comm != nullptr && transfer.payload > 0 && faults_->stops(*transfer.route, loop_.now())) {
        transfer.payload = std::max<std::uint64_t>(1, std::llround(transfer.comm->get_remaining()));
        transfer.held = true;
        drop(transfer);
      }
    }
  }

  /// Ends a Comm that is under way.
  void drop(Transfer& transfer) {
    under_way_.erase(transfer.comm.get());
    transfer.comm->cancel();
    dropped_.push_back(std::move(transfer.comm));
  }

  void on_completion(const simgrid::s4u::Activity& activity) {
    const auto found = under_way_.find(&activity);
    if (found == under_way_.end()) return;  // somebody else's activity, or reported a second time
    const std::uint32_t slot = found->second;
    under_way_.erase(found);
    Transfer& transfer = transfers_[slot];
    transfer.payload = 0;
    // As an event, so that completions of one date come in order.
    loop_.at(std::max(loop_.now(), simgrid::s4u::Engine::get_clock()), transfer.order, *this, slot);
  }

  /// The network that SimGrid's callback, which cannot be disconnected, reports to.
  static inline SimgridNetwork* receiver = nullptr;
  /// In the place of a slot: a fault begins or ends.
  static constexpr std::uint64_t fault = ~std::uint64_t{0};

  const Cluster& cluster_;
  EventLoop& loop_;
  const FaultPlan* faults_;                 // null: there are none
  std::vector<simgrid::s4u::Link*> links_;  // by LinkId
  std::vector<simgrid::s4u::Host*> hosts_;  // by HostId
  std::vector<simgrid::s4u::Host*> ports_;  // by HostId; null without a port
  FlatMap known_;                           // pairs of hosts whose way is known to be the same
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_;
  std::unordered_map<const simgrid::s4u::Activity*, std::uint32_t> under_way_;
  std::vector<simgrid::s4u::CommPtr> dropped_;  // SimGrid still needs them
};

}  // namespace

std::unique_ptr<Network> make_simgrid_comms(const Cluster& cluster, EventLoop& loop, const FaultPlan* faults) {
  return std::make_unique<SimgridNetwork>(cluster, loop, faults);
}

}  // namespace hcclsim::sim
