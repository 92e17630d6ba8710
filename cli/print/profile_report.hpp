#pragma once

#include <string>

#include "base/json.hpp"
#include "study/profile/back_test.hpp"
#include "study/profile/import.hpp"

/// What `run` and `tune` print of --profile, before anything else: the back-test, and what became of the files.
namespace hcclsim::cli {

struct ProfileReport {
  ProfileReport(study::ImportedProfile imported, const study::Phases& simulated)
      : profile(std::move(imported)), test(study::back_test(profile.measured, simulated)) {}

  study::ImportedProfile profile;
  study::BackTest test;
};

[[nodiscard]] std::string profile_text(const ProfileReport& report);
[[nodiscard]] Json profile_json(const ProfileReport& report);

}  // namespace hcclsim::cli
