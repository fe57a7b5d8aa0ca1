#include "calibrate/readers/p2p_bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/readers/log_kind.h"

namespace railyard::calibrate {
namespace {

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : lines_(text) { log_.source = name; }

  sim::Result<P2pBandwidthLog> read(std::string_view text) {
    for (std::string_view line; lines_.next(line);) this->line(trim(without_tag(line)));
    end_matrix();
    if (log_.matrices.empty()) return other_log(text, log_.source, LogKind::p2p_bandwidth);
    if (!log_.without_access.empty()) note_access();
    log_.notes = notes_.take();
    return std::move(log_);
  }

 private:
  void line(std::string_view text) {
    if (!current_.matrix.columns.empty() && add_row(current_.matrix, text, lines_.number(), notes_))
      return;
    if (text.find("P2P=") != text.npos && text.find("Matrix") != text.npos) return begin(text);
    if (text.starts_with("P2P Connectivity Matrix")) {
      end_matrix();
      title_.clear();
      return;
    }
    if (text.starts_with("Device: ")) return device(text);
    if (text.starts_with("Device=") && text.find("CANNOT Access") != text.npos) {
      const auto from = integer_after(text, "Device="), to = integer_after(text, "Peer Device=");
      if (from && to) log_.without_access.emplace_back(*from, *to);
      return;
    }
    if (!title_.empty()) columns(text);
  }

  void begin(std::string_view title) {
    if (!title_.empty() && current_.matrix.columns.empty() && !seen_block_)
      notes_.add(title_line_, "a matrix without figures: cut off");
    end_matrix();
    title_ = title;
    title_line_ = lines_.number();
    seen_block_ = false;
  }

  void columns(std::string_view text) {
    for (const std::string_view corner : {"D\\D", "GPU", "CPU"}) {
      std::vector<std::int64_t> numbers = device_numbers(text, corner);
      if (numbers.empty()) continue;
      end_matrix();
      seen_block_ = true;
      current_.title = title_;
      current_.latency = title_.find("Latency") != std::string::npos;
      current_.bidirectional = title_.starts_with("Bidirectional");
      current_.enabled = title_.find("P2P=Enabled") != std::string::npos;
      current_.host_time = corner == "CPU";
      current_.matrix.columns = std::move(numbers);
      current_.matrix.line = lines_.number();
    }
  }

  void device(std::string_view text) {
    // "Device: 0, NVIDIA GeForce RTX 2080 Ti, pciBusID: b4, pciDeviceID: 0, pciDomainID:0"
    P2pDevice device;
    device.number = integer_after(text, "Device:").value_or(-1);
    const std::size_t name = text.find(", "), bus = text.find(", pciBusID:");
    if (device.number < 0 || bus == text.npos || name >= bus) return;
    device.name = text.substr(name + 2, bus - name - 2);
    device.bus = word_after(text, "pciBusID:");
    if (device.bus.ends_with(',')) device.bus.pop_back();
    log_.devices.push_back(std::move(device));
  }

  void end_matrix() {
    CopyMatrix& matrix = current_.matrix;
    if (matrix.rows.size() < matrix.columns.size() && !matrix.columns.empty())
      notes_.add(matrix.line, fmt::format("{} of {} rows of this matrix are there: cut off",
                                          matrix.rows.size(), matrix.columns.size()));
    if (!matrix.cells.empty()) {
      std::size_t zeros = 0;
      for (const auto& row : matrix.cells)
        zeros += static_cast<std::size_t>(std::count(row.begin(), row.end(), 0.0));
      if (zeros != 0) notes_.add(matrix.line, fmt::format("{} cells are 0: not used", zeros));
      log_.matrices.push_back(std::move(current_));
    }
    current_ = {};
  }

  void note_access() {
    std::vector<std::string> pairs;
    for (const auto& [from, to] : log_.without_access)
      pairs.push_back(fmt::format("{} to {}", from, to));
    notes_.add(
        0, "no peer access, P2P=Enabled goes through the host: " + topologies::list_of(pairs, 8));
  }

  LineReader lines_;
  Notes notes_;
  P2pBandwidthLog log_;
  std::string title_;  // of the matrices to come
  std::size_t title_line_ = 0;
  bool seen_block_ = false;
  P2pMatrix current_;
};

}  // namespace

sim::Result<P2pBandwidthLog> read_p2p_bandwidth(std::string_view text, std::string_view name) {
  return Reader(text, name).read(text);
}

std::vector<Measurement> measurements(const P2pBandwidthLog& log) {
  std::vector<Measurement> all;
  for (const P2pMatrix& each : log.matrices) {
    if (each.host_time) continue;
    const CopyMatrix& matrix = each.matrix;
    for_each_figure(matrix, [&](std::size_t row, std::size_t column, double value) {
      Measurement m;
      m.kind = MeasurementKind::copy;
      m.test = each.title;
      m.from = matrix.rows[row];
      m.to = matrix.columns[column];
      m.bidirectional = each.bidirectional;
      m.nodes = 1;
      (each.latency ? m.us : m.gb_per_s) = value;
      for (const P2pDevice& device : log.devices)
        if (device.number == m.from || device.number == m.to) add_distinct(m.devices, device.name);
      m.file = log.source;
      m.line = matrix.lines[row];
      all.push_back(std::move(m));
    });
  }
  return all;
}

}  // namespace railyard::calibrate
