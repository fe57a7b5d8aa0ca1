// NCCL topology XML (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE) <-> sim::Hardware.
//
// Everything keeps the file's order, because NCCL's decisions follow it. Nothing is completed: a
// GPU that the file shows by its PCI class alone has no HardwarePci::gpu, a missing class is 0.
//
// Refused, with file:line: other kinds of XML, a version other than NCCL's 1 and RCCL's 2, a file
// without <cpu>, values that are no numbers, NaN, negative or out of range (speed="-1" of a net is
// NCCL's "unknown"), names and values longer than NCCL's 254, a <pci> without a bus id or with one
// that its host has already, a <cpu> without numaid, two <gpu>s in one <pci> (parts of a GPU).
//
// Noted, and read as NCCL reads it:
//   elements NCCL does not know, with all inside them       left out
//   attributes past the 16th                                left out
//   <net> without dev or with net="0" (part of a fused NIC) left out
//   links to a GPU or switch that is not in the file        kept; NCCL makes no link of them
//   more children than NCCL's 640 (128 before 2.28)         kept; NCCL refuses the file
// RCCL's <xgmi> are read as NVLinks.
//
//   ImportNotes notes;
//   RAILYARD_ASSIGN(const sim::Hardware hardware, read_nccl_xml("topo.xml", &notes));
#pragma once

#include <string>
#include <string_view>

#include "sim/hardware.h"
#include "sim/result.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {

// Is this text meant as NCCL topology XML? (Its first element is <system>.)
bool looks_like_nccl_xml(std::string_view text);

sim::Result<sim::Hardware> read_nccl_xml(const std::string& path, ImportNotes* notes = nullptr);
// `name` stands for the file in errors.
sim::Result<sim::Hardware> parse_nccl_xml(std::string_view text, std::string name,
                                          ImportNotes* notes = nullptr);

// As NCCL dumps it; reading it again gives an equal value.
std::string write_nccl_xml(const sim::Hardware& hardware);

}  // namespace railyard::topologies
