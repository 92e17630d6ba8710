#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.hpp"
#include "study/compare/sweep/point.hpp"
#include "study/compare/sweep/store.hpp"

/// A loader is a process that loads once what a group of points shares, then has points that it is sent computed in a
/// process forked from it, and sends back what came of each. That process computes one point after another as long as
/// nothing is left of them, since to fork and to warm up takes longer than many a simulation. When it dies, the point
/// that it was at has failed, and a new one goes on. A loader ends with its parent, however that ends.
namespace hcclsim::study {

/// What was simulated and failed: the error with which the command ends behind its result.
struct PointFailure {
  std::string kind{};
  std::string message{};  ///< empty: nothing failed
};

/// What the process of a point returns.
struct Computed {
  std::string result;                                     ///< JSON
  std::vector<std::pair<std::string, double>> figures{};  ///< by column of the store
  PointFailure failure{};
};

/// Computes points of a group.
struct ComputePoint {
  std::function<Computed(const Point&)> compute;
  /// Whether the process that has just computed a point, or failed to, is as good as new; if not, or where nothing says
  /// so, the next one gets a process of its own.
  std::function<bool()> reusable = [] { return false; };
};
/// Loads what the points of the group of `first` share, and returns what computes one of them.
using LoadGroup = std::function<ComputePoint(const Point& first)>;

/// Errors of this kind say that a point was interrupted: it is put back and not recorded.
inline constexpr const char* interrupted_kind = "interrupted";

class Loader {
 public:
  /// Starts the process; `points` must outlive it.
  Loader(const std::vector<Point>& points, std::size_t first, const LoadGroup& load);
  Loader(const Loader&) = delete;
  Loader(Loader&&) = delete;
  Loader& operator=(const Loader&) = delete;
  Loader& operator=(Loader&&) = delete;
  ~Loader();

  /// Sends a point to compute.
  void send(std::size_t point);
  /// Tells the process to end when it has computed what it was sent.
  void finish();
  [[nodiscard]] const std::vector<std::size_t>& outstanding() const { return outstanding_; }

  /// The file to poll for reading.
  [[nodiscard]] int file() const { return socket_; }
  /// Takes what came of points and has arrived; call it when the file can be read. Afterwards ended() may be true.
  [[nodiscard]] std::vector<Outcome> receive();
  [[nodiscard]] bool ended() const { return ended_; }
  /// After ended(): what the process died of, if it did not end as it was told to.
  [[nodiscard]] std::optional<Outcome> failure();
  /// Whether the group was loaded; if not, failure() is that of every point of the group.
  [[nodiscard]] bool loaded() const { return loaded_; }

 private:
  int socket_ = -1;
  std::unique_ptr<Child> child_;
  std::vector<std::size_t> outstanding_;
  std::string received_;
  bool loaded_ = false;
  bool ended_ = false;
};

}  // namespace hcclsim::study
