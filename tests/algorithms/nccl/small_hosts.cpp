#include "tests/algorithms/nccl/small_hosts.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace railyard::tests {

namespace nccl = algorithms::nccl;

std::string gpu_bus(std::int32_t dev) { return fmt::format("0000:{:02x}:00.0", 0x10 + dev); }

sim::HardwareNvlink nvlink_to_gpu(std::int32_t dev, std::uint32_t count) {
  return {gpu_bus(dev), count, sim::kPciClassGpu};
}

sim::HardwareNvlink nvlink_to_switch(std::uint32_t count) {
  return {"fffffff:ffff:ff", count, sim::kPciClassNvswitch};
}

namespace {

sim::HardwarePci device(const std::string& bus_id, std::uint32_t device_class, const char* speed) {
  sim::HardwarePci pci;
  pci.bus_id = bus_id;
  pci.device_class = device_class;
  pci.link_speed = speed;
  pci.link_width = 16;
  return pci;
}

}  // namespace

sim::HardwarePci gpu(std::int32_t dev, std::int32_t sm, std::vector<sim::HardwareNvlink> nvlinks,
                     const char* speed) {
  sim::HardwarePci pci = device(gpu_bus(dev), 0x030200, speed);
  sim::HardwareGpu made;
  made.dev = dev;
  made.sm = sm;
  made.gdr = true;
  made.nvlinks = std::move(nvlinks);
  pci.gpu = std::move(made);
  return pci;
}

sim::HardwarePci nic(std::int32_t dev, std::int32_t gbit, const char* speed) {
  sim::HardwarePci pci = device(fmt::format("0000:{:02x}:00.0", 0x80 + dev), 0x020700, speed);
  sim::HardwareNet net;
  net.name = fmt::format("mlx5_{}", dev);
  net.dev = dev;
  net.speed = gbit * 1000;
  net.port = 1;
  net.guid = 0xa0 + static_cast<std::uint64_t>(dev);
  net.gdr = true;
  pci.nics.push_back({{net}});
  return pci;
}

sim::HardwarePci pci_switch(const std::string& bus_id, std::vector<sim::HardwarePci> children,
                            const char* speed) {
  sim::HardwarePci pci = device(bus_id, sim::kPciClassSwitch, speed);
  pci.children = std::move(children);
  return pci;
}

sim::HardwareCpu intel(std::int32_t numa, std::vector<sim::HardwarePci> children,
                       std::int32_t model) {
  sim::HardwareCpu cpu;
  cpu.numa_id = numa;
  cpu.arch = "x86_64";
  cpu.vendor = "GenuineIntel";
  cpu.family = 6;
  cpu.model = model;
  cpu.pci = std::move(children);
  return cpu;
}

sim::HardwareCpu amd(std::int32_t numa, std::vector<sim::HardwarePci> children) {
  sim::HardwareCpu cpu = intel(numa, std::move(children));
  cpu.vendor = "AuthenticAMD";
  cpu.family = 23;
  return cpu;
}

nccl::NodeRequest one_host(const sim::Hardware& hardware, std::int32_t gpus,
                           std::int32_t comm_ranks) {
  nccl::NodeRequest request;
  request.inputs.hosts = {&hardware};
  for (std::int32_t dev = 0; dev < gpus; ++dev) request.inputs.ranks.push_back({dev, 0, dev});
  request.comm_ranks = comm_ranks;
  return request;
}

nccl::Environment variables(const std::map<std::string, std::string>& values) {
  auto env = nccl::Environment::parse(values);
  REQUIRE_MESSAGE(env.ok(), env.error().text());
  return std::move(env).value();
}

nccl::NodeTopology node_of(const nccl::NodeRequest& request,
                           const std::map<std::string, std::string>& values,
                           const nccl::Capabilities& capabilities) {
  auto node = nccl::NodeTopology::build(request, variables(values), capabilities);
  REQUIRE_MESSAGE(node.ok(), node.error().text());
  return std::move(node).value();
}

}  // namespace railyard::tests
