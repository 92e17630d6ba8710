#include "cli/commands/commands.hpp"

#include <memory>
#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/output_file.hpp"
#include "cli/html/pages.hpp"
#include "cli/options/parse/command.hpp"
#include "cli/options/tune_options.hpp"
#include "cli/print/tune/compression_report.hpp"
#include "cli/print/tune/fusion_report.hpp"
#include "cli/print/tune/tune_report.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/progress.hpp"
#include "study/compare/tune/compression_search.hpp"
#include "study/compare/tune/tune.hpp"
#include "study/run/split_search/fusion_search.hpp"

namespace hcclsim::cli {

namespace {

struct Printed {
  std::string text;
  std::string page;  ///< if one is wanted
};

Printed printed(const TuneOptions& options, const HtmlReport* html, sim::Cluster& cluster, const study::Stage& stage) {
  const bool as_json = options.run.format == OutputFormat::json;
  if (study::tunes_compression(options.spec)) {
    const study::CompressionSearch found = study::search_compression(options.spec.run, cluster, stage);
    return {as_json ? compression_json(found) : compression_text(found),
            html == nullptr ? "" : compression_page(found, *html)};
  }
  if (study::tunes_fusion(options.spec)) {
    const study::FusionSearch found = study::search_fusion(options.spec.run, cluster, stage);
    return {as_json ? fusion_json(found) : fusion_text(found), ""};
  }
  const TuneReport report{{study::tune(options.spec, cluster, stage)}, options.run.explain};
  return {as_json ? tune_json(report) : tune_text(report), html == nullptr ? "" : tune_page(report, *html)};
}

}  // namespace

void add_tune_command(Command& app) {
  app.add_command(
      "tune", "The best gradient split, with its proof; in stages the best fusion; with --compress where it pays",
      [](Command& command) {
        command.footer(
            "Examples:\n"
            "  hcclsim tune                                       ResNet50 on eight 910A\n"
            "  hcclsim tune --gradients profile.csv               a measured profile\n"
            "  hcclsim tune --platform atlas800t-a2-x2 --format json\n"
            "  hcclsim tune --compare default,threshold:16MB,optimal\n"
            "  hcclsim tune --jitter 0.05 --bandwidth-range 0.5:2  how far the split stays the best\n"
            "  hcclsim tune --platform atlas800t-a2 --model gpt2-xl --batch 4 --optimizer-parallel zero1   the best "
            "fusion\n"
            "  hcclsim tune --compress batched-powersgd:rank=4      from which speed of links on compression pays\n"
            "--hcom-parallel is on unless given.");
        set_up_tune(command, nullptr);
      });
}

void set_up_tune(Command& command, const std::shared_ptr<const HtmlReport>& html) {
  const auto options = std::make_shared<TuneOptions>();
  add_tune_options(command, *options);
  command.on_run([&command, options, html] {
    finish_tune_options(command, *options);
    study::RunSpec& run = options->spec.run;
    run.platform.file = options->run.platform;
    if (html != nullptr && study::tunes_fusion(options->spec) && !study::tunes_compression(options->spec)) {
      bad_input("unsupported", "a page of a fusion is not there yet; `hcclsim tune` prints it");
    }
    Progress progress;
    const auto stage = [&](const std::string& what) { progress.update([&](double) { return what; }); };
    study::on_tuned_platform(options->spec, [&](sim::Cluster& cluster) {
      std::optional<OutputFile> page;  // opened before the search: a path that cannot be written is known at once
      if (html != nullptr) page.emplace(html->path);
      const Printed found = printed(*options, html.get(), cluster, stage);
      progress.erase();
      if (page.has_value()) page->write(found.page);
      print(found.text);
      if (page.has_value()) page->commit();
    });
  });
}

}  // namespace hcclsim::cli
