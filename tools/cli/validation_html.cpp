// A page that needs nothing but itself: the tables, and for every run the bus bandwidth that was
// measured and the one that was predicted, over each other, as inline SVG with logarithmic axes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/validation_report.h"

namespace railyard::cli {
namespace {

constexpr double kWidth = 420;
constexpr double kHeight = 220;
constexpr double kLeft = 46;
constexpr double kBottom = 28;

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

struct Range {
  double low = 0;
  double high = 0;

  void include(double value) {
    const bool first = low == 0 && high == 0;
    low = first ? value : std::min(low, value);
    high = first ? value : std::max(high, value);
  }
  // Where a value lies, 0 to 1, by its logarithm.
  [[nodiscard]] double place(double value) const {
    if (high <= low) return 0.5;
    return std::log(value / low) / std::log(high / low);
  }
};

double busbw(const Prediction& prediction, const PredictedRow& row, double time_us) {
  const auto collective = sim::parse_enum<sim::Collective>(prediction.run.collective);
  const auto ranks = static_cast<std::size_t>(prediction.run.platform.nodes.value_or(1) *
                                              prediction.run.platform.gpus_per_node.value_or(1));
  const double factor =
      collective.ok() ? sim::bus_bandwidth_factor(collective.value(), ranks) : 1.0;
  return static_cast<double>(row.size.raw()) / time_us * 1e-3 * factor;
}

class Chart {
 public:
  explicit Chart(const Prediction& prediction) : prediction_(prediction) {
    for (const PredictedRow& row : prediction.rows) {
      if (row.size.raw() <= 0) continue;
      x_.include(static_cast<double>(row.size.raw()));
      y_.include(busbw(prediction, row, row.time_us));
      y_.include(busbw(prediction, row, row.predicted_us));
    }
  }

  [[nodiscard]] std::string svg() const {
    if (!(x_.low > 0 && y_.low > 0) || !std::isfinite(x_.high) || !std::isfinite(y_.high))
      return "<p>(nothing to draw)</p>";
    std::string out = fmt::format("<svg viewBox='0 0 {} {}' width='{}' height='{}'>", kWidth,
                                  kHeight, kWidth, kHeight);
    out += axes();
    out += curve("measured", [](const PredictedRow& row) { return row.time_us; });
    out += curve("predicted", [](const PredictedRow& row) { return row.predicted_us; });
    return out + "</svg>";
  }

 private:
  [[nodiscard]] double left_of(double bytes) const {
    return kLeft + x_.place(bytes) * (kWidth - kLeft - 8);
  }
  [[nodiscard]] double top_of(double rate) const {
    return kHeight - kBottom - y_.place(rate) * (kHeight - kBottom - 8);
  }

  [[nodiscard]] std::string axes() const {
    std::string out;
    for (double rate = std::pow(10, std::ceil(std::log10(y_.low))); rate <= y_.high; rate *= 10)
      out += fmt::format(
          "<line class='grid' x1='{0}' x2='{1}' y1='{2:.1f}' y2='{2:.1f}'/>"
          "<text x='{3}' y='{4:.1f}' text-anchor='end'>{5:g}</text>",
          kLeft, kWidth - 8, top_of(rate), kLeft - 4, top_of(rate) + 4, rate);
    for (double bytes = 1; bytes <= x_.high; bytes *= 1024) {
      if (bytes < x_.low) continue;
      out += fmt::format(
          "<line class='grid' y1='8' y2='{0}' x1='{1:.1f}' x2='{1:.1f}'/>"
          "<text x='{1:.1f}' y='{2}' text-anchor='middle'>{3}</text>",
          kHeight - kBottom, left_of(bytes), kHeight - 10,
          sim::to_text(sim::bytes(static_cast<std::int64_t>(bytes))));
    }
    return out;
  }

  template <typename Time>
  [[nodiscard]] std::string curve(const char* name, Time&& time) const {
    std::string points;
    for (const PredictedRow& row : prediction_.rows)
      if (row.size.raw() > 0)
        points += fmt::format("{:.1f},{:.1f} ", left_of(static_cast<double>(row.size.raw())),
                              top_of(busbw(prediction_, row, time(row))));
    return fmt::format("<polyline class='{}' points='{}'/>", name, points);
  }

  const Prediction& prediction_;
  Range x_;
  Range y_;
};

std::string figure(const Prediction& prediction) {
  std::vector<double> errors;
  for (const PredictedRow& row : prediction.rows)
    if (!row.spike) errors.push_back(row.error());
  const calibrate::ErrorSummary error = calibrate::summarize(errors);
  return fmt::format(
      "<figure>{}<figcaption><b>{}</b>{}<br>{}<br>median {:.1f} %, p90 {:.1f} %, worst {:.0f} %"
      "{}</figcaption></figure>\n",
      Chart(prediction).svg(), escape(prediction.run.id), prediction.fitted ? " (fitted)" : "",
      escape(prediction.profile), error.median * 100, error.p90 * 100, error.worst * 100,
      prediction.not_scored.empty() ? "" : "<br>" + escape(prediction.not_scored));
}

constexpr const char* kHead =
    "<!doctype html><html lang='en'><meta charset='utf-8'><title>railyard validate</title>\n"
    "<style>body{font:14px/1.4 sans-serif;margin:2em;color:#222}"
    "pre{font-size:12px;overflow-x:auto}"
    "main{display:flex;flex-wrap:wrap;gap:1.5em}figure{margin:0;width:420px}"
    "figcaption{font-size:12px}svg text{font-size:10px;fill:#555}"
    ".grid{stroke:#ddd}polyline{fill:none;stroke-width:2}"
    ".measured{stroke:#222}.predicted{stroke:#d2431f;stroke-dasharray:5 3}</style>\n"
    "<h1>Predictions against measurements</h1>\n"
    "<p>Bus bandwidth in GB/s over message size, both logarithmic: measured (black), predicted "
    "(red, dashed).</p>\n";

}  // namespace

std::string validation_html(const std::vector<Prediction>& predictions) {
  std::string page = kHead;
  page += "<main>\n";
  for (const Prediction& prediction : predictions)
    if (!prediction.rows.empty()) page += figure(prediction);
  page += "</main>\n<h2>Tables</h2>\n<pre>" + escape(validation_text(predictions, false)) +
          "</pre>\n</html>\n";
  return page;
}

}  // namespace railyard::cli
