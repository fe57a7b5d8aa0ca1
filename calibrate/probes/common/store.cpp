#include "calibrate/probes/common/store.h"

#include <sys/socket.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <utility>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

constexpr char kGreeting[] = "railyard store 1";

// The first of these environment variables that holds a whole number; -1 when none does.
std::int64_t from_environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    const std::string value(text);
    std::int64_t number = -1;
    const char* end = value.data() + value.size();
    if (std::from_chars(value.data(), end, number).ptr == end && !value.empty()) return number;
  }
  return -1;
}

}  // namespace

void Identity::add_arguments(Args& args) {
  args.number("--rank", "this process's rank; -1: from MPI, Slurm or torchrun", &rank);
  args.number("--world", "the number of processes; -1: likewise", &world);
  args.number("--local-rank", "its number on this host; -1: likewise", &local_rank);
  args.text("--address", "where rank 0 can be reached", &meeting.address);
  args.number("--port", "rank 0's port", &meeting.port);
}

void Identity::complete() {
  if (rank < 0)
    rank =
        from_environment({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK", "SLURM_PROCID"});
  if (world < 0)
    world = from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE", "SLURM_NTASKS"});
  if (local_rank < 0)
    local_rank = from_environment(
        {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK", "SLURM_LOCALID"});
  if (meeting.address.empty()) {
    const char* address = std::getenv("MASTER_ADDR");
    if (address != nullptr) meeting.address = address;
    const std::int64_t port = from_environment({"MASTER_PORT"});
    if (address != nullptr && port > 0) meeting.port = port;
  }
  if (rank < 0 && world < 0) rank = 0, world = 1;
  if (rank < 0 || world < 1 || rank >= world)
    throw UsageError("rank " + std::to_string(rank) + " of " + std::to_string(world) +
                     " makes no sense: give --rank and --world");
  if (local_rank < 0) local_rank = rank;
  if (meeting.address.empty()) {
    if (world > 1) throw UsageError("several processes need --address, the host of rank 0");
    meeting.address = "127.0.0.1";
  }
}

StoreServer::StoreServer(const Endpoint& at)
    : listener_(listen_on(at)),
      port_(local_port(listener_)),
      acceptor_([this] { accept_clients(); }) {}

StoreServer::~StoreServer() {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(5), [this] { return present_ == 0; });
    stopping_ = true;
    shutdown(listener_.descriptor(), SHUT_RDWR);
  }
  changed_.notify_all();
  acceptor_.join();  // from here on nobody adds to clients_ or threads_
  for (const Socket& client : clients_) shutdown(client.descriptor(), SHUT_RDWR);
  for (std::thread& thread : threads_) thread.join();
}

void StoreServer::accept_clients() {
  for (;;) {
    Socket client;
    try {
      client = accept_from(listener_, -1);
    } catch (const ProbeError&) {
      return;  // the listener was shut down
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (stopping_) return;
    clients_.push_back(std::move(client));
    ++present_;
    threads_.emplace_back([this, &socket = clients_.back()] { serve(socket); });
  }
}

void StoreServer::serve(const Socket& client) {
  try {
    std::string verb, key, value;
    client.send_text(kGreeting);
    while (client.receive_text(verb) && client.receive_text(key) && client.receive_text(value))
      client.send_text(answer(verb, key, value));
  } catch (const ProbeError&) {
    // That client is gone; the others notice when they wait in vain for its values.
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  --present_;
  changed_.notify_all();
}

std::string StoreServer::answer(const std::string& verb, const std::string& key,
                                const std::string& value) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (verb == "set") {
    values_.emplace(key, value);
    changed_.notify_all();
    return "";
  }
  if (verb == "add") return std::to_string(++counters_[key]);
  changed_.wait(lock, [&] { return stopping_ || values_.count(key) > 0; });
  return stopping_ ? "" : values_[key];
}

Store::Store(const Identity& who, double timeout_seconds)
    : rank_(who.rank), world_(who.world), socket_(connect_to(who.meeting, timeout_seconds)) {
  socket_.set_timeout(timeout_seconds);
  std::string greeting;
  if (!socket_.receive_text(greeting, sizeof kGreeting) || greeting != kGreeting)
    throw ProbeError("at " + who.meeting.address + " port " + std::to_string(who.meeting.port) +
                     " there is no rank 0 of this program");
}

std::string Store::ask(const std::string& verb, const std::string& key, const std::string& value) {
  socket_.send_text(verb);
  socket_.send_text(key);
  socket_.send_text(value);
  std::string answer;
  if (!socket_.receive_text(answer)) throw ProbeError("rank 0 has gone");
  return answer;
}

void Store::set(const std::string& key, const std::string& value) { ask("set", key, value); }

std::string Store::get(const std::string& key) { return ask("get", key, ""); }

std::int64_t Store::add(const std::string& key) { return std::stoll(ask("add", key, "")); }

void Store::barrier(const std::string& name) {
  if (add("barrier/" + name) == world_) set("barrier/" + name + "/open", "1");
  get("barrier/" + name + "/open");
}

std::vector<std::string> Store::all_gather(const std::string& name, const std::string& mine) {
  set("gather/" + name + "/" + std::to_string(rank_), mine);
  std::vector<std::string> all;
  for (std::int64_t rank = 0; rank < world_; ++rank)
    all.push_back(get("gather/" + name + "/" + std::to_string(rank)));
  return all;
}

}  // namespace railyard::probe
