#include "calibrate/probes/common/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "calibrate/probes/common/error.h"

namespace railyard::probe {
namespace {

using Clock = std::chrono::steady_clock;
using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses resolve(const Endpoint& endpoint, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const char* host = endpoint.address.empty() ? nullptr : endpoint.address.c_str();
  const int status = getaddrinfo(host, std::to_string(endpoint.port).c_str(), &hints, &found);
  if (status != 0)
    throw ProbeError("the address '" + endpoint.address + "': " + gai_strerror(status));
  return {found, &freeaddrinfo};
}

std::string shown(const Endpoint& endpoint) {
  return endpoint.address + " port " + std::to_string(endpoint.port);
}

void set_option(const Socket& socket, int level, int name, int value) {
  if (setsockopt(socket.descriptor(), level, name, &value, sizeof value) != 0)
    fail_with_errno("setsockopt");
}

}  // namespace

Socket::~Socket() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Socket::send_all(const void* data, std::size_t bytes) const {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor_, next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) fail_with_errno("sending");
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

std::size_t Socket::receive_some(void* data, std::size_t bytes) const {
  for (;;) {
    const ssize_t got = ::recv(descriptor_, data, bytes, 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno == EAGAIN || errno == EWOULDBLOCK)
      throw ProbeError("the other side was silent for too long");
    if (errno != EINTR) fail_with_errno("receiving");
  }
}

bool Socket::receive_all(void* data, std::size_t bytes) const {
  char* next = static_cast<char*>(data);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t got = receive_some(next + done, bytes - done);
    if (got == 0 && done == 0) return false;
    if (got == 0) throw ProbeError("the other side closed the connection");
    done += got;
  }
  return true;
}

void Socket::finish_sending() const {
  if (shutdown(descriptor_, SHUT_WR) != 0) fail_with_errno("shutdown");
}

void Socket::set_timeout(double seconds) const {
  timeval time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_usec = static_cast<suseconds_t>((seconds - std::floor(seconds)) * 1e6);
  for (const int name : {SO_RCVTIMEO, SO_SNDTIMEO})
    if (setsockopt(descriptor_, SOL_SOCKET, name, &time, sizeof time) != 0)
      fail_with_errno("setsockopt");
}

void Socket::send_text(const std::string& text) const {
  const std::uint32_t length = htonl(static_cast<std::uint32_t>(text.size()));
  send_all(&length, sizeof length);
  send_all(text.data(), text.size());
}

bool Socket::receive_text(std::string& text, std::uint32_t limit) const {
  std::uint32_t length = 0;
  if (!receive_all(&length, sizeof length)) return false;
  length = ntohl(length);
  if (length > limit) throw ProbeError("the other side does not speak a probe's language");
  text.resize(length);
  if (length > 0 && !receive_all(text.data(), length))
    throw ProbeError("the other side closed the connection");
  return true;
}

Socket listen_on(const Endpoint& at) {
  const Addresses addresses = resolve(at, AI_PASSIVE);
  Socket socket(::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) fail_with_errno("socket");
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(socket.descriptor(), addresses->ai_addr, addresses->ai_addrlen) != 0)
    fail_with_errno("cannot listen on " + shown(at));
  if (listen(socket.descriptor(), 1024) != 0) fail_with_errno("listen");
  return socket;
}

std::int64_t local_port(const Socket& socket) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  if (getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    fail_with_errno("getsockname");
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

Socket accept_from(const Socket& listener, double timeout_seconds) {
  pollfd waiting{listener.descriptor(), POLLIN, 0};
  const int milliseconds = timeout_seconds < 0 ? -1 : static_cast<int>(timeout_seconds * 1000);
  int ready = 0;
  do {
    ready = poll(&waiting, 1, milliseconds);
  } while (ready < 0 && errno == EINTR);
  if (ready < 0) fail_with_errno("poll");
  if (ready == 0) throw ProbeError("nobody connected in time");
  Socket socket(accept4(listener.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open()) fail_with_errno("accept");
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

Socket connect_to(const Endpoint& to, double timeout_seconds) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  for (;;) {
    const Addresses addresses = resolve(to, 0);
    for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
      Socket socket(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!socket.open()) fail_with_errno("socket");
      if (connect(socket.descriptor(), one->ai_addr, one->ai_addrlen) != 0) continue;
      set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
      return socket;
    }
    if (Clock::now() > deadline) fail_with_errno("cannot connect to " + shown(to));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace railyard::probe
