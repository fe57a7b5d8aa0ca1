// Schedules from files: small ones written by hand from the formats' descriptions, proved, run by
// both engines' checks, broken in every way that the reader or the checker must name.
#include "algorithms/custom/custom_schedule.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "sim/dataflow.h"
#include "tests/paths.h"
#include "tests/sim/mutation.h"

namespace railyard::algorithms {
namespace {

using sim::bytes;
using sim::Collective;

const std::string kPair =
    "schedule pair   # the smallest ring\n"
    "collective AllReduce\n"
    "ranks 2\n"
    "chunks 2\n"
    "block 0.0 send 1 recv 1\n"
    "  send i1\n"
    "  recvReduceCopySend i0 o0\n"
    "  recv o1\n"
    "block 1.0 send 0 recv 0\n"
    "  send i0\n"
    "  recvReduceCopySend i1 o1\n"
    "  recv o0\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

CustomSchedule read(const std::string& text) {
  auto custom = read_custom_schedule("f", text);
  const std::string problem = custom.ok() ? "" : custom.error().text();
  REQUIRE(problem == "");
  return custom.value();
}

// What is wrong: of the file, or else of what it does.
std::string problem_of(const std::string& text) {
  const auto custom = read_custom_schedule("f", text);
  return custom.ok() ? prove_custom(custom.value()).problem : custom.error().text();
}

std::string corpus(const std::string& name) {
  std::ifstream in(std::string(RAILYARD_SOURCE_DIR) + "/tests/fuzz/corpus/custom_schedule/" + name);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("custom: a ring of two is proved and cut into portions") {
  const CustomSchedule custom = read(kPair);
  const CustomProof proof = prove_custom(custom);
  CHECK(proof.problem == "");
  CHECK(proof.proved == std::vector<Collective>{Collective::all_reduce});
  CHECK(proof.slices == 6);
  CHECK(proof.messages == 4);
  // 2 MiB: two chunks of 1 MiB, two Simple steps of 512 KiB each.
  const auto schedule = build_custom(custom, {.size = bytes(2 << 20)}, nullptr);
  REQUIRE(schedule.ok());
  CHECK(sim::totals(schedule.value()).messages == 8);
  CHECK(sim::totals(schedule.value()).payload == bytes(4 << 20));
  CHECK(sim::check_dataflow(schedule.value()).ok());
  CHECK(build_custom(custom, {.size = bytes(0)}, nullptr).value().lanes.empty());
  CHECK(build_custom(custom, {.size = bytes(12)}, nullptr).error().text() ==
        "f: 12 bytes do not divide into 2 chunks of whole elements of 4 bytes");
}

TEST_CASE("custom: every change of it is refused or moves the same data") {
  for (const std::string& text : {kPair, corpus("scratch.xml")}) {
    const CustomSchedule custom = read(text);
    const auto schedule = build_custom(custom, {.size = bytes(16), .element_size = 1}, nullptr);
    REQUIRE(schedule.ok());
    const auto counts = tests::run_mutations(
        sim::expand(schedule.value()), sim::promise_of(schedule.value()), tests::CountStricter::no);
    CHECK(counts.wrongly_accepted == std::vector<std::string>{});
    CHECK(counts.refused > 4 * counts.equivalent);
  }
}

// Rank 0 receives into its scratch in one block and adds it in another, which waits.
TEST_CASE("custom: MSCCL with scratch, a wait and a nop") {
  const std::string text = corpus("scratch.xml");
  const CustomSchedule custom = read(text);
  CHECK(custom.name == "pair");
  CHECK(custom.protocol == sim::Protocol::ll);
  CHECK(custom.scratch == 1);
  CHECK(prove_custom(custom).problem == "");
  // Without the wait it reads what may not have come.
  CHECK(problem_of(replaced(text, "depid=\"0\" deps=\"1\"", "depid=\"-1\" deps=\"-1\"")) ==
        "rank 0 reads scratch [0,4) before it is written");
}

// Every rank writes its own block of the output for the other, in place.
TEST_CASE("custom: in place, input and output are one buffer") {
  const std::string gather =
      "schedule gather\ncollective AllGather\nranks 2\nchunks 2\nin-place yes\n"
      "block 0.0 send 1 recv 1\n send i0\n recv o1\n"
      "block 1.0 send 0 recv 0\n send i0\n recv o0\n";
  CHECK(problem_of(gather) == "");
  CHECK(problem_of(replaced(gather, "in-place yes", "in-place no")) ==
        "rank 0 output [0,12): never written");
  const std::string reduce = replaced(replaced(kPair, "chunks 2\n", "chunks 2\nin-place yes\n"),
                                      "recvReduceCopySend i0 o0", "recvReduceCopySend i0 i0");
  CHECK(problem_of(reduce) == "");
  CHECK(problem_of(replaced(reduce, "in-place yes", "in-place no")) ==
        "f:8: it writes the input, and the schedule is not in place");
}

TEST_CASE("custom: a file may leave open which collective it is") {
  const CustomProof proof = prove_custom(read(replaced(kPair, "AllReduce", "any")));
  CHECK(proof.proved == std::vector<Collective>{Collective::all_reduce});
  const CustomProof none =
      prove_custom(read(replaced(replaced(kPair, "AllReduce", "any"), "recv o1", "recv o0")));
  CHECK(none.proved.empty());
  CHECK(none.problem.starts_with("it is no AllReduce: rank 0 output ["));
}

TEST_CASE("custom: what the checker says of wrong schedules") {
  CHECK(problem_of(replaced(kPair, "recvReduceCopySend i0 o0", "recvReduceCopySend i1 o0")) ==
        "rank 0 output [0,4): has input offset 12 of rank 0 instead of 0");
  CHECK(problem_of(replaced(kPair, "  recv o1\n", "")) ==
        "3 slices are sent and never received, on connection 1 first");
  CHECK(problem_of(replaced(kPair, "  send i1\n", "")).starts_with("it never ends: lane "));
  CHECK(
      problem_of("schedule n\ncollective Broadcast\nranks 2\nchunks 1\nblock 0.0\n copy i0 o0\n") ==
      "rank 1 output [0,12): never written");
}

TEST_CASE("custom: errors of the text form name file and line") {
  CHECK(problem_of("") == "f: 'schedule' is missing");
  CHECK(problem_of("ranks 2\n") == "f:1: a schedule begins with 'schedule NAME'");
  CHECK(problem_of("schedule a\nranks 2\n") == "f: 'collective' is missing");
  CHECK(problem_of(replaced(kPair, "chunks 2", "chunks two")) == "f:4: 'two' is no number");
  CHECK(problem_of(replaced(kPair, "chunks 2", "chunks 2 3")) ==
        "f:4: expected one value after 'chunks'");
  CHECK(problem_of(replaced(kPair, "chunks 2", "ranks 2")) == "f:4: 'ranks' is there twice");
  CHECK(
      problem_of(replaced(kPair, "chunks 2", "chnks 2")).starts_with("f:4: unknown word 'chnks'"));
  CHECK(problem_of(replaced(kPair, "AllReduce", "AllReduse"))
            .starts_with("f:2: unknown collective 'AllReduse'; did you mean 'AllReduce'?"));
  CHECK(problem_of(replaced(kPair, "block 0.0", "block 0")) == "f:5: expected 'block RANK.NUMBER'");
  CHECK(problem_of(replaced(kPair, "send 1 recv 1", "send 1 recv")) ==
        "f:5: expected a number after 'recv'");
  CHECK(problem_of(replaced(kPair, "send 1 recv 1", "sand 1")) ==
        "f:5: unknown word 'sand'; expected send, recv or channel");
  CHECK(problem_of(replaced(kPair, "  send i1", "  sent i1"))
            .starts_with("f:6: unknown primitive 'sent'; did you mean 'send'?"));
  CHECK(problem_of(replaced(kPair, "send i1", "send b1")) ==
        "f:6: 'b1' is no place; expected a buffer and a chunk: i0, o0 or s0");
  CHECK(problem_of(replaced(kPair, "i0 o0", "i0")) ==
        "f:7: 'recvReduceCopySend' needs a source and a target");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv")) == "f:8: 'recv' needs one place");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 x")) ==
        "f:8: 'x' is no count; expected x2 or the like");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 after")) ==
        "f:8: expected steps after 'after'");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 after 1")) ==
        "f:8: '1' is no step; expected BLOCK.STEP");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 soon")) == "f:8: unexpected 'soon'");
  CHECK(problem_of(replaced(kPair, "chunks 2", "in-place maybe")) ==
        "f:4: 'in-place' is yes or no");
}

TEST_CASE("custom: errors of structure name file and line") {
  CHECK(problem_of(replaced(kPair, "ranks 2", "ranks 0")) == "f: 0 ranks; expected 1 to 4096");
  CHECK(problem_of(replaced(kPair, "chunks 2", "chunks 0")) ==
        "f: a buffer of 0 chunks; expected 1 to 65536");
  CHECK(problem_of(replaced(kPair, "chunks 2", "chunks 2\nroot 2")) ==
        "f: root 2 is none of 2 ranks");
  CHECK(problem_of(replaced(replaced(kPair, "AllReduce", "AllGather"), "chunks 2", "chunks 3")) ==
        "f: 3 chunks do not divide among 2 ranks");
  CHECK(problem_of(replaced(replaced(kPair, "AllReduce", "SendRecv"), "ranks 2",
                            "ranks 2\nin-place yes")) == "f: SendRecv cannot be in place");
  CHECK(problem_of(replaced(kPair, "send i1", "send i2")) ==
        "f:6: chunk 2 of the input, which has 2");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv s0")) ==
        "f:8: chunk 0 of the scratch, which has 0");
  CHECK(problem_of(replaced(kPair, "send i1", "send i1 x0")) == "f:6: a step of no chunks");
  CHECK(problem_of(replaced(kPair, "block 1.0", "block 2.0")) ==
        "f:9: block 2.0 is of no rank, or its number is above 65535");
  CHECK(problem_of(replaced(kPair, "block 1.0 send 0", "block 1.0 send 1")) ==
        "f:9: block 1.0 has a peer that is no other rank");
  CHECK(problem_of(replaced(kPair, "block 1.0 send 0 recv 0", "block 0.0 send 1 recv 1")) ==
        "f:9: block 0.0 is there twice");
  CHECK(problem_of(replaced(kPair, "block 1.0 send 0 recv 0", "block 0.1 send 1 recv 1")) ==
        "f:9: block 0.1 sends to rank 1 on channel 0, as block 0.0 does");
  CHECK(problem_of(replaced(kPair, "send 1 recv 1", "recv 1")) ==
        "f:6: it sends, and the block has no peer to send to");
  CHECK(problem_of(replaced(kPair, "send 1 recv 1", "send 1 recv 1 channel 3")) ==
        "f:9: block 1.0 receives from rank 0 on channel 0, which has no block that sends it");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 after 4.0")) ==
        "f:8: it waits for step 4.0 of its rank, which is not there");
  CHECK(problem_of(replaced(kPair, "recv o1", "recv o1 after 0.0")) ==
        "f:8: it waits for step 0.0 of its own block, whose steps are in order");
}

TEST_CASE("custom: errors of MSCCL files name file and line") {
  const std::string text = corpus("scratch.xml");
  CHECK(problem_of("<algo").starts_with("f:1: not XML: "));
  CHECK(problem_of("<other/>") == "f: no <algo> in the file");
  CHECK(problem_of(replaced(text, "ngpus=\"2\"", "")) ==
        "f:1: <algo>: attribute 'ngpus' is missing");
  CHECK(problem_of(replaced(text, "ngpus=\"2\"", "ngpus=\"2x\"")) ==
        "f:1: <algo>: 'ngpus' is '2x'; expected a whole number from 0 on");
  CHECK(problem_of(replaced(text, "allreduce", "allredox"))
            .starts_with("f:1: <algo>: unknown collective 'allredox'; expected allreduce, "));
  CHECK(problem_of(replaced(text, "proto=\"LL\"", "proto=\"L\""))
            .starts_with("f:1: <algo>: unknown protocol 'L'"));
  CHECK(problem_of(replaced(text, "type=\"rrc\"", "type=\"rrx\"")) ==
        "f:16: <step>: unknown type 'rrx'; expected s, r, rcs, rrs, rrc, rrcs, re, cpy or nop");
  CHECK(problem_of(replaced(text, "s=\"1\" type=\"rrc\"", "s=\"3\" type=\"rrc\"")) ==
        "f:16: <step>: step 3; expected 1, steps are in order");
  CHECK(problem_of(replaced(text, "srcbuf=\"s\"", "srcbuf=\"q\"")) ==
        "f:10: <step>: 'srcbuf' is 'q'; expected i, o or s");
  CHECK(problem_of(replaced(text, "i_chunks=\"1\"", "i_chunks=\"4\"")) ==
        "f:2: <gpu>: 'i_chunks' is 4; expected 1");
}

}  // namespace
}  // namespace railyard::algorithms
