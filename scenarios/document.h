// A YAML file as a tree in which every node and key knows its file, line and column. The only place
// of the project where a YAML text is parsed.
//
// What is refused before or while parsing, with its position: an empty or missing file, more than
// kMaxFileBytes in all or kMaxLineBytes in a line (the parser keeps the tokens of a line: about 220
// bytes of memory for each byte of "[[[["), bytes that are not UTF-8 text, tabs as indentation,
// more than one document, more than kMaxDepth levels, more than kMaxNodes nodes (aliases count as
// often as they are used), duplicate keys, keys that are not plain names, merge keys (`<<`), tags.
//
//   RAILYARD_ASSIGN(Document document, load_document("my.yaml", {}));
//   RAILYARD_TRY(apply_set(document.root, "cluster.nodes=8"));
//   std::string resolved = to_yaml(document.root);
//
// `include:` at the top of a scenario names one file or a list of files, looked for beside the
// including file, then among the shipped scenarios. Maps merge key by key, later files override
// earlier ones, and the including file overrides all; a key set to null removes what was included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/result.h"

namespace railyard::scenarios {

using sim::Error;
using sim::Result;

inline constexpr std::size_t kMaxFileBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxNodes = 500'000;

// Where a node was written. Line and column count from 1; 0 = the source has no lines ("--set
// ...").
struct Mark {
  std::shared_ptr<const std::string> source;
  std::uint32_t line = 0;
  std::uint32_t column = 0;

  [[nodiscard]] std::string text() const;  // "file.yaml:12:5"
};

struct Entry;

struct Node {
  enum class Kind : std::uint8_t { null, scalar, list, map };

  Kind kind = Kind::null;
  bool quoted = false;  // a scalar in quotes is text and never a number
  std::string scalar;
  std::vector<Node> items;     // of a list
  std::vector<Entry> entries;  // of a map, in the file's order; keys are unique
  Mark mark;

  [[nodiscard]] const Node* find(std::string_view key) const;  // of a map; null if absent
  [[nodiscard]] Node* find(std::string_view key);
};

struct Entry {
  std::string key;
  Mark mark;  // of the key
  Node value;
};

// A file that was read, so that a result can say exactly what it was made from.
struct SourceFile {
  std::string path;
  std::uint64_t hash = 0;  // FNV-1a, 64 bits, of the bytes
  std::size_t size = 0;
};

struct Document {
  Node root;                      // a map
  std::string name;               // of the file, as errors show it
  std::vector<SourceFile> files;  // in the order they were opened
};

struct LoadOptions {
  bool includes = true;  // false: `include:` is an error, and no file but the named one is read
};

std::uint64_t fnv1a(std::string_view bytes);

// The file's bytes, within the limits above; an error of code `io` if it cannot be read.
Result<std::string> read_text_file(const std::string& path);

// One document of any kind. `name` is what errors call the text.
Result<Node> parse_yaml(std::string_view text, const std::string& name);

// A file, or a text that stands for one, with its includes merged. The root is a map.
Result<Document> load_document(const std::string& path, const LoadOptions& options);
Result<Document> document_from_text(std::string_view text, const std::string& name,
                                    const LoadOptions& options);

// Where shipped files are looked for: $RAILYARD_DATA_DIR, the installed directory, the source tree;
// the first that exists. It holds scenarios/ and scenarios/profiles/.
std::string data_directory();

// `overlay` over `base`: maps merge recursively, anything else replaces, null removes.
void merge(Node& base, Node overlay);

// Puts `value` at a dotted path ("cluster.nodes", "collectives.0.dtype"), making maps on the way;
// a number indexes an existing list item. `source` marks the maps that are made.
Result<void> set_value(Node& root, std::string_view path, Node value, const Mark& source);

// One `--set path=value` of the command line; the value is read as YAML.
Result<void> apply_set(Node& root, std::string_view assignment);

// Gives a node and all below it one mark.
void set_marks(Node& node, const Mark& mark);

// Block style, with a final newline; read again, it gives an equal tree. The second: one line.
std::string to_yaml(const Node& node);
std::string to_flow_yaml(const Node& node);

// Equal values, wherever they were written.
bool same_value(const Node& a, const Node& b);

}  // namespace railyard::scenarios
