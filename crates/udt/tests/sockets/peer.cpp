// A peer made of libudt, for tests and benches.
//
//   peer ROLE WHAT MODE BYTES [PORT [PEER-PORT]]
//
// ROLE is listen, connect or meet (rendezvous), WHAT is send or recv, or often: to receive and to
// acknowledge every second packet. MODE is stream or message. A listener prints "port N" first.
// Everybody prints "done BYTES MESSAGES SECONDS CPU-SECONDS MAX-GAP" last, and fails if a byte is not
// what it should be; the gap is the longest time, in s, in which nothing was read or taken for sending. PORT may be HOST:PORT.

#include <arpa/inet.h>
#include <sys/resource.h>
#include <udt/ccc.h>
#include <udt/udt.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static const size_t kPiece = 50000;
static const size_t kPeriod = 1 << 20;

static unsigned char byte_at(unsigned long i) {
  i %= kPeriod;
  return (unsigned char)((i * 2654435761UL) >> 13);
}

// For a receiver: acknowledgements within a SYN are short (16 bytes).
class AckOften : public CCC {
 public:
  void init() { setACKInterval(2); }
};

static void fail(const char *what) {
  std::fprintf(stderr, "%s: %s\n", what, UDT::getlasterror().getErrorMessage());
  std::exit(1);
}

static sockaddr_in address(const std::string &text) {
  sockaddr_in out;
  std::memset(&out, 0, sizeof out);
  out.sin_family = AF_INET;
  size_t colon = text.find(':');
  std::string host = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
  inet_pton(AF_INET, host.c_str(), &out.sin_addr);
  out.sin_port = htons(std::atoi(port.c_str()));
  return out;
}

int main(int argc, char **argv) {
  if (argc < 5) return 2;
  std::string role = argv[1], what = argv[2];
  bool message = std::string(argv[3]) == "message";
  unsigned long bytes = std::strtoul(argv[4], 0, 10);
  sockaddr_in port = address(argc > 5 ? argv[5] : "0");

  // Two periods, so that any piece is one slice.
  std::vector<char> pattern(2 * kPeriod);
  for (size_t i = 0; i < pattern.size(); i++) pattern[i] = (char)byte_at(i);

  UDT::startup();
  UDTSOCKET s = UDT::socket(AF_INET, message ? SOCK_DGRAM : SOCK_STREAM, 0);
  int buffer = 1024 * 1456 * 8;
  UDT::setsockopt(s, 0, UDT_SNDBUF, &buffer, sizeof buffer);
  UDT::setsockopt(s, 0, UDT_RCVBUF, &buffer, sizeof buffer);
  CCCFactory<AckOften> often;
  if (what == "often") UDT::setsockopt(s, 0, UDT_CC, &often, sizeof often);
  if (role == "meet") {
    bool yes = true;
    UDT::setsockopt(s, 0, UDT_RENDEZVOUS, &yes, sizeof yes);
  }
  if (role != "connect" && UDT::ERROR == UDT::bind(s, (sockaddr *)&port, sizeof port)) fail("bind");
  if (role == "listen") {
    sockaddr_in own;
    int length = sizeof own;
    UDT::getsockname(s, (sockaddr *)&own, &length);
    UDT::listen(s, 5);
    std::printf("port %d\n", ntohs(own.sin_port));
    std::fflush(stdout);
    sockaddr_storage peer;
    length = sizeof peer;
    UDTSOCKET accepted = UDT::accept(s, (sockaddr *)&peer, &length);
    if (accepted == UDT::INVALID_SOCK) fail("accept");
    s = accepted;
  } else {
    sockaddr_in peer = role == "meet" ? address(argv[6]) : port;
    if (UDT::ERROR == UDT::connect(s, (sockaddr *)&peer, sizeof peer)) fail("connect");
  }

  auto began = std::chrono::steady_clock::now();
  auto last = began;
  double gap = 0;
  unsigned long moved = 0, messages = 0;
  std::vector<char> in(200000);
  while (moved < bytes) {
    int some;
    if (what == "send") {
      size_t length = bytes - moved < kPiece ? bytes - moved : kPiece;
      const char *from = pattern.data() + moved % kPeriod;
      some = message ? UDT::sendmsg(s, from, length, -1, true) : UDT::send(s, from, length, 0);
      if (some == UDT::ERROR) fail("send");
    } else {
      some = message ? UDT::recvmsg(s, in.data(), in.size()) : UDT::recv(s, in.data(), in.size(), 0);
      if (some == UDT::ERROR) fail("recv");
      if (std::memcmp(in.data(), pattern.data() + moved % kPeriod, some) != 0) {
        std::fprintf(stderr, "wrong bytes in the %d from %lu\n", some, moved);
        return 1;
      }
    }
    auto now = std::chrono::steady_clock::now();
    gap = std::max(gap, std::chrono::duration<double>(now - last).count());
    last = now;
    moved += some;
    messages++;
  }
  UDT::close(s);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  double cpu = used.ru_utime.tv_sec + used.ru_stime.tv_sec +
               (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
  UDT::cleanup();
  std::printf("done %lu %lu %.3f %.3f %.3f\n", moved, messages, took.count(), cpu, gap);
  return 0;
}
