#include "support/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace test {
namespace {

struct Pipe {
  int read_end = -1;
  int write_end = -1;

  Pipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_read() { close_end(read_end); }
  void close_write() { close_end(write_end); }

 private:
  static void close_end(int& end) {
    if (end >= 0) close(end);
    end = -1;
  }
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// Appends what is ready; false at the end of the stream.
bool drain(int end, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(end, buffer.data(), buffer.size());
  if (count <= 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(count));
  return true;
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& input,
                          const std::string& folder, const std::vector<std::string>& environment) {
  std::vector<std::string> argument_texts = arguments;
  const char* const path = std::getenv("PATH");
  std::vector<std::string> environment_texts = {std::string("PATH=") + (path != nullptr ? path : "/usr/bin:/bin"),
                                                "HOME=/nonexistent", "LC_ALL=C.UTF-8"};
  for (const char* const name : {"ASAN_OPTIONS", "UBSAN_OPTIONS", "LLVM_PROFILE_FILE"}) {
    if (const char* const value = std::getenv(name)) environment_texts.push_back(std::string(name) + "=" + value);
  }
  environment_texts.insert(environment_texts.end(), environment.begin(), environment.end());
  const std::vector<char*> argv = pointers(argument_texts);
  const std::vector<char*> envp = pointers(environment_texts);

  ProcessResult result;
  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t child = fork();
  if (child < 0) return result;
  if (child == 0) {
    dup2(in.read_end, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    if (!folder.empty() && chdir(folder.c_str()) != 0) _exit(127);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  in.close_read();
  out.close_write();
  err.close_write();
  signal(SIGPIPE, SIG_IGN);  // a program may leave its input unread
  std::size_t sent = 0;
  if (input.empty()) in.close_write();

  bool out_open = true;
  bool err_open = true;
  while (out_open || err_open) {
    std::array<pollfd, 3> waits = {pollfd{out_open ? out.read_end : -1, POLLIN, 0},
                                   pollfd{err_open ? err.read_end : -1, POLLIN, 0}, pollfd{in.write_end, POLLOUT, 0}};
    if (poll(waits.data(), waits.size(), -1) < 0) break;
    if (waits[0].revents != 0) out_open = drain(out.read_end, result.out);
    if (waits[1].revents != 0) err_open = drain(err.read_end, result.err);
    if (waits[2].revents != 0) {
      const ssize_t count = write(in.write_end, input.data() + sent, std::min<std::size_t>(input.size() - sent, 4096));
      if (count > 0) sent += static_cast<std::size_t>(count);
      if (count <= 0 || sent == input.size()) in.close_write();
    }
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  result.seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

bool has_terminals() {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return false;
  std::array<char, 64> name{};
  const bool usable = grantpt(terminal) == 0 && unlockpt(terminal) == 0 &&
                      ptsname_r(terminal, name.data(), name.size()) == 0 && access(name.data(), R_OK | W_OK) == 0;
  close(terminal);
  return usable;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "shardplan-test-XXXXXX").string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, const std::string& bytes) const {
  std::string file = path_ + "/" + name;
  std::ofstream(file, std::ios::binary) << bytes;
  return file;
}

}  // namespace test
