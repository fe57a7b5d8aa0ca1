#include <algorithm>
#include <charconv>

#include "calibrate/readers/nccl_log_builder.h"

namespace railyard::calibrate::nccl_log {
namespace {

constexpr std::size_t kMaxVersions = 64;  // distinct ones; a log of that many is no log

NetDevice& device_at(std::vector<NetDevice>& devices, std::int64_t index) {
  for (NetDevice& device : devices)
    if (device.index == index) return device;
  devices.push_back({.index = index});
  return devices.back();
}

// "mlx5_0:1/IB/SHARP" or "eth0:10.0.0.1<0>".
void read_device(std::string_view text, NetDevice& device) {
  const std::size_t colon = text.find(':');
  device.name = std::string(text.substr(0, colon));
  if (colon == std::string_view::npos) return;
  Scanner rest(text.substr(colon + 1), false);
  if (rest.match("%/", device.port)) {
    device.link = std::string(rest.rest());
  } else {
    device.link = std::string(text.substr(colon + 1));
  }
}

bool is_integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

// "NCCL version 2.20.5+cuda12.4", wherever it stands in `text`: printed without a prefix, and often
// into the middle of another program's line.
bool Builder::find_version(std::string_view text, bool torn) {
  const std::size_t at = text.find("CCL version ");
  if (at == std::string_view::npos) return false;
  Version version{.line = line_};
  version.rccl = at > 0 && text[at - 1] == 'R';
  Scanner scanner(text.substr(at), torn);
  scanner.literal("CCL version ");
  scanner.literal(": ");
  Scanner numbers = scanner;
  if (!numbers.match("%.%.", version.major, version.minor)) return false;
  std::size_t digits = 0;
  const std::string_view rest = numbers.rest();
  while (digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9') ++digits;
  if (std::from_chars(rest.data(), rest.data() + digits, version.patch).ec != std::errc())
    return false;
  version.text = std::string(scanner.word());
  if (version.text.empty()) return false;
  const bool known = std::any_of(log_.versions.begin(), log_.versions.end(),
                                 [&](const Version& other) { return other.text == version.text; });
  if (!known && log_.versions.size() < kMaxVersions) log_.versions.push_back(std::move(version));
  return true;
}

Outcome Builder::version(Message& message) {
  return find_version(message.text.rest(), message.text.torn()) ? Outcome::fact : Outcome::torn;
}

Outcome Builder::driver(Message& message) {
  std::int64_t number = -1;
  if (!message.text.match("cudaDriverVersion %", number)) return Outcome::torn;
  process_of(message).driver = number;
  return Outcome::fact;
}

// "NCCL_X set by environment to VALUE[.]" and the older "NCCL_X set to VALUE".
Outcome Builder::variable(Message& message) {
  const std::string_view text = message.text.rest();
  const std::size_t set = text.find(" set ");
  const std::size_t to = text.find(" to ");
  if (set == std::string_view::npos || set != text.find(' ') || to == std::string_view::npos)
    return message.text.torn() ? Outcome::torn : Outcome::other;
  if (message.text.torn()) return Outcome::torn;
  std::string_view value = text.substr(to + 4);
  if (value.ends_with('.') && is_integer(value.substr(0, value.size() - 1))) value.remove_suffix(1);
  Variable variable{std::string(text.substr(0, set)), std::string(value), message.line};
  std::vector<Variable>& variables = process_of(message).variables;
  const bool known = std::any_of(variables.begin(), variables.end(), [&](const Variable& other) {
    return other.name == variable.name && other.value == variable.value;
  });
  if (!known) variables.push_back(std::move(variable));
  return Outcome::fact;
}

Outcome Builder::network(Message& message) {
  if (message.text.torn()) return Outcome::torn;
  message.text.literal("Using network ");
  process_of(message).network = std::string(message.text.rest());
  process_of(message).network_line = message.line;
  return Outcome::fact;
}

// "NET/IB : Using [0]mlx5_0:1/IB [1]... [RO]; OOB eth0:10.0.0.1<0>" and what else begins with NET/:
// GPU Direct RDMA by device, merged devices, libfabric's provider, and rows of paths.
Outcome Builder::net(Message& message) {
  Scanner& text = message.text;
  Process& process = process_of(message);
  std::string_view plugin, rest, name;
  NetDevice device;
  if (text.match("NET/% : GPU Direct RDMA % for HCA % '%'", plugin, rest, device.index, name)) {
    NetDevice& known = device_at(process.devices, device.index);
    known.name = std::string(name);
    known.gpu_direct = rest == "Enabled";
    return Outcome::fact;
  }
  if (text.match("NET/% : Made virtual device [%] name=% speed=% ", plugin, device.index, rest,
                 device.speed)) {
    NetDevice& known = device_at(process.devices, device.index);
    known.name = std::string(rest);
    known.speed = device.speed;
    return Outcome::fact;
  }
  if (text.match("NET/OFI Selected Provider is %", rest) ||
      text.match("NET/OFI Selected provider is %", rest)) {
    process.provider = std::string(rest.substr(0, rest.find(',')));
    return Outcome::fact;
  }
  if (!text.match("NET/% : Using ", plugin))
    return text.rest().find(" :") != std::string_view::npos ? path_row(message) : Outcome::other;
  if (text.torn()) return Outcome::torn;
  while (text.match("[%]%", device.index, rest)) {
    read_device(rest, device_at(process.devices, device.index));
    text.skip_blanks();
  }
  if (text.literal("[RO]")) process.relaxed_ordering = true;
  text.skip_blanks();
  if (text.literal("; OOB ")) process.out_of_band = std::string(text.rest());
  return Outcome::fact;
}

void Builder::warning(const Segment& segment) {
  log_.warnings.push_back({.where = std::string(segment.where),
                           .text = std::string(segment.text),
                           .host = std::string(segment.host),
                           .pid = segment.pid,
                           .line = line_});
}

// nccl-tests: "#  Rank  0 Group  0 Pid    880 on node00 device  0 [0xa4] NVIDIA A100-SXM4-80GB".
void Builder::header_line(std::string_view line) {
  Scanner text(line.substr(line.find('#') + 1), false);
  text.skip_blanks();
  HeaderRank rank;
  std::int64_t group = 0, pid = -1, device = -1;
  std::string_view host, bus_id;
  if (!text.match("Rank % ", rank.rank)) return;
  text.match("Group % ", group);
  if (!text.match("Pid % on % device % [%]", pid, host, device, bus_id)) return;
  text.skip_blanks();
  rank.gpu = std::string(text.rest());
  segmenter_.know_host(host);
  header_[std::string(host) + ":" + std::to_string(pid) + ":" + std::to_string(device)] = rank;
}

}  // namespace railyard::calibrate::nccl_log
