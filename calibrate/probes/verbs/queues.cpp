#include "calibrate/probes/verbs/queues.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kReceivesPerRequest = 2;  // so that a sender seldom finds none posted
constexpr std::uint32_t kPacketNumber = 0;

// What the peer must know to connect.
struct Address {
  std::uint32_t queue = 0;
  unsigned lid = 0, mtu = 0;
  ibv_gid gid{};
};

std::string to_text(const Address& address) {
  std::ostringstream text;
  text << address.queue << ' ' << address.lid << ' ' << address.mtu;
  for (const std::uint8_t byte : address.gid.raw) text << ' ' << int{byte};
  return text.str();
}

Address address_of(const std::string& text) {
  std::istringstream stream(text);
  Address address;
  stream >> address.queue >> address.lid >> address.mtu;
  for (std::uint8_t& byte : address.gid.raw) {
    int value = 0;
    stream >> value;
    byte = static_cast<std::uint8_t>(value);
  }
  if (!stream) throw ProbeError("the peer sent no address of a queue pair");
  return address;
}

void modify(ibv_qp* queue, ibv_qp_attr& attributes, int mask, const char* state) {
  const int status = ibv_modify_qp(queue, &attributes, mask);
  if (status == 0) return;
  errno = status;
  fail_with_errno(std::string("a queue pair does not become ") + state);
}

void initialise(ibv_qp* queue, const Adapter& adapter) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.pkey_index = 0;
  attributes.port_num = adapter.port_number();
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  modify(queue, attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
         "initialised");
}

void make_ready(ibv_qp* queue, const Adapter& adapter, const Address& peer) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu =
      static_cast<ibv_mtu>(std::min(peer.mtu, static_cast<unsigned>(adapter.port().active_mtu)));
  attributes.dest_qp_num = peer.queue;
  attributes.rq_psn = kPacketNumber;
  attributes.max_dest_rd_atomic = adapter.reads_in_flight();
  attributes.min_rnr_timer = 12;  // 0.64 ms
  attributes.ah_attr.port_num = adapter.port_number();
  attributes.ah_attr.dlid = static_cast<std::uint16_t>(peer.lid);
  if (adapter.ethernet()) {
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = peer.gid;
    attributes.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(adapter.gid_index());
    attributes.ah_attr.grh.hop_limit = 64;
  }
  modify(queue, attributes,
         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
         "ready to receive");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.sq_psn = kPacketNumber;
  attributes.timeout = 14;  // 67 ms
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;  // without end
  attributes.max_rd_atomic = adapter.reads_in_flight();
  modify(queue, attributes,
         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
             IBV_QP_MAX_QP_RD_ATOMIC,
         "ready to send");
}

ibv_wr_opcode opcode_of(Verb verb) {
  switch (verb) {
    case Verb::write: return IBV_WR_RDMA_WRITE;
    case Verb::read: return IBV_WR_RDMA_READ;
    case Verb::send: break;
  }
  return IBV_WR_SEND;
}

std::string of_peer(const Store& store) { return std::to_string(1 - store.rank()); }

}  // namespace

Queues::Queues(const Adapter& adapter, Store& store, const std::string& name, int count, int depth)
    : depth_(depth) {
  completions_.reset(
      ibv_create_cq(adapter.context(), count * (depth + receives()), nullptr, nullptr, 0));
  if (!completions_) fail_with_errno("ibv_create_cq");
  ibv_qp_init_attr attributes{};
  attributes.send_cq = completions_.get();
  attributes.recv_cq = completions_.get();
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = static_cast<std::uint32_t>(depth);
  attributes.cap.max_recv_wr = static_cast<std::uint32_t>(receives());
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  const std::string mine = name + "/" + std::to_string(store.rank()) + "/";
  for (int i = 0; i < count; ++i) {
    queues_.emplace_back(ibv_create_qp(adapter.domain(), &attributes));
    if (!queues_.back()) fail_with_errno("ibv_create_qp");
    initialise(queues_.back().get(), adapter);
    store.set(mine + std::to_string(i),
              to_text({queues_.back()->qp_num, adapter.port().lid,
                       static_cast<unsigned>(adapter.port().active_mtu), adapter.gid()}));
  }
  for (int i = 0; i < count; ++i)
    make_ready(queues_[static_cast<std::size_t>(i)].get(), adapter,
               address_of(store.get(name + "/" + of_peer(store) + "/" + std::to_string(i))));
  store.barrier(name + "/connected");
}

void Queues::post(int queue, const Work& work) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uint64_t>(work.local.address());
  piece.length = work.bytes;
  piece.lkey = work.local.local_key();
  ibv_send_wr request{};
  request.wr_id = static_cast<std::uint64_t>(queue);
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode_of(work.verb);
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = work.remote.address;
  request.wr.rdma.rkey = work.remote.key;
  ibv_send_wr* refused = nullptr;
  const int status =
      ibv_post_send(queues_[static_cast<std::size_t>(queue)].get(), &request, &refused);
  if (status == 0) return;
  errno = status;
  fail_with_errno("ibv_post_send");
}

int Queues::receives() const { return depth_ * kReceivesPerRequest; }

void Queues::post_receive(int queue, const Region& local) {
  ibv_sge piece{};
  piece.addr = reinterpret_cast<std::uint64_t>(local.address());
  piece.length = static_cast<std::uint32_t>(local.bytes());
  piece.lkey = local.local_key();
  ibv_recv_wr request{};
  request.wr_id = static_cast<std::uint64_t>(queue);
  request.sg_list = &piece;
  request.num_sge = 1;
  ibv_recv_wr* refused = nullptr;
  const int status =
      ibv_post_recv(queues_[static_cast<std::size_t>(queue)].get(), &request, &refused);
  if (status == 0) return;
  errno = status;
  fail_with_errno("ibv_post_recv");
}

int Queues::wait_for_one() {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(20);
  ibv_wc done{};
  for (unsigned polls = 1;; ++polls) {
    const int found = ibv_poll_cq(completions_.get(), 1, &done);
    if (found < 0) throw ProbeError("ibv_poll_cq failed");
    if (found > 0) break;
    if (polls % 65536 == 0 && Clock::now() > deadline)
      throw ProbeError("a request did not complete in time");
  }
  if (done.status != IBV_WC_SUCCESS)
    throw ProbeError(std::string("a request failed: ") + ibv_wc_status_str(done.status));
  return static_cast<int>(done.wr_id);
}

RemoteMemory exchange(Store& store, const std::string& name, const Region& region) {
  std::ostringstream mine;
  mine << reinterpret_cast<std::uint64_t>(region.address()) << ' ' << region.remote_key();
  store.set(name + "/memory/" + std::to_string(store.rank()), mine.str());
  std::istringstream text(store.get(name + "/memory/" + of_peer(store)));
  RemoteMemory remote;
  if (!(text >> remote.address >> remote.key)) throw ProbeError("the peer sent no memory");
  return remote;
}

}  // namespace railyard::probe
