#include "cli/draw/space_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "cli/draw/svg.hpp"
#include "cli/terminal/output.hpp"

namespace hcclsim::cli {
namespace {

// In pixels.
constexpr double width = 1200;
constexpr double left = 90;
constexpr double right = 1180;
constexpr double top = 75;
constexpr double lane_gap = 8;
constexpr double least_lane = 18;
constexpr double row_height = 7;
constexpr double margin = 60;  // below the lanes, for the axis
constexpr std::size_t most_spans = 50'000;

constexpr const char* rules =
    ".lane{fill:currentColor;fill-opacity:.06}\n"
    ".hop{fill:none;stroke-width:1;stroke-opacity:.6}\n"
    ".wait{fill:currentColor;fill-opacity:.25}\n";

/// What a bar can be.
enum class Look : std::uint8_t { copy, reduce, local_copy, local_reduce, wait };
constexpr std::array<const char*, 4> colours{colour::blue, colour::vermilion, colour::sky_blue, colour::green};
constexpr std::array<const char*, 5> look_names{"transfer", "transfer that reduces", "copy", "reduction by a core",
                                                "waiting"};

Look look_of(const sim::Span& span) {
  if (span.kind == sim::SpanKind::notify_wait) return Look::wait;
  if (span.kind == sim::SpanKind::local_reduce) return Look::local_reduce;
  if (span.kind == sim::SpanKind::reduce) return Look::reduce;
  return span.peer < 0 ? Look::local_copy : Look::copy;
}

bool is_shown(const sim::Span& span) {
  return span.kind == sim::SpanKind::copy || span.kind == sim::SpanKind::reduce ||
         span.kind == sim::SpanKind::local_reduce || span.kind == sim::SpanKind::notify_wait;
}

class Diagram {
 public:
  Diagram(std::string title, const std::vector<Rank>& ranks, const sim::Trace& trace)
      : title_(std::move(title)), ranks_(ranks) {
    for (const sim::Span& span : trace.spans()) {
      if (!is_shown(span) || !std::binary_search(ranks.begin(), ranks.end(), span.rank)) continue;
      spans_.push_back(&span);
      end_ = std::max(end_, span.end);
      rows_ = std::max(rows_, span.plane + 1);
    }
    if (spans_.size() > most_spans) {
      bad_input("option", "{} tasks are too many to see, {} can be shown; choose fewer ranks (--ranks 0-7)",
                with_thousands(spans_.size()), with_thousands(most_spans));
    }
    lane_ = std::max(least_lane, rows_ * row_height);
    row_ = lane_ / rows_;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      lane_of_[ranks[i]] = top + static_cast<double>(i) * (lane_ + lane_gap);
  }

  std::string draw() {
    const double bottom = top + static_cast<double>(ranks_.size()) * (lane_ + lane_gap);
    SvgDrawing drawing(width, bottom + margin, title_, rules);
    drawing.add_heading((left + right) / 2, title_);
    draw_legend(drawing);
    draw_axis(drawing, bottom);
    for (const Rank rank : ranks_) {
      drawing.add("<rect class=\"lane\" x=\"{}\" y=\"{:.1f}\" width=\"{}\" height=\"{:.1f}\"/>", left, lane_of_[rank],
                  right - left, lane_);
      drawing.add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">rank {}</text>\n", left - 8,
                  lane_of_[rank] + lane_ / 2 + 4.5, rank);
    }
    for (const sim::Span* span : spans_) draw_bar(drawing, *span);
    for (const sim::Span* span : spans_) draw_line(drawing, *span);
    return std::move(drawing).finish();
  }

 private:
  [[nodiscard]] double x_of(Seconds time) const { return left + (end_ > 0 ? time / end_ : 0) * (right - left); }

  static void draw_legend(SvgDrawing& drawing) {
    double x = left;
    for (std::size_t i = 0; i < look_names.size(); ++i) {
      const std::string fill = i < colours.size() ? fmt::format("fill=\"{}\"", colours.at(i)) : "class=\"wait\"";
      drawing.add("<rect {} x=\"{}\" y=\"42\" width=\"16\" height=\"12\"/>", fill, x);
      drawing.add("<text x=\"{}\" y=\"53\">{}</text>\n", x + 22, look_names.at(i));
      x += 190;
    }
  }

  void draw_axis(SvgDrawing& drawing, double bottom) const {
    for (const double tick : axis_ticks(0, end_ / microsecond, 10)) {
      const double x = x_of(tick * microsecond);
      drawing.add("<path class=\"grid\" d=\"M{0:.1f} {1}V{2:.1f}\"/>", x, top, bottom);
      drawing.add_number_below(x, bottom, tick);
    }
    drawing.add("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"middle\">time in us</text>\n", (left + right) / 2,
                bottom + 44);
  }

  void draw_bar(SvgDrawing& drawing, const sim::Span& span) const {
    const Look look = look_of(span);
    const bool waits = look == Look::wait;
    if (span.end <= span.start) return;
    const double x = x_of(span.start);
    drawing.add("<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\"><title>{}</title></rect>\n",
                waits ? "class=\"wait\"" : fmt::format("fill=\"{}\"", colours.at(static_cast<std::size_t>(look))), x,
                lane_of_.at(span.rank) + row_ * span.plane + row_ * (waits ? 0.35 : 0.1),
                std::max(x_of(span.end) - x, 0.2), row_ * (waits ? 0.3 : 0.8), words_of(span));
  }

  /// "rank 3, queue 0: transfer to rank 4, 4,096 bytes, 12.300 to 15.100 us".
  static std::string words_of(const sim::Span& span) {
    const Look look = look_of(span);
    std::string words =
        fmt::format("rank {}, queue {}: {}", span.rank, span.plane, look_names.at(static_cast<std::size_t>(look)));
    if (look == Look::wait) {
      words += fmt::format(" for rank {}", span.peer);
    } else {
      if (span.peer >= 0) words += fmt::format(" {} rank {}", span.reads ? "from" : "to", span.peer);
      words += fmt::format(", {} bytes", with_thousands(span.bytes));
    }
    return words + fmt::format(", {:.3f} to {:.3f} us", span.start / microsecond, span.end / microsecond);
  }

  /// From the lane that the bytes leave to the lane where they arrive.
  void draw_line(SvgDrawing& drawing, const sim::Span& span) const {
    const Look look = look_of(span);
    if (look != Look::copy && look != Look::reduce) return;
    const auto peer = lane_of_.find(static_cast<Rank>(span.peer));
    if (peer == lane_of_.end()) return;
    const double own = lane_of_.at(span.rank) + row_ * span.plane + row_ / 2;
    const double other = peer->second + lane_ / 2;
    drawing.add("<path class=\"hop\" stroke=\"{}\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>\n",
                colours.at(static_cast<std::size_t>(look)), x_of(span.start), span.reads ? other : own, x_of(span.end),
                span.reads ? own : other);
  }

  std::string title_;
  const std::vector<Rank>& ranks_;
  std::vector<const sim::Span*> spans_;
  Seconds end_ = 0;
  std::uint32_t rows_ = 1;
  double lane_ = 0;
  double row_ = 0;
  std::map<Rank, double> lane_of_;  // upper edge
};

}  // namespace

std::string space_time_diagram(const std::string& title, const std::vector<Rank>& ranks, const sim::Trace& trace) {
  return Diagram(title, ranks, trace).draw();
}

}  // namespace hcclsim::cli
