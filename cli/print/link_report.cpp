#include "cli/print/link_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

double quotient(Bytes part, Bytes whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// Whether bytes of several stages are told apart.
bool has_stages(const study::LinkReport& report) {
  return std::ranges::any_of(report.links, [](const study::LinkReport::OfLink& link) {
    return std::ranges::any_of(link.shares, [](const auto& share) { return share.stage.value_or(0) > 0; });
  });
}

/// "allreduce1 96.5 %, allreduce2 3.5 %", the largest ones.
std::string shares_text(const study::LinkReport::OfLink& link, bool stages) {
  constexpr std::size_t most = 3;
  std::vector<std::string> parts;
  const std::size_t shown = link.shares.size() > most + 1 ? most : link.shares.size();
  Bytes rest = link.bytes;
  for (std::size_t i = 0; i < shown; ++i) {
    const study::LinkReport::Share& share = link.shares[i];
    rest -= share.bytes;
    parts.push_back(fmt::format("{}{} {:.1f} %", share.purpose,
                                stages ? fmt::format(" of stage {}", share.stage.value_or(0)) : "",
                                100 * quotient(share.bytes, link.bytes)));
  }
  if (shown < link.shares.size()) {
    parts.push_back(fmt::format("{} others {:.1f} %", link.shares.size() - shown, 100 * quotient(rest, link.bytes)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Json shares_json(const study::LinkReport::OfLink& link) {
  Json shares = Json::array();
  for (const study::LinkReport::Share& share : link.shares) {
    Json json{{"purpose", share.purpose}, {"bytes", share.bytes}, {"share", quotient(share.bytes, link.bytes)}};
    if (share.stage.has_value()) json["stage"] = *share.stage;
    shares.push_back(std::move(json));
  }
  return shares;
}

}  // namespace

std::string link_report_text(const study::LinkReport& report, std::string_view title) {
  std::string text =
      fmt::format("{}, {} of {} in use, within {} ms{}:\n", title, report.links.size(), report.links_used,
                  milliseconds(report.time),
                  report.host_copies_left_out ? " (copies of batches from the host are not counted)" : "");
  const bool stages = has_stages(report);
  Table table("<link|<kind|<from|<to|MB|GB/s|busy ms|use %|while busy %|at once|<for");
  for (const study::LinkReport::OfLink& link : report.links) {
    table.add_row(
        {link.name, link.kind, link.from, link.to, fmt::format("{:.3f}", static_cast<double>(link.bytes) / 1e6),
         fmt::format("{:.2f}", link.capacity / giga), milliseconds(link.busy),
         fmt::format("{:.1f}", 100 * link.utilisation), fmt::format("{:.1f}", 100 * link.utilisation_while_busy),
         fmt::format("{}", link.most_transfers), shares_text(link, stages)});
  }
  return text + table.to_string("  ");
}

Json links_json(const study::LinkReport& report) {
  Json links = Json::array();
  for (const study::LinkReport::OfLink& link : report.links) {
    links.push_back({{"name", link.name},
                     {"kind", link.kind},
                     {"from", link.from},
                     {"to", link.to},
                     {"shared", link.shared},
                     {"capacity_Bps", link.capacity},
                     {"bytes", link.bytes},
                     {"busy_s", link.busy},
                     {"utilisation", link.utilisation},
                     {"utilisation_while_busy", link.utilisation_while_busy},
                     {"most_transfers", link.most_transfers},
                     {"shares", shares_json(link)}});
  }
  return links;
}

void add_links_json(Json& json, const study::LinkReport& report) {
  json["links"] = links_json(report);
  json["links_used"] = report.links_used;
  if (report.host_copies_left_out) json["links_without_host_copies"] = true;
}

std::string link_csv_titles() {
  return "link,kind,from,to,capacity_Bps,bytes,busy_s,utilisation,utilisation_while_busy,most_transfers,purpose,stage,"
         "share_bytes\n";
}

std::string link_csv_rows(const study::LinkReport& report, std::string_view first_cells) {
  std::string rows;
  for (const study::LinkReport::OfLink& link : report.links) {
    for (const study::LinkReport::Share& share : link.shares) {
      fmt::format_to(std::back_inserter(rows), "{}{},{},{},{},{},{},{},{},{},{},{},{},{}\n", first_cells,
                     csv_field(link.name), csv_field(link.kind), csv_field(link.from), csv_field(link.to),
                     link.capacity, link.bytes, link.busy, link.utilisation, link.utilisation_while_busy,
                     link.most_transfers, csv_field(share.purpose),
                     share.stage.has_value() ? fmt::to_string(*share.stage) : "", share.bytes);
    }
  }
  return rows;
}

}  // namespace hcclsim::cli
