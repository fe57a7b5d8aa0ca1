#include "scenarios/document.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/scenarios/helpers.h"

namespace railyard::scenarios {
namespace {

std::string parse_error(std::string_view text) {
  const auto result = parse_yaml(text, "f.yaml");
  return result.ok() ? "no error" : result.error().text();
}

Node parsed(std::string_view text) {
  auto result = parse_yaml(text, "f.yaml");
  REQUIRE_MESSAGE(result.ok(), result.error().text());
  return std::move(result).value();
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("every node and key knows its place") {
  const Node root = parsed("a: 1\nb:\n  - x\n  - {c: 'y'}\nd:\n");
  CHECK(root.kind == Node::Kind::map);
  CHECK(root.find("a")->mark.text() == "f.yaml:1:4");
  CHECK(root.entries[1].mark.text() == "f.yaml:2:1");
  CHECK(root.find("b")->items[0].mark.text() == "f.yaml:3:5");
  const Node& y = root.find("b")->items[1].entries[0].value;
  CHECK(y.mark.text() == "f.yaml:4:9");
  CHECK(y.quoted);
  CHECK_FALSE(root.find("a")->quoted);
  CHECK(root.find("d")->kind == Node::Kind::null);
  CHECK(root.find("d")->mark.text() == "f.yaml:5:1");
  CHECK(root.find("e") == nullptr);
}

TEST_CASE("texts that are refused before the parser sees them") {
  CHECK(parse_error("") == "f.yaml: the file is empty");
  CHECK(parse_error(" \n \r\n") == "f.yaml: the file is empty");
  CHECK(parse_error("# only a comment\n") == "f.yaml: the file is empty");
  CHECK(parse_error(std::string("a: 1\nb: \0", 9)) ==
        "f.yaml:2:4: not a text file: byte 0x00 (UTF-8 is expected)");
  CHECK(parse_error("\xff\xfe\x61") ==
        "f.yaml:1:1: not a text file: byte 0xff (UTF-8 is expected)");
  CHECK(parse_error("\x7f\x45LF") == "f.yaml:1:1: not a text file: byte 0x7f (UTF-8 is expected)");
  CHECK(parse_error("a: b\n\tc: d\n") == "f.yaml:2:1: a tab in the indentation; use spaces");
  CHECK(parse_error(std::string(kMaxFileBytes + 1, ' ')) == "f.yaml: larger than 16 MiB");
  CHECK(parse_error("a: 1\nb: " + std::string(kMaxLineBytes, 'x')) ==
        "f.yaml:2:1: a line longer than 1 MiB");
}

TEST_CASE("UTF-8 is checked as the standard defines it") {
  CHECK(parsed("a: caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x82").find("a")->scalar ==
        "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x82");
  for (const char* bad : {"\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xe2\x82",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"}) {
    CHECK(contains(parse_error("a: " + std::string(bad)), "f.yaml:1:4: not a text file"));
  }
}

TEST_CASE("a key may appear once in a map") {
  CHECK(parse_error("a: 1\nb: 2\na: 3\n") == "f.yaml:3:1: key 'a' appears twice in one map");
  CHECK(parse_error("x: {a: 1, a: 2}") == "f.yaml:1:11: key 'a' appears twice in one map");
  CHECK(parse_error("- {a: 1}\n- {a: 2}") == "no error");
}

TEST_CASE("one document, of plain keys, without tags and merge keys") {
  CHECK(contains(parse_error("a: 1\n---\nb: 2\n"), "a second document starts here"));
  CHECK(contains(parse_error("[a, b]: 1"), "a key must be a name, not a list or a map"));
  CHECK(contains(parse_error("? {a: 1}\n: 2"), "a key must be a name, not a list or a map"));
  CHECK(contains(parse_error("~: 1"), "a key must be a name"));
  CHECK(contains(parse_error("a: &x {b: 1}\nc: {<<: *x}"), "merge keys ('<<') are not supported"));
  CHECK(contains(parse_error("a: !!int 3"), "tags ('!...') have no meaning here"));
  CHECK(contains(parse_error("a: [1, 2"), "not valid YAML"));
  CHECK(contains(parse_error("a: *nobody"), "not valid YAML"));
}

TEST_CASE("nesting has a limit that protects the stack") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK(parse_error(nested(kMaxDepth)) == "no error");
  CHECK(parse_error(nested(kMaxDepth + 1)) == "f.yaml:1:33: nested more than 32 levels deep");
  CHECK(contains(parse_error(nested(500'000)), "nested more than 32 levels deep"));
  CHECK(contains(parse_error(std::string(1'000'000, '[')), "is a bracket left open?"));
  std::string blocks;
  for (int i = 0; i < 100; ++i) blocks += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(contains(parse_error(blocks), "nested more than 32 levels deep"));
}

TEST_CASE("aliases are copies, counted as often as they are used") {
  const Node root = parsed("a: &x [1, 2]\nb: *x\n");
  CHECK(same_value(*root.find("a"), *root.find("b")));
  CHECK(contains(parse_error("a: &x [*x]"), "an alias inside its own anchor"));
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j == 0 ? "*a" : ", *a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  CHECK(contains(parse_error(bomb), "more than 500000 values, aliases counted"));
}

TEST_CASE("deep merge: maps by key, anything else as a whole, null removes") {
  Node base = parsed("a: {b: 1, c: 2}\nd: [1, 2]\ne: 5\n");
  merge(base, parsed("a: {c: 3, f: 4}\nd: [9]\ne: ~\n"));
  CHECK(same_value(base, parsed("a: {b: 1, c: 3, f: 4}\nd: [9]\n")));
}

TEST_CASE("values are set by path") {
  Node root = parsed("a: {b: 1}\nl: [{x: 1}, {x: 2}]\n");
  CHECK(apply_set(root, "a.b=7").ok());
  CHECK(apply_set(root, "l.1.x=[3, 4]").ok());
  CHECK(apply_set(root, "new.block.key=text").ok());
  CHECK(same_value(root, parsed("a: {b: 7}\nl: [{x: 1}, {x: [3, 4]}]\nnew: {block: {key: text}}")));
  const auto error = [&](std::string_view set) { return apply_set(root, set).error().text(); };
  CHECK(error("a.b") == "--set a.b: key=value is expected, for instance cluster.nodes=8");
  CHECK(error("=3") == "--set =3: key=value is expected, for instance cluster.nodes=8");
  CHECK(error("a.b=") == "--set a.b=: a value is expected after '='");
  CHECK(error("a..b=1") == "--set a..b=1: a path has names between its dots");
  CHECK(error("a.b.c=1") == "--set a.b.c=1: 'c' lies below a value that has no keys");
  CHECK(error("l.2.x=1") == "--set l.2.x=1: no list item 2: the list has 2");
  CHECK(error("l.y=1") == "--set l.y=1: 'y' is not the number of a list item (0 to 1)");
  CHECK(error("a=[1") ==
        "--set a=[1: a key must be a name, not a list or a map; is a bracket left open?");
}

TEST_CASE("what is written reads back equal") {
  const Node root = parsed(
      "s: plain text\nq: '12'\nn: 12\nt: \"true\"\nempty: ''\nnull_: ~\nel: []\nem: {}\n"
      "l: [1, {a: b}, [c]]\nlong: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\nb: |\n  two\n  lines\n"
      "m: {x: {y: {z: 1}}}\nodd: 'a: b # c'\nu: \"caf\xc3\xa9\"\n");
  CHECK(same_value(parsed(to_yaml(root)), root));
  CHECK(same_value(parsed(to_flow_yaml(root)), root));
  CHECK(to_flow_yaml(*root.find("l")) == "[1, {a: b}, [c]]");
  CHECK(to_flow_yaml(*root.find("s")) == "plain text");
}

TEST_CASE("includes are merged below the including file") {
  const tests::TemporaryDirectory dir;
  dir.write("base.yaml", "a: {x: 1, y: 2}\nb: base\nc: base\n");
  dir.write("sub/middle.yaml", "include: ../base.yaml\nb: middle\n");
  const std::string top = dir.write("top.yaml", "include: [sub/middle.yaml]\na: {y: 3}\n");
  const auto document = load_document(top, {});
  REQUIRE_MESSAGE(document.ok(), document.error().text());
  CHECK(same_value(document.value().root, parsed("a: {x: 1, y: 3}\nb: middle\nc: base\n")));
  REQUIRE(document.value().files.size() == 3);
  CHECK(document.value().files[0].path == top);
  CHECK(document.value().files[0].hash == fnv1a("include: [sub/middle.yaml]\na: {y: 3}\n"));
  CHECK(document.value().root.find("b")->mark.text() == dir.path("sub/middle.yaml") + ":2:4");
}

TEST_CASE("includes that cannot be read") {
  const tests::TemporaryDirectory dir;
  const std::string a = dir.write("a.yaml", "include: b.yaml\n");
  dir.write("b.yaml", "x: 1\ninclude: ./a.yaml\n");
  const std::string b = dir.path("b.yaml");
  CHECK(load_document(a, {}).error().text() ==
        b + ":2:10: include: the files include each other: " + a + " -> " + b + " -> " + a);
  const std::string missing = dir.write("m.yaml", "include: nowhere.yaml\n");
  CHECK(load_document(missing, {}).error().text() ==
        missing +
            ":1:10: include: no file 'nowhere.yaml' beside this one nor among the shipped "
            "scenarios");
  const std::string odd = dir.write("o.yaml", "include: {x: 1}\n");
  CHECK(load_document(odd, {}).error().text() ==
        odd + ":1:10: include: a file name or a list of file names is expected");
  const std::string folder = dir.write("f.yaml", "include: .\n");
  CHECK(contains(load_document(folder, {}).error().text(), "a directory, not a file"));
  CHECK(document_from_text("include: a.yaml\n", "t.yaml", {.includes = false}).error().text() ==
        "t.yaml:1:10: include: is not allowed here");
}

TEST_CASE("files that cannot be read") {
  const tests::TemporaryDirectory dir;
  const std::string gone = dir.path("gone.yaml");
  CHECK(load_document(gone, {}).error().text() == gone + ": no such file");
  CHECK(load_document(gone, {}).error().code == sim::ErrorCode::io);
  CHECK(load_document(dir.path("."), {}).error().text() ==
        dir.path(".") + ": a directory, not a file");
  const std::string big = dir.write("big.yaml", std::string(17 << 20, '#'));
  CHECK(load_document(big, {}).error().text() == big + ": larger than 16 MiB");
  const std::string list = dir.write("list.yaml", "- 1\n");
  CHECK(load_document(list, {}).error().text() ==
        list + ":1:1: a map of keys and values is expected");
}

}  // namespace
}  // namespace railyard::scenarios
