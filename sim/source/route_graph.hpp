#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

/// The routes of a zone of routing Dijkstra, DijkstraCache or Floyd as a graph of points, and its shortest ways: those
/// of the fewest links. Of several of them it has the one that SimGrid 3.32 takes. Routes join both directions.
///
/// A point with one neighbour is on no way between others, and its own ways are those of its neighbour with one step
/// more. So ways are searched between the other points alone, the *core*: a star of 10,000 NPUs has one point there,
/// and SimGrid, which searches the whole graph for every pair, takes seconds for what takes no time here.
namespace hcclsim::sim {

class RouteGraph {
 public:
  enum class Search : std::uint8_t { dijkstra, floyd };

  explicit RouteGraph(Search search) : search_(search) {}

  /// Where ways are equally long, the order of the points decides. They are added by this, or by the first route from
  /// or to them. `point` is any number.
  void add_point(std::uint32_t point) { static_cast<void>(vertex_of(point)); }
  /// A route of so many links from one point to another, and back.
  void join(std::uint32_t from, std::uint32_t to, std::uint32_t links);

  /// The points behind `from` on the way to `to`, which is another one; empty if there is no way. To be called when all
  /// points are joined.
  [[nodiscard]] std::vector<std::uint32_t> way(std::uint32_t from, std::uint32_t to);

 private:
  struct Edge {
    std::uint32_t to = 0;
    std::uint32_t links = 0;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t vertex_of(std::uint32_t point);
  /// The only neighbour of a vertex that has one, else the vertex itself.
  [[nodiscard]] std::uint32_t attachment(std::uint32_t vertex) const {
    return edges_[vertex].size() == 1 ? edges_[vertex].front().to : vertex;
  }
  void make_core();
  /// Appends the vertices behind `from` on the way between two vertices of the core; false if there is none.
  [[nodiscard]] bool append_core_way(std::uint32_t from, std::uint32_t to, std::vector<std::uint32_t>& vertices);
  /// Of each vertex of the core the one before it on the way from `source`, all as numbers in the core.
  [[nodiscard]] std::vector<std::uint32_t> search_from(std::uint32_t source) const;
  void search_all();

  Search search_;
  std::unordered_map<std::uint32_t, std::uint32_t> vertices_;  // by point
  std::vector<std::uint32_t> points_;                          // by vertex
  std::vector<std::vector<Edge>> edges_;                       // by vertex
  std::vector<std::uint32_t> core_;                            // vertices, ascending
  std::vector<std::uint32_t> number_;                          // by vertex: its number in the core, or none
  std::vector<std::vector<std::uint32_t>> before_;             // by source; empty: not searched yet
  std::size_t kept_ = 0;                                       // of before_
};

}  // namespace hcclsim::sim
