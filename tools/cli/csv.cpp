#include "tools/cli/csv.h"

#include <fmt/format.h>

#include "tools/cli/format.h"

namespace railyard::cli {
namespace {

std::string us(sim::Duration time) { return fmt::format("{}", exact_us(time)); }

template <typename Enum>
std::string name(Enum value) {
  return std::string(sim::to_text(value));
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

std::string csv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) line += ',';
    line += csv_cell(cells[i]);
  }
  return line + "\n";
}

std::string buckets_csv(const scenarios::DdpResult& ddp) {
  std::string text =
      "bucket,size_bytes,parameters,ready_us,start_us,end_us,algorithm,protocol,channels,"
      "busbw_gb_per_s,exposed_us\n";
  for (std::size_t i = 0; i < ddp.buckets.size(); ++i) {
    const scenarios::BucketRow& row = ddp.buckets[i];
    text += csv_line({std::to_string(i), std::to_string(row.size.raw()),
                      std::to_string(row.parameters), us(row.ready), us(row.start), us(row.end),
                      name(row.algorithm), name(row.protocol), std::to_string(row.channels),
                      fmt::format("{}", row.busbw), us(row.exposed)});
  }
  return text;
}

std::string collectives_csv(const std::vector<scenarios::CollectiveRow>& rows) {
  std::string text =
      "collective,group,ranks,size_bytes,count,dtype,root,algorithm,protocol,channels,time_us,"
      "algbw_gb_per_s,busbw_gb_per_s,messages\n";
  for (const scenarios::CollectiveRow& row : rows)
    text += csv_line({name(row.collective), row.group, std::to_string(row.ranks),
                      std::to_string(row.size.raw()), std::to_string(row.count), row.dtype,
                      std::to_string(row.root), name(row.algorithm), name(row.protocol),
                      std::to_string(row.channels), us(row.time), fmt::format("{}", row.algbw),
                      fmt::format("{}", row.busbw), std::to_string(row.messages)});
  return text;
}

std::string links_csv(const std::vector<scenarios::LinkRow>& links) {
  std::string text = "link,class,bytes,achievable_gb_per_s,utilization\n";
  for (const scenarios::LinkRow& link : links)
    text += csv_line({link.name, name(link.link_class), std::to_string(link.bytes.raw()),
                      fmt::format("{}", exact_gb_per_s(link.rate)),
                      fmt::format("{}", link.utilization)});
  return text;
}

std::string flows_csv(const std::vector<scenarios::FlowResult>& flows) {
  std::string text = "from,to,size_bytes,start_us,end_us,took_us\n";
  for (const scenarios::FlowResult& flow : flows)
    text += fmt::format("{},{},{},{},{},{}\n", flow.from, flow.to, flow.size.raw(), us(flow.start),
                        us(flow.end), us(flow.end - flow.start));
  return text;
}

}  // namespace railyard::cli
