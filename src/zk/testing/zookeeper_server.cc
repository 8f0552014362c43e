#include "zk/testing/zookeeper_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/testing/test_environment.h"

namespace nodepool::testing {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kStartTimeout{60};

std::string MakeDirectory() {
  std::string name = (fs::temp_directory_path() / "nodepool-zookeeper-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a temporary directory");
  return name;
}

template <class Predicate>
bool WaitFor(Predicate is_reached) {
  auto end = std::chrono::steady_clock::now() + kStartTimeout;
  while (!is_reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void Shell(const std::string& directory, const std::string& script) {
  std::string command = fmt::format("cd '{}' && ( set -e\n{}\n) >openssl.log 2>&1", directory, script);
  if (std::system(command.c_str()) != 0) {
    throw std::runtime_error("cannot make certificates, see " + directory + "/openssl.log");
  }
}

// Two CAs, each with a server and a client certificate; no certificate carries the
// name or the address of this machine.
void MakeCertificates(const std::string& directory) {
  Shell(directory, R"(
for ca in own strange; do
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 \
    -keyout $ca-ca.key -out $ca-ca.pem -subj "/CN=$ca CA"
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
    -keyout $ca-client.key -out $ca-client.csr -subj "/CN=$ca client"
  openssl x509 -req -in $ca-client.csr -CA $ca-ca.pem -CAkey $ca-ca.key -CAcreateserial -days 30 -out $ca-client.pem
done
openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
  -keyout server.key -out server.csr -subj "/CN=somewhere.else.example"
openssl x509 -req -in server.csr -CA own-ca.pem -CAkey own-ca.key -CAcreateserial -days 30 -out server.crt
openssl pkcs12 -export -in server.crt -inkey server.key -out server.p12 -passout pass:secret
keytool -importcert -noprompt -alias ca -file own-ca.pem -keystore trust.p12 -storetype PKCS12 -storepass secret
)");
}

[[noreturn]] void Execute(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

ZooKeeperServer::Kind ZooKeeperServer::KindFromEnvironment() {
  const char* name = std::getenv("NODEPOOL_TEST_ZOOKEEPER");
  return name != nullptr && std::string(name) == "embedded" ? Kind::kEmbedded : Kind::kApache;
}

ZooKeeperServer::ZooKeeperServer() : ZooKeeperServer(Options{}) {}

ZooKeeperServer::ZooKeeperServer(Options options)
    : options_(std::move(options)), directory_(MakeDirectory()), port_(FreePort()) {
  if (options_.tls) {
    tls_port_ = FreePort();
    MakeCertificates(directory_);
  }
}

ZooKeeperServer::~ZooKeeperServer() {
  Kill();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
}

void ZooKeeperServer::WriteConfig() {
  std::ofstream out(directory_ + "/zoo.cfg");
  out << "dataDir=" << directory_ << "/data\n"
      << "clientPort=" << port_ << "\n"
      << "tickTime=" << options_.tick_time << "\n"
      << "initLimit=100\nsyncLimit=50\nmaxClientCnxns=0\nextendedTypesEnabled=true\n"
      << "minSessionTimeout=" << options_.min_session_timeout << "\nmaxSessionTimeout=60000\n"
      << "admin.enableServer=false\n4lw.commands.whitelist=*\nstandaloneEnabled=true\n";
  if (options_.tls) {
    out << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n"
        << "secureClientPort=" << tls_port_ << "\n"
        << "ssl.keyStore.location=" << directory_ << "/server.p12\nssl.keyStore.password=secret\n"
        << "ssl.trustStore.location=" << directory_ << "/trust.p12\nssl.trustStore.password=secret\n"
        << "ssl.clientAuth=need\n";
  }
  for (const std::string& line : options_.config_lines) out << line << "\n";
}

void ZooKeeperServer::Start() {
  fs::create_directories(directory_ + "/data");
  WriteConfig();
  Spawn();
  WaitUntilServing();
}

void ZooKeeperServer::Spawn() {
  std::string log = directory_ + "/log";
  pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  int log_file = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log_file < 0) _exit(1);
  dup2(log_file, STDOUT_FILENO);
  dup2(log_file, STDERR_FILENO);
  if (options_.kind == Kind::kEmbedded) ExecuteEmbedded();
  ExecuteApache();
}

void ZooKeeperServer::ExecuteApache() {
  std::vector<std::string> quick{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                                 "-Dzookeeper.forceSync=no"};
  std::vector<std::string> durable{"-Xmx1g", "-Dzookeeper.forceSync=yes"};
  std::vector<std::string> words{"java", "-XX:-UsePerfData", "-Xshare:auto"};
  const std::vector<std::string>& manner = options_.durable ? durable : quick;
  words.insert(words.end(), manner.begin(), manner.end());
  std::vector<std::string> rest{
      "-Dzookeeper.jmx.log4j.disable=true",
      "-Dzookeeper.extendedTypesEnabled=true",
      "-Dznode.container.checkIntervalMs=200",
      "-Dzookeeper.root.logger=INFO,CONSOLE",
      "-Dzookeeper.console.threshold=INFO",
      "-Djava.io.tmpdir=" + directory_,
      "-cp",
      "/etc/zookeeper/conf:/usr/share/java/zookeeper.jar:/usr/share/java/netty-all.jar:/usr/share/java/*",
      "org.apache.zookeeper.server.quorum.QuorumPeerMain",
      directory_ + "/zoo.cfg"};
  words.insert(words.end(), rest.begin(), rest.end());
  Execute(std::move(words));
}

void ZooKeeperServer::ExecuteEmbedded() {
  std::vector<std::string> words{NODEPOOL_BIN "/embedded_zookeeper",
                                 std::to_string(port_),
                                 "address=::",
                                 "journal=" + directory_ + "/data/state.sqlite",
                                 "container-check=200",
                                 "min-session-timeout=" + std::to_string(options_.min_session_timeout)};
  if (options_.tls) {
    std::vector<std::string> tls{"tls-port=" + std::to_string(tls_port_),
                                 "cert=" + directory_ + "/server.crt", "key=" + directory_ + "/server.key",
                                 "ca=" + directory_ + "/own-ca.pem"};
    words.insert(words.end(), tls.begin(), tls.end());
  }
  Execute(std::move(words));
}

void ZooKeeperServer::WaitUntilServing() {
  bool has_exited = false;
  auto is_serving = [&] {
    has_exited = waitpid(pid_, nullptr, WNOHANG) == pid_;
    return has_exited || Ask("srvr").find("Mode: ") != std::string::npos;
  };
  if (WaitFor(is_serving) && !has_exited) return;
  if (has_exited) pid_ = 0;
  throw std::runtime_error("ZooKeeper does not start: " + Log());
}

void ZooKeeperServer::Stop() {
  if (pid_ == 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void ZooKeeperServer::Kill() {
  if (pid_ == 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = 0;
}

void ZooKeeperServer::Restart() {
  Kill();
  Start();
}

// Ends when the process has stopped: until then it may still answer.
void ZooKeeperServer::Pause() {
  kill(pid_, SIGSTOP);
  siginfo_t stopped;
  waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED);
}

void ZooKeeperServer::Resume() { kill(pid_, SIGCONT); }

zk::TlsFiles ZooKeeperServer::client_files() const {
  return {directory_ + "/own-client.pem", directory_ + "/own-client.key", directory_ + "/own-ca.pem"};
}

zk::TlsFiles ZooKeeperServer::stranger_files() const {
  return {directory_ + "/strange-client.pem", directory_ + "/strange-client.key",
          directory_ + "/strange-ca.pem"};
}

std::string ZooKeeperServer::Ask(const std::string& word) const {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  timeval limit{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  bool is_sent = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                 send(fd, word.data(), word.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(word.size());
  char buffer[4096];
  ssize_t count = 0;
  while (is_sent && (count = recv(fd, buffer, sizeof buffer, 0)) > 0) {
    answer.append(buffer, static_cast<std::size_t>(count));
  }
  close(fd);
  return answer;
}

std::string ZooKeeperServer::Log() const {
  std::ifstream in(directory_ + "/log");
  std::ostringstream text;
  text << in.rdbuf();
  std::string all = text.str();
  return all.size() > 4000 ? all.substr(all.size() - 4000) : all;
}

ZooKeeperEnsemble::ZooKeeperEnsemble() {
  constexpr int kSize = 3;
  std::vector<std::string> members;
  for (int id = 1; id <= kSize; ++id) {
    members.push_back(fmt::format("server.{}=127.0.0.1:{}:{}", id, FreePort(), FreePort()));
  }
  for (int id = 1; id <= kSize; ++id) {
    ZooKeeperServer::Options options;
    options.kind = ZooKeeperServer::Kind::kApache;
    options.config_lines = members;
    auto server = std::make_unique<ZooKeeperServer>(options);
    fs::create_directories(server->directory_ + "/data");
    std::ofstream(server->directory_ + "/data/myid") << id << "\n";
    server->WriteConfig();
    server->Spawn();
    servers_.push_back(std::move(server));
  }
  for (auto& server : servers_) server->WaitUntilServing();
}

std::vector<zk::HostPort> ZooKeeperEnsemble::addresses() const {
  std::vector<zk::HostPort> addresses;
  for (const auto& server : servers_) addresses.push_back(server->address());
  return addresses;
}

std::size_t ZooKeeperEnsemble::Leader() const {
  std::size_t leader = 0;
  bool is_found = WaitFor([&] {
    for (leader = 0; leader < servers_.size(); ++leader) {
      if (servers_[leader]->is_leader()) return true;
    }
    return false;
  });
  if (!is_found) throw std::runtime_error("no server leads");
  return leader;
}

}  // namespace nodepool::testing
