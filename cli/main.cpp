#include "cli/commands/command.hpp"

int main(int argc, char** argv) { return hcclsim::cli::run_command(argc, argv); }
