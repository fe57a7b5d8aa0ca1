// Files, includes and merging: the part of document.h that touches the file system.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "scenarios/data_dir.h"
#include "scenarios/document.h"
#include "scenarios/text_fence.h"

namespace railyard::scenarios {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIncludes = 100;  // over a whole document: merging copies each of them

bool file_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

class Loader {
 public:
  explicit Loader(const LoadOptions& options) : options_(options) {}

  // Reads `path`; `asked` is the node that includes it, null for the file the user named.
  Result<Node> file(const std::string& path, const Node* asked) {
    auto text = read_text_file(path);
    if (!text.ok()) {
      if (asked == nullptr) return text.error();
      return Error{text.error().code, "include: " + text.error().text(), asked->mark.text()};
    }
    files_.push_back({path, fnv1a(text.value()), text.value().size()});
    chain_.push_back({path, identity(path)});
    auto root = this->text(text.value(), path);
    chain_.pop_back();
    return root;
  }

  // Parses a text and merges what it includes.
  Result<Node> text(std::string_view text, const std::string& name) {
    RAILYARD_ASSIGN(Node root, parse_yaml(text, name));
    if (root.kind != Node::Kind::map)
      return sim::bad_input("a map of keys and values is expected", root.mark.text());
    const auto include = std::find_if(root.entries.begin(), root.entries.end(),
                                      [](const Entry& entry) { return entry.key == "include"; });
    if (include == root.entries.end()) return root;
    const Node included = std::move(include->value);
    root.entries.erase(include);
    return with_includes(std::move(root), included, name);
  }

  [[nodiscard]] std::vector<SourceFile> take_files() { return std::move(files_); }

 private:
  struct Link {
    std::string path;
    std::string identity;  // the same for every spelling of one file
  };

  static std::string identity(const std::string& path) {
    std::error_code failed;
    const fs::path canonical = fs::weakly_canonical(path, failed);
    return failed ? path : canonical.string();
  }

  Result<Node> with_includes(Node root, const Node& included, const std::string& name) {
    if (!options_.includes)
      return sim::bad_input("include: is not allowed here", included.mark.text());
    std::vector<Node> names =
        included.kind == Node::Kind::list ? included.items : std::vector<Node>{included};
    Node merged;
    merged.kind = Node::Kind::map;
    merged.mark = root.mark;
    for (const Node& asked : names) {
      if (asked.kind != Node::Kind::scalar || asked.scalar.empty())
        return sim::bad_input("include: a file name or a list of file names is expected",
                              asked.mark.text());
      RAILYARD_ASSIGN(const std::string path, find_included(asked, name));
      RAILYARD_ASSIGN(Node other, file(path, &asked));
      merge(merged, std::move(other));
    }
    merge(merged, std::move(root));
    return merged;
  }

  Result<std::string> find_included(const Node& asked, const std::string& includer) {
    const std::string name = printable(asked.scalar, 100);
    if (files_.size() >= kMaxIncludes)
      return sim::bad_input(fmt::format("include: more than {} files", kMaxIncludes),
                            asked.mark.text());
    const fs::path beside = fs::path(includer).parent_path() / asked.scalar;
    const fs::path shipped = fs::path(data_directory()) / "scenarios" / asked.scalar;
    const fs::path& found = file_exists(beside) ? beside : shipped;
    if (!file_exists(found))
      return Error{sim::ErrorCode::io,
                   fmt::format("include: no file '{}' beside this one nor among the shipped "
                               "scenarios",
                               name),
                   asked.mark.text()};
    RAILYARD_TRY(check_no_cycle(found.string(), asked));
    return found.string();
  }

  Result<void> check_no_cycle(const std::string& path, const Node& asked) const {
    const std::string wanted = identity(path);
    const auto start = std::find_if(chain_.begin(), chain_.end(),
                                    [&](const Link& link) { return link.identity == wanted; });
    if (start == chain_.end()) return {};
    std::string chain;
    for (auto link = start; link != chain_.end(); ++link) chain += link->path + " -> ";
    return sim::bad_input("include: the files include each other: " + chain + start->path,
                          asked.mark.text());
  }

  LoadOptions options_;
  std::vector<SourceFile> files_;
  std::vector<Link> chain_;  // of the files being read, outermost first
};

}  // namespace

std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Result<std::string> read_text_file(const std::string& path) {
  const auto fail = [&](const std::string& why) { return Error{sim::ErrorCode::io, why, path}; };
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (!fs::exists(status)) return fail("no such file");
  if (fs::is_directory(status)) return fail("a directory, not a file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return fail("the file cannot be read");
  // In pieces: the size of a pipe or a device is not known beforehand.
  std::string text;
  for (std::array<char, 65536> piece; stream && text.size() <= kMaxFileBytes;) {
    stream.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) return fail("the file cannot be read");
  if (text.size() > kMaxFileBytes)
    return sim::bad_input(fmt::format("larger than {} MiB", kMaxFileBytes >> 20), path);
  return text;
}

Result<Document> load_document(const std::string& path, const LoadOptions& options) {
  Loader loader(options);
  RAILYARD_ASSIGN(Node root, loader.file(path, nullptr));
  return Document{std::move(root), path, loader.take_files()};
}

Result<Document> document_from_text(std::string_view text, const std::string& name,
                                    const LoadOptions& options) {
  Loader loader(options);
  RAILYARD_ASSIGN(Node root, loader.text(text, name));
  return Document{std::move(root), name, loader.take_files()};
}

std::string data_directory() {
  if (const char* set = std::getenv("RAILYARD_DATA_DIR"); set != nullptr && *set != '\0')
    return set;
  if (file_exists(fs::path(kInstallDataDir) / "scenarios")) return std::string(kInstallDataDir);
  return std::string(kSourceDataDir);
}

void merge(Node& base, Node overlay) {
  if (base.kind != Node::Kind::map || overlay.kind != Node::Kind::map) {
    base = std::move(overlay);
    return;
  }
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < base.entries.size(); ++i) index.emplace(base.entries[i].key, i);
  std::vector<bool> removed(base.entries.size());
  for (Entry& entry : overlay.entries) {
    const auto found = index.find(entry.key);
    if (found == index.end()) {
      base.entries.push_back(std::move(entry));
    } else if (entry.value.kind == Node::Kind::null) {
      removed[found->second] = true;
    } else {
      Entry& target = base.entries[found->second];
      merge(target.value, std::move(entry.value));
      target.mark = std::move(entry.mark);
    }
  }
  std::vector<Entry> kept;
  for (std::size_t i = 0; i < base.entries.size(); ++i)
    if (i >= removed.size() || !removed[i]) kept.push_back(std::move(base.entries[i]));
  base.entries = std::move(kept);
}

}  // namespace railyard::scenarios
