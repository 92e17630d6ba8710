#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/parse/command.hpp"
#include "cli/terminal/interruption.hpp"
#include "sim/cluster.hpp"
#include "sim/platform/edit.hpp"
#include "study/compare/sweep/loader.hpp"
#include "study/compare/sweep/point.hpp"

/// A command whose options a sweep varies: `run`, `collective` or `job`, with its own parser, so that a point means
/// exactly what the command line with the same options means. Estimates of a run (study/compare/plans) take its
/// options.
namespace hcclsim::cli {

class PointCommand {
 public:
  /// Throws Error(bad_input, "option") for the name of another command.
  [[nodiscard]] static std::unique_ptr<PointCommand> make(const std::string& name);
  /// `argument`: name of what must stand behind the command and whose axis has the command's name; empty: nothing does.
  explicit PointCommand(const std::string& name, std::string argument = "")
      : options_(name, ""), argument_(std::move(argument)) {}
  PointCommand(const PointCommand&) = delete;
  PointCommand(PointCommand&&) = delete;
  PointCommand& operator=(const PointCommand&) = delete;
  PointCommand& operator=(PointCommand&&) = delete;
  virtual ~PointCommand() = default;

  [[nodiscard]] Command& options() { return options_; }
  [[nodiscard]] const std::string& name() const { return options_.name(); }
  [[nodiscard]] const std::string& argument() const { return argument_; }
  /// The option of an axis; nullptr if there is none.
  [[nodiscard]] Option* find(const std::string& axis) const;
  /// The axis of an option.
  [[nodiscard]] std::string axis_of(const Option& option) const { return option.key().empty() ? name() : option.key(); }
  /// Gives an option its value; `name` is that of an axis. Throws Error(bad_input) for a value that it does not take.
  void set(const std::string& name, const std::string& value);
  /// All inputs of a point.
  void set(const Json& inputs);
  /// As if nothing had been given: for another point.
  void clear();

  [[nodiscard]] virtual const std::string& platform() const = 0;
  [[nodiscard]] virtual const std::vector<sim::PlatformEdit>& platform_edits() const = 0;
  /// What the command prints with --format json, and its figures. Throws an Error of study::interrupted_kind if
  /// training ended early on a signal.
  [[nodiscard]] virtual study::Computed compute(sim::Cluster& cluster, const Interruption& interruption) = 0;
  /// After compute(): whether nothing is left of it in this process but the cluster that it got.
  [[nodiscard]] virtual bool leaves_nothing() const { return false; }

 protected:
  virtual void clear_values() = 0;

 private:
  Command options_;
  std::string argument_;
};

/// The commands that can be swept.
inline constexpr std::array<const char*, 3> swept_commands{"run", "collective", "job"};

/// What loads the platform of a group of points, with its edits; its points are computed by their command.
[[nodiscard]] study::LoadGroup group_loader(const Interruption& interruption);

}  // namespace hcclsim::cli
