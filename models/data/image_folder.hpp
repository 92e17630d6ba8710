#pragma once

#include "models/data/picture.hpp"

/// A folder with images in PPM or PGM format (.ppm, .pgm, .pnm). Their labels come from a file labels.txt in the
/// folder, one line "NAME LABEL" per image, or, if there is none, from one sub-folder per class, numbered from 0 in the
/// order of their names. Other files, and names that begin with a dot, are ignored. The header of every image is
/// checked at once; its pixels are read when they are asked for.
namespace hcclsim::models {

class ImageFolder final : public Dataset {
 public:
  ImageFolder(const SampleForm& form, const std::string& folder);

  [[nodiscard]] std::uint64_t size() const override { return entries_.size(); }
  [[nodiscard]] bool shuffles() const override { return true; }
  void read(std::uint64_t sample, Batch& batch, std::uint32_t slot) const override;
  [[nodiscard]] std::string describe() const override;

 private:
  struct Entry {
    std::string name;  ///< path in the folder
    std::int32_t label = 0;
  };

  void read_labels(const std::string& path);
  void list_classes();
  [[nodiscard]] std::string path_of(const std::string& name) const;

  std::string folder_;
  std::vector<Entry> entries_;
};

}  // namespace hcclsim::models
