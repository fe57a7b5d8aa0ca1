#include "calibrate/readers/nvbandwidth.h"

#include <fmt/format.h>

#include <utility>

#include "calibrate/readers/log_kind.h"
#include "calibrate/readers/nvbandwidth_parts.h"

namespace railyard::calibrate {
namespace {

// "NVIDIA H800", "HGX GB200 (00000008:01:00)"
void set_name(std::string_view text, NvbandwidthDevice& device) {
  text = trim(text);
  const std::size_t open = text.rfind(" (");
  if (text.ends_with(')') && open != text.npos && text.find(':', open) != text.npos) {
    device.bus = text.substr(open + 2, text.size() - open - 3);
    text = text.substr(0, open);
  }
  device.name = text;
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name) : lines_(text) { log_.source = name; }

  sim::Result<NvbandwidthLog> read(std::string_view text) {
    for (std::string_view line; lines_.next(line);) this->line(trim(without_tag(line)));
    end_test();
    if (!log_.tests.empty()) {
      log_.notes = notes_.take();
      return std::move(log_);
    }
    if (list_ != 0)
      return error_at(log_.source, list_, "nvbandwidth's list of tests, without results");
    if (waived_ != 0)
      return error_at(log_.source, waived_, "every test was waived or failed: no results");
    return other_log(text, log_.source, LogKind::nvbandwidth);
  }

 private:
  void line(std::string_view text) {
    if (in_matrix_) {
      if (add_row(test_.matrix, text, lines_.number(), notes_)) return;
      in_matrix_ = false;
    }
    if (text.starts_with("Running ") && text.ends_with('.')) return begin_test(text);
    if (text.starts_with("SUM ")) return sum(text);
    if (text.find("(row)") != text.npos || text.find("GPU(column)") != text.npos) {
      test_.description = text;
      return;
    }
    if (!test_.description.empty() && test_.matrix.columns.empty()) {
      test_.matrix.columns = device_numbers(text);
      test_.matrix.line = lines_.number();
      in_matrix_ = !test_.matrix.columns.empty();
      if (in_matrix_) return;
    }
    if (!around(text) && !test_.name.empty()) status(text);
  }

  void begin_test(std::string_view text) {
    end_test();
    test_.name = text.substr(8, text.size() - 9);
    test_.line = lines_.number();
  }

  void sum(std::string_view text) {
    const std::vector<std::string_view> words = words_of(text);
    if (words.size() != 3 || words[1] != test_.name) return;
    test_.sum = to_real(words[2]);
  }

  // What stands before the tests; true if it was that.
  bool around(std::string_view text) {
    NvbandwidthDevice device;
    if (text.starts_with("nvbandwidth Version:")) {
      log_.version = word_after(text, "Version:");
    } else if (text.starts_with("Driver Version:")) {
      log_.driver = word_after(text, "Version:");
    } else if (text.starts_with("CUDA Runtime Version:")) {
      log_.cuda = integer_after(text, "Version:").value_or(-1);
    } else if (text.starts_with("Index, Name:")) {
      list_ = lines_.number();
    } else if (text.starts_with("Device ") && text.find(": ") != text.npos) {
      device.number = device.device = integer_after(text, "Device").value_or(-1);
      set_name(text.substr(text.find(": ") + 2), device);
    } else if (text.starts_with("Process ") && text.find("): device ") != text.npos) {
      // "Process 0 (host): device 0: HGX GB200 (00000008:01:00)"
      const std::size_t open = text.find('('), close = text.find("): device ");
      device.number = integer_after(text, "Process").value_or(-1);
      device.device = integer_after(text, "device").value_or(-1);
      if (open < close) device.host = text.substr(open + 1, close - open - 1);
      const std::size_t name = text.find(": ", close + 3);
      if (name != text.npos) set_name(text.substr(name + 2), device);
    } else {
      return false;
    }
    if (device.number >= 0) log_.devices.push_back(std::move(device));
    return true;
  }

  void status(std::string_view text) {
    const bool waived = text.starts_with("Waived");
    if (!waived && !text.starts_with("ERROR") && !text.starts_with("Error") &&
        !text.starts_with("[CU"))
      return;
    notes_.add(lines_.number(), fmt::format("{}: {}", excerpt(test_.name, 80), excerpt(text, 100)));
    waived_ = lines_.number();
    reported_ = true;
  }

  void end_test() {
    if (!test_.matrix.cells.empty()) {
      classify_nvbandwidth(test_);
      check_nvbandwidth(test_, notes_);
      log_.tests.push_back(std::move(test_));
    } else if (!test_.name.empty() && !reported_) {
      notes_.add(test_.line, fmt::format("{} has no results: cut off", excerpt(test_.name, 80)));
    }
    test_ = {};
    in_matrix_ = reported_ = false;
  }

  LineReader lines_;
  Notes notes_;
  NvbandwidthLog log_;
  NvbandwidthTest test_;
  bool in_matrix_ = false, reported_ = false;
  std::size_t list_ = 0, waived_ = 0;
};

}  // namespace

sim::Result<NvbandwidthLog> read_nvbandwidth(std::string_view text, std::string_view name) {
  if (identify(text).kind == LogKind::nvbandwidth_json) return read_nvbandwidth_json(text, name);
  return Reader(text, name).read(text);
}

}  // namespace railyard::calibrate
