#include "scenarios/kv_links.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenarios/gpu_path.h"
#include "scenarios/where.h"

namespace railyard::scenarios {
namespace {

using models::KvBackend;

class Builder {
 public:
  Builder(RunContext& context, const KvSpec& spec, models::KvTransfers& transfers)
      : context_(&context), spec_(&spec), transfers_(&transfers) {}

  Result<void> start() {
    RAILYARD_ASSIGN(places_,
                    algorithms::find_places(context_->bound.topology, context_->bound.world));
    RAILYARD_ASSIGN(const auto machine, topologies::cluster_machine(context_->scenario.cluster));
    gpudirect_ = machine.gpudirect;
    for (std::size_t l = 0; l < context_->bound.topology.links.size(); ++l) {
      const sim::Link& link = context_->bound.topology.links[l];
      if (link.link_class == sim::LinkClass::nic) port_.emplace(link.from, sim::ResourceId(l));
    }
    const KvTransferSpec& transfer = spec_->transfer;
    if (transfer.backend != KvBackend::storage) return {};
    sim::Network& network = context_->simulation.network();
    const bool same = transfer.storage_read_bandwidth.raw() == 0;
    write_ = network.add_resource(transfer.storage_bandwidth);
    read_ =
        network.add_resource(same ? transfer.storage_bandwidth : transfer.storage_read_bandwidth);
    return {};
  }

  Result<models::KvLink> link(std::uint32_t from, std::uint32_t to) {
    RAILYARD_ASSIGN(const KvBackend backend, backend_of(from, to));
    ++out.pairs[backend];
    models::KvLink link;
    link.sender = sender(issues(from, to), backend);
    const std::uint32_t stripes = stripes_of(backend, from, to);
    for (std::uint32_t stripe = 0; stripe < stripes; ++stripe) {
      RAILYARD_ASSIGN(models::KvWay way, way_of(backend, from, to, stripe));
      link.ways.push_back(transfers_->add_way(std::move(way)));
    }
    return link;
  }

  KvLinks out;

 private:
  // A one-sided READ is posted by who wants the data.
  [[nodiscard]] bool reads() const {
    return spec_->transfer.mode == models::TransferMode::pull &&
           spec_->transfer.library == models::KvLibrary::nixl;
  }
  [[nodiscard]] std::uint32_t issues(std::uint32_t from, std::uint32_t to) const {
    return reads() ? to : from;
  }
  [[nodiscard]] bool every_nic() const { return spec_->transfer.nics == KvNics::all; }
  [[nodiscard]] bool has_nic(std::uint32_t rank) const {
    return nic_count(places_, rank, every_nic()) > 0;
  }

  Result<KvBackend> backend_of(std::uint32_t from, std::uint32_t to) const {
    const sim::Group& world = context_->bound.world;
    const bool same_node = world[from].node == world[to].node;
    const bool nvlink = places_.nvlink && places_.place_of[from] == places_.place_of[to];
    const bool nics = has_nic(from) && has_nic(to);
    const auto refuse = [&](std::string_view what) -> Error {
      return sim::bad_input(fmt::format("ranks {} and {} {}", from, to, what));
    };
    switch (spec_->transfer.backend) {
      case KvBackend::automatic:
        if (nvlink) return KvBackend::nvlink;
        return same_node ? KvBackend::pcie : KvBackend::rdma;
      case KvBackend::nvlink:
        if (!nvlink) return refuse("are not in one NVLink domain");
        break;
      case KvBackend::pcie:
        if (!same_node) return refuse("are not in one node");
        break;
      case KvBackend::rdma:
      case KvBackend::tcp:
        if (!nics) return refuse("have no NICs");
        break;
      case KvBackend::storage: break;
    }
    return spec_->transfer.backend;
  }

  std::uint32_t sender(std::uint32_t rank, KvBackend backend) {
    const auto [place, made] = senders_.try_emplace({rank, backend}, 0);
    if (made)
      place->second = transfers_->add_sender(
          transfer_costs(spec_->transfer, backend, context_->bound.parameters.network));
    return place->second;
  }

  [[nodiscard]] std::uint32_t stripes_of(KvBackend backend, std::uint32_t from,
                                         std::uint32_t to) const {
    if (backend != KvBackend::rdma && backend != KvBackend::tcp) return 1;
    const std::size_t most =
        std::max(nic_count(places_, from, every_nic()), nic_count(places_, to, every_nic()));
    return static_cast<std::uint32_t>(std::max<std::size_t>(most, 1));
  }

  Result<models::KvWay> way_of(KvBackend backend, std::uint32_t from, std::uint32_t to,
                               std::uint32_t stripe) {
    if (backend == KvBackend::storage) return storage_way(from, to);
    const bool nvlink = places_.nvlink && places_.place_of[from] == places_.place_of[to];
    PathChoice choice;
    choice.network = backend == KvBackend::rdma || backend == KvBackend::tcp;
    choice.every_nic = every_nic();
    choice.stripe = stripe;
    if (backend == KvBackend::tcp || (backend == KvBackend::rdma && !gpudirect_) ||
        (backend == KvBackend::pcie && nvlink))
      choice.kind = PathKind::hosts;
    RAILYARD_ASSIGN(GpuPath path, gpu_path(context_->bound, places_, from, to, choice));
    models::KvLeg leg{std::move(path.uses), path.latency, {}, {}, {}};
    if (backend == KvBackend::tcp) {
      const sim::NetworkParameters& network = context_->bound.parameters.network;
      leg.cap = network.socket_rate * spec_->transfer.sockets;
      leg.latency += network.socket_latency;
    } else {
      if (reads()) leg.latency *= 2;
      if (backend == KvBackend::rdma) add_engine(reads() ? path.nic_in : path.nic_out, leg);
    }
    return models::KvWay{std::move(leg)};
  }

  Result<models::KvWay> storage_way(std::uint32_t from, std::uint32_t to) const {
    models::KvWay way;
    for (const bool writing : {true, false}) {
      RAILYARD_ASSIGN(GpuPath path, host_path(context_->bound, writing ? from : to, writing));
      path.uses.push_back({writing ? write_ : read_, 1});
      way.push_back(
          {std::move(path.uses), path.latency + spec_->transfer.storage_latency, {}, {}, {}});
    }
    return way;
  }

  // The work-request engine of a NIC; one for all ways that it issues for.
  void add_engine(sim::DeviceId nic, models::KvLeg& leg) {
    const auto port = port_.find(nic);
    if (port == port_.end()) return;
    sim::Network& network = context_->simulation.network();
    leg.nic_rate = network.capacity(port->second);
    const auto [place, made] = engines_.try_emplace(nic);
    if (made) place->second = models::add_request_engine(network, leg.nic_rate);
    leg.engine = place->second;
    out.nics = engines_.size();
  }

  RunContext* context_;
  const KvSpec* spec_;
  models::KvTransfers* transfers_;
  algorithms::Places places_;
  bool gpudirect_ = true;
  std::map<sim::DeviceId, sim::ResourceId> port_;  // NIC to fabric
  std::map<sim::DeviceId, sim::ResourceId> engines_;
  std::map<std::pair<std::uint32_t, KvBackend>, std::uint32_t> senders_;
  sim::ResourceId write_{};
  sim::ResourceId read_{};
};

Result<void> check_ranks(const RunContext& context, const KvPoolSpec& pool, const char* name) {
  const std::size_t ranks = context.bound.world.size();
  if (pool.end_rank() <= ranks) return {};
  return where(context.scenario, fmt::format("kv.{}", name))
      .error(
          fmt::format("its last rank is {}, but the job has {} ranks", pool.end_rank() - 1, ranks));
}

}  // namespace

Result<KvLinks> kv_links(RunContext& context, const KvSpec& spec, models::KvTransfers& transfers) {
  RAILYARD_TRY(check_ranks(context, spec.prefill, "prefill"));
  RAILYARD_TRY(check_ranks(context, spec.decode, "decode"));
  Builder builder(context, spec, transfers);
  RAILYARD_TRY(builder.start());
  const std::vector<models::KvPiece> pieces =
      models::kv_pieces(spec.model, spec.prefill.tensor_parallel, spec.decode.tensor_parallel,
                        models::element_size(spec.dtype));
  for (std::uint32_t p = 0; p < spec.prefill.instances; ++p)
    for (std::uint32_t d = 0; d < spec.decode.instances; ++d) {
      std::vector<models::KvLink> links;
      for (const models::KvPiece& piece : pieces) {
        auto link =
            builder.link(spec.prefill.first_rank + p * spec.prefill.tensor_parallel + piece.from,
                         spec.decode.first_rank + d * spec.decode.tensor_parallel + piece.to);
        if (!link.ok()) return at_path(context.scenario, "kv.transfer.backend", link.error());
        links.push_back(std::move(link).value());
      }
      builder.out.links.push_back(std::move(links));
    }
  return std::move(builder.out);
}

}  // namespace railyard::scenarios
