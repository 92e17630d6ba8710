#include "cli/commands/commands.hpp"

#include <memory>
#include <string>

#include "base/output_file.hpp"
#include "cli/options/collective_choice.hpp"
#include "cli/options/parse/common.hpp"
#include "cli/print/calibration_report.hpp"
#include "cli/terminal/output.hpp"
#include "study/communication/measure/names.hpp"

namespace hcclsim::cli {
namespace {

struct CalibrateCommand : PlatformChoice {
  study::CalibrateSpec spec{};
  std::string launch = "op";
  std::string output;
  std::string format = "text";
};

void run(const CalibrateCommand& command) {
  study::CalibrateSpec spec = command.spec;
  spec.measured.platform = command.platform_spec();
  spec.measured.request.launch = hccl::parse_launch_mode(command.launch);
  OutputFile output(command.output);
  const study::FittedPlatform fitted = study::fit_platform(spec);
  output.write(fitted.text);
  print(command.format == "json" ? calibration_json(fitted, command.output) : calibration_text(fitted, command.output));
  output.commit();
}

}  // namespace

void add_calibrate_command(Command& app) {
  app.add_command("calibrate", "Fit links and host of a platform to measured times", [](Command& command) {
    const auto options = std::make_shared<CalibrateCommand>();
    options->platform = "atlas800-9000";
    study::MeasureSpec& measured = options->spec.measured;
    command
        .add("LOG", read_files(options->spec.sources),
             "What hccl_test printed, or communication.json of msprof; allreduce:8=LOG says of which collective among "
             "how "
             "many ranks, where the log does not")
        .required();
    add_platform_options(command, "A platform file, or the name of a shipped one", *options);
    command.add("-o,--output", written_file(options->output), "The platform file to write").required();
    command.add("--op", parsed(study::parse_collective_name, options->spec.op),
                "Collective of the logs [what they say]");
    command.add("--ranks", whole_number(measured.ranks, 1, 1U << 20U), "NPUs of the logs [what they say]")
        .value_name("UINT");
    command
        .add("-p,--npus", whole_number(measured.npus_per_server, 1, 1U << 16U),
             "The first NPUs of each server [what logs say]")
        .value_name("UINT");
    command
        .add("-d,--datatype",
             one_of({"fp32", "fp16", "bfp16", "bf16", "int8", "int16", "int32", "int64"}, options->spec.type),
             "Type of the elements [what the logs say, or fp32]")
        .value_name("TEXT");
    add_repetition_options(command, "-n,--iters", measured.iterations, "-w,--warmup_iters", measured.warmups);
    add_method_option(command, measured.iterations, measured.warmups);
    add_launch_option(command, options->launch, "op: each call by itself; graph: tasks are loaded in advance");
    command.add("--fit", text(options->spec.fit),
                "What to fit, such as hccs.bandwidth,op.task,op.base,hccs.latency [what the logs tell]");
    add_format_option(command, options->format, {"text", "json"});
    command.footer(
        "Examples:\n"
        "  hcclsim calibrate allreduce:8=ar8.log --platform atlas800-9000 -o mine.xml\n"
        "  hcclsim calibrate communication.json --platform atlas800t-a2-x2 --fit roce.bandwidth,roce.latency -o "
        "mine.xml");
    command.on_run([&command, options] {
      finish_platform_options(OptionOrigins(command, {}), {"ranks", "npus"}, *options);
      run(*options);
    });
  });
}

}  // namespace hcclsim::cli
