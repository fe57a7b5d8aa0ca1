// XML as plain values: elements with their line, attributes in order, nothing else. What the NCCL
// readers need, and no more than NCCL itself accepts: no DTD, no entities, no CDATA, no text
// between elements. pugixml does the parsing, behind a check that bounds what it may meet.
//
// Limits: 16 MiB, 100,000 elements, 64 levels. Cost: linear in the text.
//
//   RAILYARD_ASSIGN(const XmlElement system, parse_xml(text, {"topo.xml", &notes}));
//   system.children[0].line == 2
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {

inline constexpr std::size_t kMaxXmlElements = 100'000;
inline constexpr std::size_t kMaxXmlDepth = 64;

struct XmlAttribute {
  std::string name;
  std::string value;
};

struct XmlElement {
  std::string name;
  std::size_t line = 0;
  std::vector<XmlAttribute> attributes;
  std::vector<XmlElement> children;

  [[nodiscard]] const std::string* find(std::string_view attribute) const;
};

// Where the text comes from, and where notes about it go.
struct ImportSource {
  std::string name;
  ImportNotes* notes = nullptr;  // may be null

  void note(std::size_t line, std::string_view text) const;
  [[nodiscard]] std::string where(std::size_t line) const;
  [[nodiscard]] sim::Error error(std::size_t line, std::string message) const;
};

// The root element, or why there is none. Errors carry "name:line".
sim::Result<XmlElement> parse_xml(std::string_view text, const ImportSource& source);

// The name of the first element, past comments, declarations and DTDs; empty if there is none.
std::string_view root_element(std::string_view text);

// What a document with this root is, for the error of a reader that wants another one:
// "an NCCL graph (<graphs>)", "an HTML page", "XML with the root <x>".
std::string describe_root(std::string_view root);

}  // namespace railyard::topologies
