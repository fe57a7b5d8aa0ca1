// Slices in parts, signals, scratch and flows in a switch: by hand, through both engines and the
// data-flow checker.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "tests/sim/both_engines.h"
#include "tests/sim/hand_schedules.h"

namespace railyard::sim {
namespace {

using namespace literals;
using by_hand::Costs;
using by_hand::Fluid;
using by_hand::refusal;
using by_hand::run_both;
using by_hand::run_fluid;
using by_hand::simple_costs;
using tests::HandSchedule;
using tests::op;
using P = Primitive;

Op part_op(P primitive, std::int32_t block, MessagePart recv, MessagePart send) {
  Op made = op(primitive, 1, block);
  made.recv_part = recv;
  made.send_part = send;
  return made;
}

Work blocks_of(std::uint32_t blocks, std::int64_t size) {
  Work work;
  work.layout = Layout::per_rank;
  work.blocks = blocks;
  work.size = work.chunk = work.stride = bytes(size);
  return work;
}

// Broadcast of two blocks of 8 bytes in one message; the receiver takes them one by one.
Schedule two_parts(Op first, Op second) {
  HandSchedule hand(tests::call_of(Collective::broadcast, 16), 2);
  hand.work(blocks_of(2, 8));
  const LaneId a = hand.lane(0, {first, second}, LaneRole::pat);
  const LaneId b =
      hand.lane(1, {part_op(P::recv, 0, {.more = true}, {}), part_op(P::recv, 1, {.index = 1}, {})},
                LaneRole::pat);
  hand.connect(a, b);
  return hand.done();
}

TEST_CASE("parts: two operations fill one message and two take it") {
  const Schedule schedule = two_parts(part_op(P::copy_send, 0, {}, {.more = true}),
                                      part_op(P::copy_send, 1, {}, {.index = 1}));
  CHECK(refusal(schedule) == "");
  // Sender: 10 + 8, 10 + 8 ns; the message arrives 100 ns later; the receiver takes 10 + 10 ns.
  const Fluid fluid = run_both(schedule, simple_costs(schedule));
  CHECK(fluid.end == 156_ns);
  CHECK(fluid.messages == 1);
  CHECK(fluid.carried.front() == bytes(16));
  CHECK(totals(schedule).messages == 1);
  CHECK(to_text(expand(schedule).lanes[0].ops[1]) ==
        "loop 0 op 1.0 slice 0 copySend block 1 in [8,16) out [8,16) to c0#0.1");
  CHECK(to_text(expand(schedule).lanes[1].ops[0]) ==
        "loop 0 op 0.0 slice 0 recv block 0 out [0,8) from c0#0~");
}

// A staged connection sends the message once, as long as its last part reaches: 24 bytes.
TEST_CASE("parts: what nobody writes is sent all the same") {
  HandSchedule hand(tests::call_of(Collective::broadcast, 16), 2);
  hand.work(blocks_of(2, 8));
  const LaneId a = hand.lane(
      0, {part_op(P::copy_send, 0, {}, {.more = true}), part_op(P::copy_send, 1, {}, {.index = 2})},
      LaneRole::pat);
  const LaneId b =
      hand.lane(1, {part_op(P::recv, 0, {.more = true}, {}), part_op(P::recv, 1, {.index = 2}, {})},
                LaneRole::pat);
  hand.connect(a, b);
  const Schedule schedule = hand.done();
  CHECK(refusal(schedule) == "");
  Costs costs = simple_costs(schedule);
  costs.connections[0].staged = true;
  costs.connections[0].cap = 2_GBps;  // 4 ns a part into the FIFO
  costs.connections[0].send_service = 1_ns;
  // 14 + 14 ns, served at 29, 24 ns on the wire, 100 ns, then 10 + 10 ns.
  const Fluid fluid = run_both(schedule, costs);
  CHECK(fluid.end == 173_ns);
  CHECK(fluid.carried.front() == bytes(24));
}

// One message of 16 bytes over a staged connection without latencies: 10 ns of overhead, the
// sender's proxy, 16 ns on the wire, 100 ns, the receiver's 10 ns.
TEST_CASE("send service: bytes that the proxy looks at, and handshakes by size") {
  HandSchedule hand(tests::call_of(Collective::broadcast, 16), 2);
  hand.work(tests::linear_work(16, 16));
  hand.connect(hand.lane(0, {op(P::send)}, LaneRole::ring),
               hand.lane(1, {op(P::recv)}, LaneRole::ring));
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  ConnectionCost& cost = costs.connections[0];
  cost.staged = true;
  CHECK(run_both(schedule, costs).end == 136_ns);
  cost.send_service = 5_ns;
  CHECK(run_both(schedule, costs).end == 141_ns);
  cost.send_byte_rate = 2_GBps;  // 16 bytes in 8 ns
  CHECK(run_both(schedule, costs).end == 149_ns);
  cost.rendezvous = 50_ns;
  CHECK(run_both(schedule, costs).end == 149_ns);  // to no size
  cost.rendezvous_from = 8_B;
  cost.rendezvous_to = 15_B;
  CHECK(run_both(schedule, costs).end == 149_ns);
  cost.rendezvous_to = 16_B;
  CHECK(run_both(schedule, costs).end == 199_ns);
  cost.wire_numerator = 2;  // 32 bytes on the wire: past the handshake's sizes, 16 and 32 ns
  CHECK(run_fluid(schedule, costs).end == 173_ns);
  CHECK(longest_path(schedule, costs.connections, costs.lanes, costs.links, {}).end == 173_ns);
  cost.rendezvous_to = {};
  CHECK(send_service_time(cost, 0_B) == 5_ns);
}

TEST_CASE("receive service: bytes that the proxy moves") {
  HandSchedule hand(tests::call_of(Collective::broadcast, 16), 2);
  hand.work(tests::linear_work(16, 16));
  hand.connect(hand.lane(0, {op(P::send)}, LaneRole::ring),
               hand.lane(1, {op(P::recv)}, LaneRole::ring));
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  costs.connections[0].staged = true;
  costs.connections[0].recv_byte_rate = 2_GBps;  // 16 bytes in 8 ns
  CHECK(run_both(schedule, costs).end == 144_ns);
  costs.connections[0].recv_service = 3_ns;
  CHECK(run_both(schedule, costs).end == 147_ns);
  costs.connections[0].recv_busy = 50_ns;  // nobody waits for it
  CHECK(run_both(schedule, costs).end == 147_ns);
}

// A and B, 16 bytes each, from rank 0 by rank 1 to rank 2. They come to rank 1 at 131 and 147 ns.
//
// Proxies take 5 ns a send and 7 a receive. Rank 1 sees A at 138, has it ready to be sent at 148,
// and its proxy is with B until 154: A leaves at 159, B (ready at 164) at 175 behind it; 100 ns
// later each is received in 7 and used in 10: 308. With a proxy for each direction A would leave at
// 153.
TEST_CASE("a rank's proxy is one thread for what it sends and what it receives") {
  const Schedule schedule = tests::broadcast_chain(3, 32, 16).done();
  Costs costs = simple_costs(schedule);
  for (ConnectionCost& cost : costs.connections) {
    cost.staged = true;
    cost.send_service = 5_ns;
    cost.recv_service = 7_ns;
  }
  CHECK(run_fluid(schedule, costs).end == 308_ns);
  const auto apart = [&] {
    return longest_path(schedule, costs.connections, costs.lanes, costs.links, {}).end;
  };
  CHECK(apart() == 302_ns);
  // Rank 0's proxy sends for rank 1, and has nothing else to do by then.
  costs.connections[1].relay_rank = 0;
  CHECK(run_fluid(schedule, costs).end == 302_ns);
  costs.connections[1].relay_rank = ConnectionCost::kNoRank;

  // Messages that are seen at once, and keep the proxy for 20 ns: A is ready at 141 and leaves at
  // 156, B is ready at 157 and leaves at 181.
  for (ConnectionCost& cost : costs.connections) {
    cost.recv_service = {};
    cost.recv_busy = 20_ns;
  }
  CHECK(run_fluid(schedule, costs).end == 307_ns);
  CHECK(apart() == 288_ns);
}

TEST_CASE("start: every rank waits for it once") {
  HandSchedule hand(tests::call_of(Collective::broadcast, 16), 2);
  hand.work(tests::linear_work(16, 16));
  hand.connect(hand.lane(0, {op(P::send)}, LaneRole::ring),
               hand.lane(1, {op(P::recv)}, LaneRole::ring));
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  CHECK(run_fluid(schedule, costs).end == 136_ns);
  costs.start = 300_ns;
  CHECK(run_fluid(schedule, costs).end == 436_ns);
  const std::vector<Duration> from{300_ns, 300_ns};  // what the slow engine is told
  CHECK(longest_path(schedule, costs.connections, costs.lanes, costs.links, from).end == 436_ns);
}

TEST_CASE("parts: what the checker says of wrong ones") {
  const Op first = part_op(P::copy_send, 0, {}, {.more = true});
  CHECK(refusal(two_parts(first, part_op(P::copy_send, 1, {}, {.index = 2}))) ==
        "connection 0: part 1 of a slice is received and was never sent (loop 0 op 1.0 slice 0 "
        "recv block 1 out [8,16) from c0#0.1)");
  // Written twice: the sum of both.
  CHECK(refusal(two_parts(first, part_op(P::copy_send, 1, {}, {}))) ==
        "connection 0: part 1 of a slice is received and was never sent (loop 0 op 1.0 slice 0 "
        "recv block 1 out [8,16) from c0#0.1)");
  CHECK(refusal(two_parts(first, part_op(P::copy_send, 1, {}, {.index = 1, .more = true}))) ==
        "it never ends: lane 1 (rank 1, channel 0, pat) at operation 0 (loop 0 op 0.0 slice 0 "
        "recv) waits for slice 0 from lane 0 on connection 0; lane 0 (rank 0, channel 0, pat) has "
        "ended");
  CHECK(refusal(two_parts(first, part_op(P::copy_send, 1, {}, {.index = 1, .ahead = 1}))) ==
        "schedule: lane 0 (rank 0), op 1 (copySend): messages are sent and consumed in order");
}

// Rank 0 looks at the second message before it consumes the first, and works in its scratch:
// scratch = in_0 + second message's; out = scratch + first message's.
Schedule look_ahead(Buffer where) {
  HandSchedule hand(tests::call_of(Collective::reduce, 8), 3);
  hand.work(blocks_of(1, 8));
  hand.raw().scratch = bytes(8);
  Op second = part_op(P::recv_reduce_copy, 0, {.ahead = 1, .more = true}, {});
  second.target = where;
  Op first = part_op(P::recv_reduce_copy, 0, {}, {});
  first.source = where;
  Op drop = part_op(P::recv_reduce_copy, 0, {}, {});  // consumes the second message
  drop.source = Buffer::none;
  drop.target = Buffer::scratch;
  const LaneId root = hand.lane(0, {second, first, drop}, LaneRole::pat);
  // Rank 1 passes on its own block first, then rank 2's.
  Op pass = op(P::recv_reduce_send);
  pass.source = Buffer::none;
  const LaneId middle = hand.lane(1, {op(P::send), pass}, LaneRole::pat);
  const LaneId last = hand.lane(2, {op(P::send)}, LaneRole::pat);
  hand.connect(middle, root);
  hand.connect(last, middle);
  return hand.done();
}

TEST_CASE("parts: a look at a later message, and sums in scratch or output") {
  for (const Buffer where : {Buffer::scratch, Buffer::output}) {
    const Schedule schedule = look_ahead(where);
    CHECK(refusal(schedule) == "");
    // Rank 2: 18, arrives 118. Rank 1 passes it on at 136, arrives 236. Rank 0: 246, 256, 266.
    CHECK(run_both(schedule, simple_costs(schedule)).end == 266_ns);
  }
  Schedule unwritten = look_ahead(Buffer::scratch);
  unwritten.programs[0][0].target = Buffer::output;
  CHECK(refusal(unwritten) == "rank 0 reads scratch [0,8) before it is written");
  Schedule outside = look_ahead(Buffer::scratch);
  outside.scratch = bytes(7);
  CHECK(refusal(outside) ==
        "rank 0 writes scratch [0,8) outside its 7 bytes (loop 0 op 0.0 slice 0 recvReduceCopy "
        "block 0 in [0,8) scratch [0,8) from c0#1~)");
  Schedule target = look_ahead(Buffer::input);
  CHECK(refusal(target) ==
        "schedule: lane 0 (rank 0), op 0 (recvReduceCopy): its target is no buffer that may be "
        "written");
}

// Lane 0 copies the input to scratch; lane 1 adds it into the output that lane 2 copied.
Schedule with_signals(bool signals) {
  HandSchedule hand(tests::call_of(Collective::all_reduce, 8), 1);
  hand.work(blocks_of(1, 8));
  hand.raw().scratch = bytes(8);
  Op first = op(P::copy);
  first.target = Buffer::scratch;
  Op second = op(P::copy);
  second.source = Buffer::scratch;
  if (signals) first.signal_slots = second.wait_slots = 1;
  const LaneId a = hand.lane(0, {first}, LaneRole::custom);
  const LaneId b = hand.lane(0, {second}, LaneRole::custom);
  if (signals) {
    hand.connect(a, b);
    hand.raw().connections.back().signal = true;
  }
  return hand.done();
}

TEST_CASE("signals: lanes of a rank wait for each other") {
  const Schedule schedule = with_signals(true);
  CHECK(refusal(schedule) == "");
  Costs costs = simple_costs(schedule);
  costs.links = {1_GBps};
  costs.lanes[0].local_rate = 1_GBps;
  const Fluid fluid = run_both(schedule, costs);
  CHECK(fluid.end == 28_ns);  // 10 + 8, then 10
  CHECK(fluid.messages == 0);
  CHECK(to_text(expand(schedule)) ==
        "connection 0: lane 0 -> lane 1\n"
        "lane 0 rank 0 ch 0 custom: loop 0 op 0.0 slice 0 copy block 0 in [0,8) scratch [0,8) "
        "before c0\n"
        "lane 1 rank 0 ch 0 custom: loop 0 op 0.0 slice 0 copy block 0 reads scratch [0,8) out "
        "[0,8) after c0\n");
  Expansion racing = expand(with_signals(false));
  CHECK(check_dataflow(racing, promise_of(schedule)).error().message ==
        "a race: rank 0 scratch [0,8): operation 0 of lane 0 and operation 0 of lane 1 touch it in "
        "no certain order");
}

TEST_CASE("signals: what is refused") {
  Schedule data = with_signals(true);
  data.connections[0].signal = false;
  CHECK(refusal(data) ==
        "schedule: lane 0 (rank 0), op 0 (copy): signal_slots names a connection that is no "
        "signal");
  Schedule absent = with_signals(true);
  absent.programs[1][0].wait_slots = 0;
  CHECK(refusal(absent) == "1 slices are sent and never received, on connection 0 first");
  Schedule circle = with_signals(true);
  circle.programs[0][0].signal_slots = 0;
  CHECK(refusal(circle) ==
        "it never ends: lane 1 (rank 0, channel 0, custom) at operation 0 (loop 0 op 0.0 slice 0 "
        "copy) waits for signal 0 from lane 0 on connection 0; lane 0 (rank 0, channel 0, custom) "
        "has ended");
}

// Two ranks' slices are summed in a switch and stored to both: one flow, of weight 2 where the
// head's own reading and storing share a link.
TEST_CASE("switch: one flow with weights, before the operation's messages") {
  HandSchedule hand(tests::call_of(Collective::all_reduce, 100), 2);
  hand.work(tests::linear_work(100, 100));
  const LaneId a = hand.lane(0, {op(P::send)}, LaneRole::nvls_scatter);
  const LaneId b = hand.lane(1, {op(P::send)}, LaneRole::nvls_scatter);
  Op sum = op(P::recv_reduce_send);
  sum.source = Buffer::none;
  const LaneId head = hand.lane(0, {sum}, LaneRole::nvls_reduce);
  const LaneId c = hand.lane(0, {op(P::recv)}, LaneRole::nvls_gather);
  const LaneId d = hand.lane(1, {op(P::recv)}, LaneRole::nvls_gather);
  hand.connect(a, head);
  hand.connect(b, head);
  hand.connect(head, c);
  hand.connect(head, d);
  const Schedule schedule = hand.done();
  CHECK(refusal(schedule) == "");
  Costs costs = simple_costs(schedule);
  for (ConnectionCost& cost : costs.connections) cost.route.clear();
  SwitchFlow flow;
  flow.uses = {{LinkId(0), 2}, {LinkId(1), 1}};
  costs.lanes[head.index()].in_switch = std::make_shared<const SwitchFlow>(flow);
  costs.links = {2_GBps, 4_GBps};
  // 10 + 100 latency; 10 + 100 B at 2 / 2 GB/s; 100 latency; 10.
  const Fluid fluid = run_both(schedule, costs);
  CHECK(fluid.end == 330_ns);
  CHECK(fluid.carried == std::vector<Bytes>{bytes(200), bytes(100)});
  flow.cap = Bandwidth::from_raw((1_GBps).raw() / 2);
  costs.lanes[head.index()].in_switch = std::make_shared<const SwitchFlow>(flow);
  CHECK(run_both(schedule, costs).end == 430_ns);
}

Schedule chain_of_three() {
  HandSchedule hand(tests::call_of(Collective::broadcast, 100), 3);
  hand.work(tests::linear_work(100, 100));
  const LaneId a = hand.lane(0, {op(P::send)}, LaneRole::ring);
  const LaneId b = hand.lane(1, {op(P::recv_copy_send)}, LaneRole::ring);
  const LaneId c = hand.lane(2, {op(P::recv)}, LaneRole::ring);
  hand.connect(a, b);
  hand.connect(b, c);
  return hand.done();
}

std::shared_ptr<const SwitchFlow> load_over(std::size_t link, std::uint32_t weight = 1) {
  SwitchFlow flow;
  flow.uses = {{LinkId(link), weight}};
  return std::make_shared<const SwitchFlow>(flow);
}

TEST_CASE("fetch: the receiving operation loads its slice, then moves it on") {
  const Schedule schedule = chain_of_three();
  Costs costs = simple_costs(schedule);
  costs.links.push_back(2_GBps);  // link 2, out of the host's memory
  for (std::size_t l = 1; l < 3; ++l) costs.lanes[l].fetch = load_over(2);
  // Nothing is fetched yet: 10 + 100, 100; 10 + 100, 100; 10.
  CHECK(run_both(schedule, costs).end == 430_ns);
  for (ConnectionCost& cost : costs.connections) cost.fetched = true;
  // Each of the two receivers loads 100 B at 2 GB/s after its overhead.
  const Fluid fluid = run_both(schedule, costs);
  CHECK(fluid.end == 530_ns);
  CHECK(fluid.carried == std::vector<Bytes>{bytes(100), bytes(100), bytes(200)});
  // The load of what stays is its copy, so the local rate does not count a second time; it does
  // where nothing is loaded.
  costs.lanes[2].local_rate = 1_GBps;
  CHECK(run_both(schedule, costs).end == 530_ns);
  costs.connections[1].fetched = false;
  CHECK(run_both(schedule, costs).end == 580_ns);  // 100 in place of 50
}

TEST_CASE("fetch: several inputs are one flow of all their bytes, capped as a whole") {
  HandSchedule hand(tests::call_of(Collective::reduce, 100), 3);
  hand.work(tests::linear_work(100, 100));
  const LaneId a = hand.lane(0, {op(P::send)}, LaneRole::ring);
  const LaneId b = hand.lane(1, {op(P::send)}, LaneRole::ring);
  const LaneId c = hand.lane(2, {op(P::recv_reduce_copy)}, LaneRole::ring);
  hand.connect(a, c);
  hand.connect(b, c);
  const Schedule schedule = hand.done();
  Costs costs = simple_costs(schedule);
  costs.links.push_back(2_GBps);
  costs.lanes[2].fetch = load_over(2);
  costs.connections[0].fetched = true;
  CHECK(run_both(schedule, costs).end == 270_ns);  // 10 + 100 + 100, 10 + 100 B
  costs.connections[1].fetched = true;
  CHECK(run_both(schedule, costs).end == 320_ns);  // 200 B
  SwitchFlow slow = *load_over(2);
  slow.cap = 1_GBps;
  costs.lanes[2].fetch = std::make_shared<const SwitchFlow>(slow);
  CHECK(run_both(schedule, costs).end == 420_ns);
}

TEST_CASE("staged: the flow has a rate of its own, the copy before it another") {
  const Schedule schedule = chain_of_three();
  Costs costs = simple_costs(schedule);
  costs.links.assign(2, 4_GBps);
  for (ConnectionCost& cost : costs.connections) {
    cost.staged = true;
    cost.cap = 2_GBps;
  }
  // 10 + 50 copy, 25 wire, 100; the same; 10.
  CHECK(run_both(schedule, costs).end == 380_ns);
  for (ConnectionCost& cost : costs.connections) cost.wire_cap = 1_GBps;
  CHECK(run_both(schedule, costs).end == 530_ns);
}

}  // namespace
}  // namespace railyard::sim
