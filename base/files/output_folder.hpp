#pragma once

#include <string>
#include <string_view>

#include "base/output_file.hpp"

/// A folder of files that appears whole or not at all: it is filled under a temporary name beside its own, which it
/// gets when all is written. What a killed process left there is removed when the same folder is written again.
namespace hcclsim {

class OutputFolder {
 public:
  /// The treatment of a folder that exists and is not empty.
  enum class Existing : bool {
    is_refused,
    is_filled,  ///< it keeps what it has; files take the place of those of their names
  };

  /// Folders on the way to the path must exist, or, if an existing folder is filled, are made by commit(). Nothing is
  /// made yet, so that a process that is killed before it writes leaves nothing. Throws Error(bad_input) of kind
  /// "output" if the folder cannot be written.
  explicit OutputFolder(const std::string& path, Existing existing = Existing::is_refused);
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder(OutputFolder&&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  OutputFolder& operator=(OutputFolder&&) = delete;
  /// Removes what was written unless commit() was called.
  ~OutputFolder();

  /// Makes a folder in it, and those on the way; "" is itself.
  void make_folder(const std::string& relative);
  /// A file of it, whose folder must have been made.
  [[nodiscard]] OutputFile file(const std::string& relative) const;
  /// Makes the folder appear at its path. Nothing can be written afterwards.
  void commit();

 private:
  [[noreturn]] void fail(int error_number) const;
  [[nodiscard]] std::string place_of(const std::string& relative) const { return temporary_ + "/" + relative; }
  void make_temporary();
  void move_files() const;
  void remove_leftovers() const;

  std::string path_;       ///< as given, for messages
  std::string target_;     ///< without a slash at its end
  std::string above_;      ///< the folder that holds the temporary one
  std::string temporary_;  ///< empty before the first folder is made and after commit()
  bool fills_ = false;     ///< an existing folder
  int lock_ = -1;          ///< tells others that the folder is being written
};

}  // namespace hcclsim
