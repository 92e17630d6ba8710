#include "sim/platform/generate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "sim/platform/catalog.hpp"

namespace hcclsim::sim {
namespace {

constexpr std::uint32_t mesh_size = 4;  // NPUs of an HCCS mesh of the 910A server

/// One link on a way inside a server, in the direction it is passed. Its name is the prefix and one or two numbers.
struct Hop {
  std::string_view prefix;
  std::uint32_t first = 0;
  std::uint32_t second = 0;  ///< = first: a name with one number
  bool up = true;
};

/// The link between two NPUs that is named after both; UP leads from the lower to the higher number.
Hop pair_hop(std::string_view prefix, std::uint32_t from, std::uint32_t to) {
  return {prefix, std::min(from, to), std::max(from, to), from < to};
}

class Writer {
 public:
  explicit Writer(const PlatformOptions& options)
      : options_(with_servers_complete(options)),
        soc_(find_soc_entry(options.soc)),
        model_(*soc_.server),
        npus_(std::uint64_t{options_.servers} * options_.npus_per_server) {
    if (options_.fabric.fat_tree) complete_fat_tree(options_.fabric, options_.servers, options_.npus_per_server);
  }

  std::string write() {
    write_head();
    if (options_.fabric.routing.has_value()) {
      write_named_fat_tree();
    } else if (options_.fabric.fat_tree) {
      write_fat_tree();
    } else if (super_pod()) {
      write_super_pods();
    } else {
      line("  <zone id=\"cluster\" routing=\"Cluster\">");
      write_zone_properties();
      write_star(0, options_.servers);
      line("  </zone>");
    }
    line("</platform>");
    return fmt::to_string(out_);
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_.push_back('\n');
  }

  template <typename... Args>
  void text(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  [[nodiscard]] bool several_pods() const { return options_.super_pods.size() > 1; }
  /// The unified bus joins servers.
  [[nodiscard]] bool super_pod() const { return model_.topology == ServerTopology::ub_plane && options_.servers > 1; }
  [[nodiscard]] std::uint32_t first_npu(std::uint32_t server) const { return server * options_.npus_per_server; }
  [[nodiscard]] double peak_gflops() const { return soc_.cube_cores * 8192.0 * soc_.clock_ghz; }

  [[nodiscard]] std::string description() const {
    std::string inside;
    switch (model_.topology) {
      case ServerTopology::hccs_groups:
        inside = options_.npus_per_server <= mesh_size ? "an HCCS mesh"
                 : options_.shared_pcie                ? "HCCS meshes of four, one PCIe path between them"
                                                       : "HCCS meshes of four, PCIe links i to i+4";
        break;
      case ServerTopology::hccs_mesh:
        inside = "an HCCS mesh";
        break;
      case ServerTopology::ub_plane:
        inside = "SIO pairs and a switch of the unified bus";
        break;
    }
    const char* const between = options_.fabric.fat_tree ? "a RoCE fat tree"
                                : super_pod()            ? "the unified bus"
                                                         : "a RoCE switch";
    if (options_.servers == 1) return fmt::format("{} x {}, {}", npus_, soc_.name, inside);
    const std::string pods =
        several_pods() ? fmt::format(" of {} super-pods", options_.super_pods.size()) : std::string();
    return fmt::format("{} x {} in {} servers{}: {}; between servers {}{}", npus_, soc_.name, options_.servers, pods,
                       inside, between, several_pods() ? ", between super-pods RoCE" : "");
  }

  [[nodiscard]] std::string command() const {
    std::string command = fmt::format("hcclsim platform generate --soc {} --servers {}", soc_.name, options_.servers);
    if (options_.npus_per_server != model_.npus)
      command += fmt::format(" --npus-per-server {}", options_.npus_per_server);
    if (several_pods()) command += " --super-pods " + super_pods_text();
    if (options_.shared_pcie) command += " --pcie shared";
    if (options_.fabric.fat_tree) {
      const FabricOptions& fabric = options_.fabric;
      command +=
          fmt::format(" --fabric fat-tree:levels={},oversubscription={},leaf={},leaf-size={}", fabric.levels,
                      fabric.oversubscription, fabric.leaf == LeafOrder::server ? "server" : "rail", fabric.leaf_size);
      if (fabric.routing.has_value()) command += ",routing=" + text_of(*fabric.routing);
    }
    return command;
  }

  /// As parse_super_pods takes them.
  [[nodiscard]] std::string super_pods_text() const {
    const std::vector<std::uint32_t>& pods = options_.super_pods;
    const bool alike = std::all_of(pods.begin(), pods.end(), [&](std::uint32_t size) { return size == pods.front(); });
    return alike ? fmt::to_string(pods.size()) : fmt::format("{}", fmt::join(pods, ","));
  }

  void write_head() {
    line("<?xml version='1.0'?>");
    line("<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">");
    line("<!-- The source of every figure is given in platforms/README.md, the properties in docs/formats.md.");
    if (options_.fabric.routing.has_value()) {
      line(
          "     hcclsim chooses among the ways of the fabric (fabric.routing); another SimGrid program takes one of "
          "them.");
    } else if (options_.fabric.fat_tree) {
      line("     The links inside the servers are added by hcclsim; another SimGrid program sees the fabric alone.");
    } else if (several_pods()) {
      line(
          "     Between super-pods hcclsim leads from RoCE port to RoCE port; another SimGrid program sees roce-core.");
    }
    line("-->");
    line("<platform version=\"4.1\">");
  }

  void write_property(std::string_view indent, std::string_view id, std::string_view value) {
    line("{}<prop id=\"{}\" value=\"{}\"/>", indent, id, value);
  }

  void write_zone_properties() {
    constexpr std::string_view indent = "    ";
    const std::string count = options_.servers == 1 ? "" : fmt::format("{} x ", options_.servers);
    write_property(indent, "name", fmt::format("{}{}", count, model_.title));
    write_property(indent, "description", description());
    write_property(indent, "generated_by", command());
    write_property(indent, "npus_per_server", fmt::to_string(options_.npus_per_server));
    if (options_.fabric.routing.has_value()) {
      write_property(indent, "fabric.routing", text_of(*options_.fabric.routing));
    } else if (options_.fabric.fat_tree) {
      write_property(indent, "fabric.kind", "roce");
    }
    for (const LinkSpeed& speed : model_.speeds) {
      const auto put = [&](std::string_view what, double gigabytes) {
        write_property(indent, fmt::format("link.{}.{}", speed.kind, what), fmt::format("{}GBps", gigabytes));
      };
      put("nominal", speed.nominal);
      put("low", speed.low);
      put("high", speed.high);
      if (speed.read != 0) put("read", speed.read);
      if (speed.write != 0) put("write", speed.write);
      write_property(indent, fmt::format("link.{}.source", speed.kind), speed.source);
    }
    for (const auto& [key, value] : npu_values(soc_)) write_property(indent, fmt::format("npu.{}", key), value);
    for (const TaskCost& cost : task_costs()) write_property(indent, cost.property, cost.value);
    for (const TaskCost& cost : soc_.server->issue) write_property(indent, cost.property, cost.value);
  }

  /// The servers of a zone of routing Cluster.
  void write_star(std::uint32_t first_server, std::uint32_t servers) {
    const std::uint32_t end = first_server + servers;
    for (std::uint32_t server = first_server; server < end; ++server) write_hosts(server);
    for (std::uint32_t server = first_server; server < end; ++server) {
      write_pair_links(server);
      write_ports(server);
    }
    for (std::uint32_t server = first_server; server < end; ++server) write_bypass_routes(server);
  }

  /// One super-pod, or several with a zone each.
  void write_super_pods() {
    line("  <zone id=\"cluster\" routing=\"Full\">");
    write_zone_properties();
    if (!several_pods()) {
      write_nodes(0, options_.servers, "ub-level2");
    } else {
      std::vector<std::uint32_t> first_servers{0};
      for (std::uint32_t pod = 0; pod < options_.super_pods.size(); ++pod) {
        line("    <zone id=\"super-pod-{}\" routing=\"Full\">", pod);
        write_nodes(first_servers.back(), options_.super_pods[pod], fmt::format("ub-level2-{}", pod));
        line("    </zone>");
        first_servers.push_back(first_servers.back() + options_.super_pods[pod]);
      }
      line(
          "    <link id=\"roce-core\" bandwidth=\"{}GBps\" latency=\"0us\" sharing_policy=\"FATPIPE\">"
          "<prop id=\"kind\" value=\"roce\"/></link>",
          model_.speed("roce").used);
      first_servers.pop_back();
      write_zone_routes("super-pod", 0, first_servers, "roce-core");
    }
    line("  </zone>");
  }

  /// The servers of a super-pod, each a zone, and the bus between them.
  void write_nodes(std::uint32_t first, std::uint32_t servers, const std::string& bus) {
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t server = first; server < first + servers; ++server) {
      line("    <zone id=\"node-{}\" routing=\"Cluster\">", server);
      line("    <router id=\"switch-{}\"/>", server);
      write_star(server, 1);
      line("    </zone>");
      numbers.push_back(server);
    }
    if (servers == 1) return;
    write_link_with_range(bus, model_.level2, fmt::format("{}us", model_.level2_latency_us), "FATPIPE");
    write_zone_routes("node", first, numbers, bus);
  }

  /// A route between each two zones PREFIX-first, …, over one link and the switches of these servers.
  void write_zone_routes(std::string_view prefix, std::uint32_t first, const std::vector<std::uint32_t>& switches,
                         std::string_view link) {
    for (std::uint32_t a = 0; a < switches.size(); ++a) {
      for (std::uint32_t b = a + 1; b < switches.size(); ++b) {
        line(
            "    <zoneRoute src=\"{0}-{1}\" dst=\"{0}-{2}\" gw_src=\"switch-{3}\" gw_dst=\"switch-{4}\">"
            "<link_ctn id=\"{5}\"/></zoneRoute>",
            prefix, first + a, first + b, switches[a], switches[b], link);
      }
    }
  }

  void write_fat_tree() {
    line("  <zone id=\"cluster\" routing=\"Full\">");
    write_zone_properties();
    text("    <cluster id=\"fabric\" prefix=\"npu-\" suffix=\"\" radical=\"");
    write_radical();
    line(
        "\" speed=\"{}Gf\" bw=\"{}GBps\" lat=\"0us\" sharing_policy=\"SPLITDUPLEX\" topology=\"FAT_TREE\" "
        "topo_parameters=\"{}\">",
        peak_gflops(), model_.speed("roce").used, tree_parameters(options_.fabric, npus_));
    write_property("      ", "npu", soc_.name);
    line("    </cluster>");
    line("    <zone id=\"servers\" routing=\"None\">");
    for (std::uint32_t server = 0; server < options_.servers; ++server) write_pair_properties(server);
    for (std::uint32_t server = 0; server < options_.servers; ++server) write_pair_links(server);
    line("    </zone>");
    line("  </zone>");
  }

  /// The tree as routers that are joined by links, with the servers at its leaves.
  void write_named_fat_tree() {
    line("  <zone id=\"cluster\" routing=\"Dijkstra\">");
    write_zone_properties();
    for (std::uint32_t server = 0; server < options_.servers; ++server) write_hosts(server);
    const TreeShape shape = tree_shape(options_.fabric, npus_);
    const bool cores = options_.fabric.levels == 3;
    const auto routers = [&](std::string_view name, std::uint32_t count) {
      for (std::uint32_t number = 0; number < count; ++number) line("    <router id=\"{}-{}\"/>", name, number);
    };
    routers("leaf", shape.leaves);
    routers("spine", shape.pods() * shape.spines_per_pod);
    if (cores) routers("core", shape.leaves_per_pod * shape.spines_per_pod);
    for (std::uint32_t server = 0; server < options_.servers; ++server) {
      write_pair_links(server);
      write_ports(server);
    }
    for_each_switch_link(shape, [&](std::string_view lower, std::string_view upper) {
      write_link(fmt::format("{}-{}", lower, upper), model_.speed("roce"));
    });
    const auto route = [&](std::string_view lower, std::string_view upper, std::string_view link) {
      line("    <route src=\"{}\" dst=\"{}\"><link_ctn id=\"{}\" direction=\"UP\"/></route>", lower, upper, link);
    };
    for (std::uint32_t npu = 0; npu < npus_; ++npu) {
      route(fmt::format("npu-{}", npu), fmt::format("leaf-{}", leaf_of(npu)), fmt::format("roce-{}", npu));
    }
    for_each_switch_link(shape, [&](std::string_view lower, std::string_view upper) {
      route(lower, upper, fmt::format("{}-{}", lower, upper));
    });
    for (std::uint32_t server = 0; server < options_.servers; ++server) write_bypass_routes(server);
    line("  </zone>");
  }

  /// Calls visit(lower, upper) with the names of the switches at its ends, level by level.
  template <typename Visit>
  void for_each_switch_link(const TreeShape& shape, const Visit& visit) const {
    for (std::uint32_t leaf = 0; leaf < shape.leaves; ++leaf) {
      for (std::uint32_t spine = 0; spine < shape.spines_per_pod; ++spine) {
        const std::uint32_t pod = leaf / shape.leaves_per_pod;
        visit(fmt::format("leaf-{}", leaf), fmt::format("spine-{}", pod * shape.spines_per_pod + spine));
      }
    }
    if (options_.fabric.levels == 2) return;
    for (std::uint32_t spine = 0; spine < shape.pods() * shape.spines_per_pod; ++spine) {
      for (std::uint32_t core = 0; core < shape.leaves_per_pod; ++core) {
        visit(fmt::format("spine-{}", spine),
              fmt::format("core-{}", spine % shape.spines_per_pod * shape.leaves_per_pod + core));
      }
    }
  }

  [[nodiscard]] std::uint32_t leaf_of(std::uint32_t npu) const {
    const std::uint32_t n = options_.npus_per_server;
    const std::uint32_t place = options_.fabric.leaf == LeafOrder::server ? npu : npu % n * options_.servers + npu / n;
    return place / options_.fabric.leaf_size;
  }

  /// The numbers of the NPUs in the order of the tree's leaves.
  void write_radical() {
    if (options_.fabric.leaf == LeafOrder::server) {
      text("0-{}", npus_ - 1);
      return;
    }
    const char* comma = "";
    for (std::uint32_t device = 0; device < options_.npus_per_server; ++device) {
      for (std::uint32_t server = 0; server < options_.servers; ++server, comma = ",") {
        text("{}{}", comma, first_npu(server) + device);
      }
    }
  }

  void write_hosts(std::uint32_t server) {
    for (std::uint32_t device = 0; device < options_.npus_per_server; ++device) {
      line("    <host id=\"npu-{}\" speed=\"{}Gf\">", first_npu(server) + device, peak_gflops());
      write_property("      ", "npu", soc_.name);
      line("      <prop id=\"server\" value=\"{}\"/><prop id=\"device\" value=\"{}\"/>", server, device);
      // Other servers are joined at their RoCE ports anyway.
      if (super_pod()) write_property("      ", "roce", fmt::format("roce-{}", first_npu(server) + device));
      if (several_pods()) write_property("      ", "super_pod", fmt::to_string(pod_of(server)));
      line("    </host>");
    }
    line("    <host id=\"cpu-{}\" speed=\"{}Gf\" core=\"{}\"><prop id=\"cpu\" value=\"{}\"/></host>", server,
         host_clock_ghz, host_cores, host_cpu);
  }

  [[nodiscard]] std::uint32_t pod_of(std::uint32_t server) const {
    std::uint32_t pod = 0;
    for (std::uint32_t end = options_.super_pods[0]; end <= server;) end += options_.super_pods[++pod];
    return pod;
  }

  void write_link(std::string_view id, const LinkSpeed& speed) {
    line(
        "    <link id=\"{}\" bandwidth=\"{}GBps\" latency=\"0us\" sharing_policy=\"SPLITDUPLEX\">"
        "<prop id=\"kind\" value=\"{}\"/></link>",
        id, speed.used, speed.kind);
  }

  /// A link whose figures are not those of its kind.
  void write_link_with_range(std::string_view id, const LinkSpeed& speed, std::string_view latency,
                             std::string_view policy) {
    line(
        "    <link id=\"{}\" bandwidth=\"{}GBps\" latency=\"{}\" sharing_policy=\"{}\">"
        "<prop id=\"kind\" value=\"{}\"/><prop id=\"nominal\" value=\"{}GBps\"/><prop id=\"low\" value=\"{}GBps\"/>"
        "<prop id=\"high\" value=\"{}GBps\"/><prop id=\"read\" value=\"{}GBps\"/>"
        "<prop id=\"write\" value=\"{}GBps\"/></link>",
        id, speed.used, latency, policy, speed.kind, speed.nominal, speed.low, speed.high,
        speed.read == 0 ? speed.used : speed.read, speed.write == 0 ? speed.used : speed.write);
  }

  /// The links between two NPUs of a server.
  void write_pair_links(std::uint32_t server) {
    const std::uint32_t first = first_npu(server);
    const std::uint32_t end = first + options_.npus_per_server;
    if (options_.shared_pcie) write_link(fmt::format("pcie-shared-{}", server), model_.speed("pcie"));
    for (std::uint32_t a = first; a < end; ++a) {
      for (std::uint32_t b = a + 1; b < end; ++b) {
        const std::string_view kind = direct_link(a - first, b - first);
        if (!kind.empty()) write_link(fmt::format("{}-{}-{}", kind, a, b), model_.speed(kind));
      }
    }
  }

  /// The links of one NPU: its ports and its way to the CPUs.
  void write_ports(std::uint32_t server) {
    const bool plane = model_.topology == ServerTopology::ub_plane;
    for (std::uint32_t device = 0; device < options_.npus_per_server; ++device) {
      const std::uint32_t npu = first_npu(server) + device;
      const std::string_view port = plane ? "ub" : "roce";
      write_link(fmt::format("roce-{}", npu), model_.speed("roce"));
      if (plane) write_link(fmt::format("ub-{}", npu), model_.speed("ub"));
      if (plane) {
        write_link_with_range(fmt::format("host-{}", npu), model_.host, "0us", "SPLITDUPLEX");
      } else {
        write_link(fmt::format("host-{}", npu), model_.host);
      }
      if (options_.fabric.fat_tree) continue;
      line("    <host_link id=\"npu-{0}\" up=\"{1}-{0}_UP\" down=\"{1}-{0}_DOWN\"/>", npu, port);
    }
  }

  /// Prefix of the link between two devices of a server; empty if they have none of their own.
  [[nodiscard]] std::string_view direct_link(std::uint32_t a, std::uint32_t b) const {
    switch (model_.topology) {
      case ServerTopology::hccs_mesh:
        return "hccs";
      case ServerTopology::ub_plane:
        return a / 2 == b / 2 ? "sio" : "";
      case ServerTopology::hccs_groups:
        if (a / mesh_size == b / mesh_size) return "hccs";
        return a % mesh_size == b % mesh_size && !options_.shared_pcie ? "pcie" : "";
    }
    return "";
  }

  /// The way from one NPU of a server to another over the links of write_pair_links; empty where it leads over the
  /// ports. From mesh to mesh of a 910A server: over PCIe to the partner, then over HCCS; backwards the same links.
  [[nodiscard]] std::vector<Hop> way(std::uint32_t server, std::uint32_t from, std::uint32_t to) const {
    const std::uint32_t first = first_npu(server);
    const std::string_view kind = direct_link(from - first, to - first);
    if (!kind.empty()) return {pair_hop(kind, from, to)};
    if (model_.topology != ServerTopology::hccs_groups) return {};
    if (options_.shared_pcie) return {{"pcie-shared", server, server, from < to}};
    if (from > to) {
      const std::uint32_t partner = to + mesh_size;
      return {pair_hop("hccs", from, partner), pair_hop("pcie", partner, to)};
    }
    const std::uint32_t partner = from + mesh_size;
    return {pair_hop("pcie", from, partner), pair_hop("hccs", partner, to)};
  }

  void write_bypass_routes(std::uint32_t server) {
    const std::uint32_t first = first_npu(server);
    const std::uint32_t end = first + options_.npus_per_server;
    for (std::uint32_t from = first; from < end; ++from) {
      for (std::uint32_t to = first; to < end; ++to) {
        if (from == to) continue;
        const std::vector<Hop> hops = way(server, from, to);
        if (hops.empty()) continue;
        text("    <bypassRoute src=\"npu-{}\" dst=\"npu-{}\">", from, to);
        for (const Hop& hop : hops) {
          text("<link_ctn id=\"");
          write_name(hop);
          text("\" direction=\"{}\"/>", hop.up ? "UP" : "DOWN");
        }
        line("</bypassRoute>");
      }
      line(
          "    <bypassRoute src=\"npu-{0}\" dst=\"cpu-{1}\"><link_ctn id=\"host-{0}\" direction=\"UP\"/></bypassRoute>",
          from, server);
      line(
          "    <bypassRoute src=\"cpu-{1}\" dst=\"npu-{0}\"><link_ctn id=\"host-{0}\" "
          "direction=\"DOWN\"/></bypassRoute>",
          from, server);
    }
  }

  /// The same ways as properties; hcclsim adds the way back itself.
  void write_pair_properties(std::uint32_t server) {
    const std::uint32_t first = first_npu(server);
    const std::uint32_t end = first + options_.npus_per_server;
    for (std::uint32_t from = first; from < end; ++from) {
      for (std::uint32_t to = from + 1; to < end; ++to) {
        text("      <prop id=\"route:npu-{}:npu-{}\" value=\"", from, to);
        const char* space = "";
        for (const Hop& hop : way(server, from, to)) {
          text("{}", space);
          write_name(hop);
          text(":{}", hop.up ? "UP" : "DOWN");
          space = " ";
        }
        line("\"/>");
      }
    }
  }

  void write_name(const Hop& hop) {
    text("{}-{}", hop.prefix, hop.first);
    if (hop.second != hop.first) text("-{}", hop.second);
  }

  PlatformOptions options_;
  const SocEntry& soc_;
  const ServerModel& model_;
  std::uint64_t npus_;
  fmt::memory_buffer out_;
};

}  // namespace

std::string generate_platform(const PlatformOptions& options) { return Writer(options).write(); }

}  // namespace hcclsim::sim
