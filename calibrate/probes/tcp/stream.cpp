#include "calibrate/probes/tcp/stream.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <sstream>
#include <thread>

#include "calibrate/probes/common/error.h"
#include "calibrate/probes/common/threads.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kPiece = 256 * 1024;  // a stop is noticed between pieces

// How much has arrived, and when the last of it did. A window from one arrival to another holds
// just the bytes in between; one cut at any other time would be wrong by up to a packet of 64 KB.
class Arrivals {
 public:
  struct State {
    std::int64_t bytes = 0;
    Clock::time_point last;
  };
  void add(std::size_t bytes) {
    const Clock::time_point now = Clock::now();
    const std::lock_guard<std::mutex> lock(mutex_);
    state_.bytes += static_cast<std::int64_t>(bytes);
    state_.last = std::max(state_.last, now);
  }
  [[nodiscard]] State state() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  State state_;
};

// The sockets of thread `index`: every threads-th one.
std::vector<const Socket*> share_of(const std::vector<Socket>& sockets, std::int64_t index,
                                    std::int64_t threads) {
  std::vector<const Socket*> share;
  for (auto i = static_cast<std::size_t>(index); i < sockets.size();
       i += static_cast<std::size_t>(threads))
    share.push_back(&sockets[i]);
  return share;
}

void fill(const std::vector<const Socket*>& sockets, std::size_t bytes,
          const std::atomic<bool>& stop) {
  const std::vector<char> message(std::min(bytes, kPiece), 'r');
  while (!stop) {
    for (const Socket* socket : sockets)
      for (std::size_t sent = 0; sent < bytes && !stop; sent += kPiece)
        socket->send_all(message.data(), std::min(kPiece, bytes - sent));
  }
  for (const Socket* socket : sockets) socket->finish_sending();
}

void drain(const std::vector<const Socket*>& sockets, Arrivals& arrivals) {
  std::vector<char> buffer(kPiece);
  std::vector<pollfd> waiting;
  for (const Socket* socket : sockets) waiting.push_back({socket->descriptor(), POLLIN, 0});
  std::size_t open = sockets.size();
  while (open > 0) {
    if (sockets.size() > 1) poll(waiting.data(), waiting.size(), -1);
    for (std::size_t i = 0; i < sockets.size(); ++i) {
      if (waiting[i].fd < 0 || (sockets.size() > 1 && waiting[i].revents == 0)) continue;
      const std::size_t got = sockets[i]->receive_some(buffer.data(), buffer.size());
      if (got > 0) arrivals.add(got);
      if (got == 0) waiting[i].fd = -1, --open;  // poll ignores negative descriptors
    }
  }
}

std::vector<Reading> read_arrivals(const Arrivals& arrivals, const StreamCell& cell) {
  while (arrivals.state().bytes == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::microseconds(cell.warm_us));
  std::vector<Reading> readings;
  Arrivals::State before = arrivals.state();
  for (std::int64_t i = 0; i < cell.windows; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(cell.window_us));
    const Arrivals::State now = arrivals.state();
    if (now.bytes == before.bytes) continue;  // the next window has this pause in it
    readings.push_back(
        {now.bytes - before.bytes, std::chrono::nanoseconds(now.last - before.last).count()});
    before = now;
  }
  return readings;
}

}  // namespace

std::string to_text(const StreamCell& cell) {
  std::ostringstream text;
  text << cell.sockets << ' ' << cell.threads << ' ' << cell.bytes << ' ' << cell.window_us << ' '
       << cell.windows << ' ' << cell.warm_us;
  return text.str();
}

StreamCell stream_cell_of(const std::string& text) {
  std::istringstream stream(text);
  StreamCell cell;
  stream >> cell.sockets >> cell.threads >> cell.bytes >> cell.window_us >> cell.windows >>
      cell.warm_us;
  const bool sane = cell.sockets >= 1 && cell.sockets <= 4096 && cell.threads >= 1 &&
                    cell.threads <= cell.sockets && cell.bytes >= 1 && cell.window_us >= 1 &&
                    cell.windows >= 1 && cell.windows <= 100000 && cell.warm_us >= 0;
  if (!stream || !sane) throw ProbeError("the connector asked for something impossible: " + text);
  return cell;
}

std::string to_text(const std::vector<Reading>& readings) {
  std::ostringstream text;
  for (const Reading& reading : readings)
    text << reading.bytes << ' ' << reading.nanoseconds << ' ';
  return text.str();
}

std::vector<Reading> readings_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<Reading> readings;
  for (Reading reading{}; stream >> reading.bytes >> reading.nanoseconds;)
    readings.push_back(reading);
  return readings;
}

void send_stream(const std::vector<Socket>& sockets, const StreamCell& cell,
                 const std::function<void()>& enough) {
  std::atomic<bool> stop{false};
  Threads threads;
  for (std::int64_t i = 0; i < cell.threads; ++i)
    threads.start([&sockets, &cell, &stop, i] {
      fill(share_of(sockets, i, cell.threads), static_cast<std::size_t>(cell.bytes), stop);
    });
  try {
    enough();
  } catch (...) {
    stop = true;
    throw;
  }
  stop = true;
  threads.join();
}

void receive_stream(const std::vector<Socket>& sockets, const StreamCell& cell,
                    const std::function<void(const std::vector<Reading>&)>& done) {
  Arrivals arrivals;
  Threads threads;
  for (std::int64_t i = 0; i < cell.threads; ++i)
    threads.start(
        [&sockets, &cell, &arrivals, i] { drain(share_of(sockets, i, cell.threads), arrivals); });
  done(read_arrivals(arrivals, cell));
  threads.join();
}

}  // namespace railyard::probe
