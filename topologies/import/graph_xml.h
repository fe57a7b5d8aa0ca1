// NCCL graph XML (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE) <-> sim::ChannelGraph.
//
// A graph is refused, with file:line, where NCCL would read past its arrays or guess: an id or
// pattern it does not have, nchannels that does not count the <channel>s, more than 64 channels,
// channels of different length, a GPU twice in a channel, one <net> alone, unknown path types
// (NCCL takes them for LOC), two graphs with one id.
//
// dev numbers: NCCL 2.21 and later read them as hexadecimal with or without 0x, so that a
// hand-written dev="10" is device 16; before, they were decimal. rank, of 2.28 and later, goes
// before dev. Patterns: number 1 was the looped split tree before NCCL 2.9 and is the balanced tree
// since; a file does not say its version.
//
//   RAILYARD_ASSIGN(const GraphFile file, read_graph_xml("graph.xml"));
//   file.graphs[0].channels[0].gpus  // {0, 3, 2, 1}
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/channel_graph.h"
#include "sim/result.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {

enum class DevNumbers { hexadecimal, decimal };

struct GraphFile {
  std::vector<sim::ChannelGraph> graphs;  // in the file's order
  // What ChannelGraph::Channel::gpus holds: ranks if every <gpu> has one, else device numbers.
  bool has_ranks = false;

  [[nodiscard]] const sim::ChannelGraph* find(sim::GraphKind kind) const;
};

bool looks_like_graph_xml(std::string_view text);

struct GraphXmlOptions {
  DevNumbers numbers = DevNumbers::hexadecimal;
  ImportNotes* notes = nullptr;
};
sim::Result<GraphFile> read_graph_xml(const std::string& path, const GraphXmlOptions& options = {});
sim::Result<GraphFile> parse_graph_xml(std::string_view text, std::string name,
                                       const GraphXmlOptions& options = {});

// As NCCL dumps it. With `dev_of_rank` the channels hold ranks and both are written; without, they
// hold device numbers.
std::string write_graph_xml(std::span<const sim::ChannelGraph> graphs,
                            std::span<const std::int64_t> dev_of_rank = {});

}  // namespace railyard::topologies
