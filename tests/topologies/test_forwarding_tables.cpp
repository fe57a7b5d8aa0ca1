// Forwarding tables: the four forms, refusals by their message, and a real cluster's.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "tests/paths.h"
#include "tests/skip.h"
#include "tests/time_limit.h"
#include "topologies/import/forwarding_tables.h"
#include "topologies/import/text_file.h"

namespace railyard::topologies {
namespace {

ForwardingTables must_parse(std::string_view text) {
  ForwardingTables tables;
  const auto done = parse_forwarding_tables(text, "t", tables);
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().text()));
  return tables;
}

std::string refusal(std::string_view text) {
  ForwardingTables tables;
  const auto done = parse_forwarding_tables(text, "t", tables);
  return done.ok() ? "accepted" : done.error().text();
}

TEST_CASE("tables: what four tools print of the same switch") {
  const std::string_view forms[] = {
      "Unicast lids [0x0-0x2c] of switch Lid 2 guid 0x00000000000000a0 (leaf (old)):\n"
      "  Lid  Out   Destination\n       Port     Info \n"
      "0x0001 033 : (Channel Adapter portguid 0x0000000000100001: 'host000 mlx5_0')\n"
      "0x0010 000 : (Switch portguid 0x00000000000000a0: 'leaf')\n2 valid lids dumped \n",
      "Unicast lids [0x0-0x2c] of switch DR path slid 0; dlid 0; 0,1,33 guid 0xa0 (leaf):\n"
      "0x0001 033 : (Channel Adapter portguid 0x1: 'host000 mlx5_0')\n0x0010 000 : (Switch)\n",
      "dump_ucast_routes: Switch 0x00000000000000a0\nLID    : Port : Hops : Optimal\n"
      "0x0001 : 033  : 01   : yes\n0x0010 : 000  : 00   : yes\n0x0011 : UNREACHABLE\n"
      "0x0012 : 255 : 01 : no\n",
      "Unicast lids [0-44] of switch Lid 2 guid 0x00000000000000a0 ('leaf00'):\n"
      "0x0010 000 # Switch portguid 0xa0: 'leaf00'\n0x0001 033 # Channel Adapter\n"};
  for (const std::string_view text : forms) {
    CAPTURE(text);
    CHECK(looks_like_forwarding_tables(text));
    const ForwardingTables tables = must_parse(text);
    REQUIRE(tables.switches.size() == 1);
    const SwitchTable* table = tables.find(0xa0);
    REQUIRE(table != nullptr);
    CHECK(table->entries == std::vector<ForwardingEntry>{{1, 33}, {16, 0}});
    CHECK(table->port(16) == 0);
    CHECK(!table->port(2).has_value());
    CHECK(tables.notes.empty());
  }
  CHECK(must_parse(forms[2]).unreachable == 2);
  CHECK(summary(must_parse(forms[2])) == "forwarding tables: 1 switches, 2 entries, 2 unreachable");
  CHECK(must_parse(forms[0]).switches[0].name == "leaf (old)");
}

TEST_CASE("tables: several LIDs a port, as dump_fts tells them") {
  const ForwardingTables tables = must_parse(
      "Unicast lids [0x0-0x7] of switch Lid 2 guid 0xa0 (leaf):\n"
      "0x0004 033 : (Channel Adapter portguid 0x0000000000100001: 'host000 mlx5_0')\n"
      "0x0005 034 : (path #2 out of 2: portguid 0x0000000000100001)\n");
  CHECK(tables.find(0xa0)->port(4) == 33);
  CHECK(tables.find(0xa0)->port(5) == 34);
  CHECK(summary(tables) ==
        "forwarding tables: 1 switches, 2 entries; up to 2 LIDs a port, routes go by the first");
}

TEST_CASE("tables: several texts add up, equal ones once") {
  ForwardingTables tables;
  const std::string a = "dump_ucast_routes: Switch 0xa\n0x0001 : 001 : 01 : yes\n";
  const std::string b = "dump_ucast_routes: Switch 0xb\n0x0001 : 002 : 01 : yes\n";
  CHECK(parse_forwarding_tables(a, "a", tables).ok());
  CHECK(parse_forwarding_tables(b + a, "b", tables).ok());
  CHECK(tables.switches.size() == 2);
  const auto other = parse_forwarding_tables(
      "\ndump_ucast_routes: Switch 0xb\n0x0001 : 003 : 01 : yes\n", "c", tables);
  REQUIRE(!other.ok());
  CHECK(other.error().text() == "c:2: a second table of switch 0x000000000000000b, which differs");
}

TEST_CASE("tables: refusals name the line") {
  CHECK(refusal("") == "t: no forwarding table of a switch");
  CHECK(refusal("0x0001 001 : x\n") == "t:1: an entry outside the table of a switch");
  CHECK(refusal("Unicast lids [0-1] of switch\n") ==
        "t:1: no GUID of a switch in 'Unicast lids [0-1] of switch'");
  const std::string head = "dump_ucast_routes: Switch 0xa\n";
  CHECK(refusal(head + "0xc000 : 001\n") ==
        "t:2: no unicast LID (0x0001 to 0xbfff) in '0xc000 : 001'");
  CHECK(refusal(head + "0x0001 : 300\n") == "t:2: '300' is no port (0 to 254)");
  CHECK(refusal(head + "0x0001 : x\n") == "t:2: 'x' is no port (0 to 254)");
  CHECK(refusal(head + "0x0001 : 001\n0x0001 : 002\n") ==
        "t:1: switch 0x000000000000000a: LID 1 leaves by port 1 and by port 2");
  CHECK(must_parse(head + "what is this\n").notes ==
        std::vector<std::string>{"t:2: 'what is this' is ignored"});
}

TEST_CASE("tables: multicast entries of dump_mfts are passed over") {
  const ForwardingTables tables = must_parse(
      "Unicast lids [0-1] of switch Lid 2 guid 0xa (l):\n0x0001 001 : (x)\n"
      "Multicast mlids [0xc000-0xc3ff] of switch Lid 2 guid 0xa (l):\n0xc000  x   x\n");
  CHECK(tables.find(0xa)->entries.size() == 1);
}

// `wc -l` and `head` of the files: nine switches; the tables of LID 2 and LID 142 have 134 entries
// each, and the first sends LID 1 out of port 15, LID 0x8f out of port 18.
TEST_CASE("tables samples: nine switches of PlaFRIM") {
  namespace fs = std::filesystem;
  const fs::path folder =
      fs::path(RAILYARD_SHARED_DIR) / "samples/ib/lft/plafrim/ibroutes-fe80:0000:0000:0000";
  if (!fs::exists(folder)) RAILYARD_SKIP("no samples in " RAILYARD_SHARED_DIR);
  ForwardingTables tables;
  for (const auto& file : fs::directory_iterator(folder)) {
    const auto text = read_text_file(file.path().string());
    REQUIRE(text.ok());
    const auto done =
        parse_forwarding_tables(text.value(), file.path().filename().string(), tables);
    MESSAGE(file.path().filename().string(), ": ",
            (done.ok() ? summary(tables) + " so far" : done.error().text()));
    CHECK(done.ok());
  }
  CHECK(tables.switches.size() == 9);
  CHECK(tables.notes.empty());
  const SwitchTable* first = tables.find(0x000b8cffff004939);
  REQUIRE(first != nullptr);
  CHECK(first->entries.size() == 134);
  CHECK(first->port(1) == 15);
  CHECK(first->port(2) == 0);
  CHECK(first->port(0x8f) == 18);
  CHECK(tables.find(0x0008f10500108c9e)->entries.size() == 134);
}

TEST_CASE("tables: large and hostile texts end quickly") {
  const std::clock_t start = std::clock();
  std::string many;
  for (int i = 0; i < 500'000; ++i)
    many += fmt::format("dump_ucast_routes: Switch 0x{:x}\n0xbfff : 001\n", 1'000'000 - i);
  ForwardingTables tables;
  CHECK(parse_forwarding_tables(many, "t", tables).ok());
  CHECK(tables.switches.size() == 500'000);
  std::string entries = "dump_ucast_routes: Switch 0xa\n";
  for (int i = 0; i < 1'000'000; ++i) entries += "0x0001 : 001\n";
  CHECK(must_parse(entries).switches[0].entries.size() == 1);
  CHECK(refusal("dump_ucast_routes: Switch 0x" + std::string(10'000'000, '1'))
            .starts_with("t:1: no GUID"));
  // Of this process's own time, for all of them together.
  CHECK((std::clock() - start) / CLOCKS_PER_SEC < 8 * railyard::tests::kSlowdown);
}

}  // namespace
}  // namespace railyard::topologies
