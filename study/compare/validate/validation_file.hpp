#pragma once

#include <string>
#include <vector>

/// Published figures that the simulator is held against, as TOML files (docs/formats.md): a section per figure, and in
/// front of the sections what all of them have in common.
namespace hcclsim::study {

struct PublishedFigure {
  std::string id{};                    ///< name of the section
  std::string what{};                  ///< what it is, by which figures are grouped: "single operation"
  std::string product{};               ///< "8 x Ascend 910B, one server"
  std::string software{};              ///< versions, as far as they are known
  std::string conditions{};            ///< how it was measured
  std::string source{};                ///< where it is published
  std::string date{};                  ///< of the publication
  std::vector<std::string> command{};  ///< words behind "hcclsim"; its JSON holds the simulated figure
  std::string figure{};                ///< JSON pointer, "/rows/0/time_us"
  double factor = 1;                   ///< from that number to the unit
  std::string unit{};
  double measured = 0;
  double uncertainty = 0;    ///< within which a prediction is expected, relative; of measurement and model together
  bool calibration = false;  ///< a constant of the simulator was taken from it, so that it is no prediction
  std::string note{};
  std::string place{};  ///< "FILE:LINE" of its command
};

/// Reads a file. Throws Error(bad_input, "validation") with file and line: a key that is not known or lacks, a number
/// that is none, an id that is there twice; and what read_sections throws.
[[nodiscard]] std::vector<PublishedFigure> read_published_figures(const std::string& file);

/// The files that come with the platforms, sorted.
[[nodiscard]] std::vector<std::string> shipped_validation_files();

}  // namespace hcclsim::study
