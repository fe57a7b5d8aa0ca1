// Blocking TCP sockets whose every failure is a ProbeError. Move-only, closed at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace railyard::probe {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] bool open() const { return descriptor_ >= 0; }

  void send_all(const void* data, std::size_t bytes) const;
  // False when the other side closed before the first byte; closing midway is an error.
  bool receive_all(void* data, std::size_t bytes) const;
  // At least one byte; 0 when the other side has closed.
  std::size_t receive_some(void* data, std::size_t bytes) const;
  void finish_sending() const;  // the other side reads the end of the stream
  void set_timeout(double seconds) const;

  // A length and that many bytes. `limit` guards against a stranger's bytes.
  void send_text(const std::string& text) const;
  bool receive_text(std::string& text, std::uint32_t limit = 1U << 20) const;

 private:
  int descriptor_ = -1;
};

struct Endpoint {
  std::string address;
  std::int64_t port = 0;
};

// TCP_NODELAY is on for every connection. `at.port` 0 takes a free one: see local_port().
Socket listen_on(const Endpoint& at);
std::int64_t local_port(const Socket& socket);
Socket accept_from(const Socket& listener, double timeout_seconds);
// Tries again until the deadline: the other side may not be listening yet.
Socket connect_to(const Endpoint& to, double timeout_seconds);

}  // namespace railyard::probe
