// The simplest TCP ping-pong there is, to compare probe_tcp with: one byte there and back.
//
//   echo_latency serve PORT                answers one connection until it closes
//   echo_latency ask ADDRESS PORT TRIPS    prints the median of half the round trip, microseconds
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

void require(bool condition, const char* what) {
  if (condition) return;
  std::perror(what);
  std::exit(1);
}

sockaddr_in address_of(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  require(inet_pton(AF_INET, host, &address.sin_addr) == 1, "address");
  return address;
}

int new_socket() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  require(descriptor >= 0, "socket");
  return descriptor;
}

void no_delay(int descriptor) {
  const int on = 1;
  require(setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "no delay");
}

void serve(const char* port) {
  const int listener = new_socket(), on = 1;
  require(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "reuse");
  const sockaddr_in address = address_of("0.0.0.0", port);
  require(bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "bind");
  require(listen(listener, 1) == 0, "listen");
  std::puts("ready");
  std::fflush(stdout);
  const int peer = accept(listener, nullptr, nullptr);
  require(peer >= 0, "accept");
  no_delay(peer);
  char byte = 0;
  while (read(peer, &byte, 1) == 1) require(write(peer, &byte, 1) == 1, "write");
}

void ask(const char* host, const char* port, int trips) {
  const int peer = new_socket();
  const sockaddr_in address = address_of(host, port);
  require(connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "connect");
  no_delay(peer);
  std::vector<double> halves;
  for (int i = 0; i < trips; ++i) {
    char byte = 'x';
    const auto start = std::chrono::steady_clock::now();
    require(write(peer, &byte, 1) == 1, "write");
    require(read(peer, &byte, 1) == 1, "read");
    const std::chrono::duration<double, std::micro> round =
        std::chrono::steady_clock::now() - start;
    halves.push_back(round.count() / 2);
  }
  std::sort(halves.begin(), halves.end());
  std::printf("%.3f\n", halves[halves.size() / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "serve") == 0) {
    serve(argv[2]);
  } else if (argc == 5 && std::strcmp(argv[1], "ask") == 0 && std::atoi(argv[4]) > 0) {
    ask(argv[2], argv[3], std::atoi(argv[4]));
  } else {
    std::fprintf(stderr, "echo_latency serve PORT | ask ADDRESS PORT TRIPS\n");
    return 2;
  }
  return 0;
}
