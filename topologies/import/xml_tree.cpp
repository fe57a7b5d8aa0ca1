#include "topologies/import/xml_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <pugixml.hpp>

namespace railyard::topologies {
namespace {

using sim::Error;
using sim::Result;

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Checks the shape of the text before pugixml sees it: every tag closed, in order, within limits.
class ShapeCheck {
 public:
  ShapeCheck(std::string_view text, const ImportSource& source) : text_(text), source_(source) {}

  Result<void> run() {
    while (at_ < text_.size()) {
      if (text_[at_] != '<') {
        RAILYARD_TRY(between());
      } else if (text_.substr(at_, 4) == "<!--") {
        RAILYARD_TRY(skip_past("-->", "comment"));
      } else if (text_.substr(at_, 2) == "<?") {
        source_.note(line_, "an XML declaration; NCCL's own reader refuses it");
        RAILYARD_TRY(skip_past("?>", "declaration"));
      } else if (text_.substr(at_, 2) == "<!") {
        return source_.error(line_, "DTDs, entities and CDATA are not accepted");
      } else {
        RAILYARD_TRY(tag());
      }
    }
    if (!open_.empty())
      return source_.error(line_, fmt::format("the file ends inside <{}>, opened on line {}",
                                              printable(open_.back().name), open_.back().line));
    if (elements_ == 0) return source_.error(line_, "holds no XML element");
    return {};
  }

 private:
  struct Open {
    std::string_view name;
    std::size_t line;
  };

  Result<void> between() {
    const char c = text_[at_];
    if (!is_blank(c))
      return source_.error(
          line_, fmt::format("expected '<', found '{}'", printable(text_.substr(at_, 1))));
    if (c == '\n') ++line_;
    ++at_;
    return {};
  }

  Result<void> skip_past(std::string_view end, const char* what) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos)
      return source_.error(line_, fmt::format("the file ends inside a {}", what));
    advance(found + end.size());
    return {};
  }

  void advance(std::size_t to) {
    line_ +=
        static_cast<std::size_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                            text_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }

  // The end of the tag that starts here, quotes respected; npos if the file ends first.
  [[nodiscard]] std::size_t tag_end() const {
    char quote = '\0';
    for (std::size_t i = at_ + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote != '\0') {
        if (c == quote) quote = '\0';
      } else if (c == '"' || c == '\'') {
        quote = c;
      } else if (c == '>') {
        return i;
      }
    }
    return std::string_view::npos;
  }

  Result<void> tag() {
    const std::size_t end = tag_end();
    if (end == std::string_view::npos)
      return source_.error(line_, "the file ends inside a tag (a missing '>' or quote)");
    std::string_view body = text_.substr(at_ + 1, end - at_ - 1);
    const bool closing = body.starts_with('/');
    if (closing) body.remove_prefix(1);
    const auto* stop =
        std::find_if(body.begin(), body.end(), [](char c) { return is_blank(c) || c == '/'; });
    const std::string_view name = body.substr(0, static_cast<std::size_t>(stop - body.begin()));
    if (name.empty()) return source_.error(line_, "a tag without a name");
    if (closing) RAILYARD_TRY(close(name));
    if (!closing) RAILYARD_TRY(open(name, body));
    advance(end + 1);
    return {};
  }

  Result<void> close(std::string_view name) {
    if (open_.empty())
      return source_.error(line_, fmt::format("</{}> closes nothing", printable(name)));
    if (open_.back().name != name)
      return source_.error(line_,
                           fmt::format("</{}> closes <{}>, opened on line {}", printable(name),
                                       printable(open_.back().name), open_.back().line));
    open_.pop_back();
    return {};
  }

  Result<void> open(std::string_view name, std::string_view body) {
    if (open_.empty() && elements_ > 0)
      return source_.error(line_, fmt::format("a second root element <{}>", printable(name)));
    if (++elements_ > kMaxXmlElements)
      return source_.error(line_, fmt::format("more than {} elements; no machine has so many parts",
                                              kMaxXmlElements));
    if (open_.size() >= kMaxXmlDepth)
      return source_.error(line_, fmt::format("elements nested more than {} deep", kMaxXmlDepth));
    if (body.find_first_of("\n\t\r") != std::string_view::npos)
      source_.note(line_, "a tab or line break inside a tag; NCCL's own reader refuses it");
    if (!body.ends_with('/')) open_.push_back({name, line_});
    return {};
  }

  std::string_view text_;
  const ImportSource& source_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t elements_ = 0;
  std::vector<Open> open_;
};

// Lines by offset.
class LineIndex {
 public:
  explicit LineIndex(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') ends_.push_back(i);
  }
  [[nodiscard]] std::size_t at(std::ptrdiff_t offset) const {
    const auto position = static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0));
    return 1 + static_cast<std::size_t>(std::lower_bound(ends_.begin(), ends_.end(), position) -
                                        ends_.begin());
  }

 private:
  std::vector<std::size_t> ends_;
};

// Recursion is bounded by kMaxXmlDepth, which ShapeCheck enforced.
XmlElement convert(const pugi::xml_node& node, const LineIndex& lines) {
  XmlElement element;
  element.name = node.name();
  element.line = lines.at(node.offset_debug());
  for (const pugi::xml_attribute& attribute : node.attributes())
    element.attributes.push_back({attribute.name(), attribute.value()});
  for (const pugi::xml_node& child : node.children())
    if (child.type() == pugi::node_element) element.children.push_back(convert(child, lines));
  return element;
}

std::string_view without_mark(std::string_view text, const ImportSource& source) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (!text.starts_with(kByteOrderMark)) return text;
  source.note(1, "a byte order mark; NCCL's own reader refuses it");
  return text.substr(kByteOrderMark.size());
}

}  // namespace

const std::string* XmlElement::find(std::string_view attribute) const {
  for (const XmlAttribute& candidate : attributes)
    if (candidate.name == attribute) return &candidate.value;
  return nullptr;
}

void ImportSource::note(std::size_t line, std::string_view text) const {
  if (notes != nullptr) notes->add(fmt::format("{}: {}", where(line), text));
}

std::string ImportSource::where(std::size_t line) const { return fmt::format("{}:{}", name, line); }

Error ImportSource::error(std::size_t line, std::string message) const {
  return sim::bad_input(std::move(message), where(line));
}

Result<XmlElement> parse_xml(std::string_view text, const ImportSource& source) {
  if (text.size() > kMaxImportBytes)
    return source.error(
        1, fmt::format("larger than {} MiB, the most that is read", kMaxImportBytes >> 20));
  if (text.find('\0') != std::string_view::npos)
    return source.error(1, "holds zero bytes: not a text file, or UTF-16");
  text = without_mark(text, source);
  RAILYARD_TRY(ShapeCheck(text, source).run());

  const LineIndex lines(text);
  pugi::xml_document document;
  // Values stay as written (no entities, no folding of line ends), as in NCCL's reader.
  const pugi::xml_parse_result parsed =
      document.load_buffer(text.data(), text.size(), pugi::parse_minimal, pugi::encoding_utf8);
  if (!parsed) return source.error(lines.at(parsed.offset), parsed.description());
  return convert(document.document_element(), lines);
}

std::string_view root_element(std::string_view text) {
  for (std::size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    if (text.substr(at, 4) == "<!--") {
      at = text.find("-->", at);
    } else if (text.substr(at, 2) == "<?" || text.substr(at, 2) == "<!") {
      at = text.find('>', at);
    } else {
      const std::size_t end = text.find_first_of(" \t\r\n/>", at + 1);
      return text.substr(at + 1, end == std::string_view::npos ? end : end - at - 1);
    }
    if (at == std::string_view::npos) break;
  }
  return {};
}

std::string describe_root(std::string_view root) {
  struct Known {
    std::string_view root;
    std::string_view what;
  };
  static constexpr std::array<Known, 8> kKnown{{
      {"system", "an NCCL topology (<system>)"},
      {"graphs", "an NCCL graph (<graphs>)"},
      {"topology", "an hwloc topology (<topology>)"},
      {"html", "an HTML page"},
      {"HTML", "an HTML page"},
      {"algo", "an MSCCL algorithm (<algo>)"},
      {"trees", "a tree graph of NCCL 2.4 (<trees>)"},
      {"nvidia_smi_log", "an nvidia-smi -q log (<nvidia_smi_log>)"},
  }};
  if (root.empty()) return "not XML";
  for (const Known& known : kKnown)
    if (known.root == root) return std::string(known.what);
  return fmt::format("XML with the root <{}>", printable(root));
}

}  // namespace railyard::topologies
