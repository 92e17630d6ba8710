#pragma once

namespace hcclsim::cli {

class Command;

/// Adds `hcclsim schedule generate | show | convert | check`: schedule files (docs/formats.md) made, printed, turned
/// into the other form, and proved. The commands throw hcclsim::Error; a schedule that the check refuses is one of code
/// check_failed.
void add_schedule_command(Command& app);

}  // namespace hcclsim::cli
