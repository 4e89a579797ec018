#include "system.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace shardplan::cli {

bool is_terminal(Stream stream) noexcept { return ::isatty(static_cast<int>(stream)) == 1; }

std::optional<int> terminal_columns() noexcept {
  winsize size{};
  if (!is_terminal(Stream::output) || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return {};
  return size.ws_col;
}

void end_on_closed_pipe() noexcept { std::signal(SIGPIPE, SIG_DFL); }

FileKind file_kind(const std::string& path) noexcept {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return FileKind::none;
  if (S_ISDIR(status.st_mode)) return FileKind::folder;
  return S_ISREG(status.st_mode) ? FileKind::regular : FileKind::other;
}

bool is_writable(const std::string& path) noexcept { return ::access(path.c_str(), W_OK) == 0; }

Descriptor duplicate(Descriptor descriptor) noexcept {
  constexpr int first_free = 3;
  return ::fcntl(descriptor, F_DUPFD_CLOEXEC, first_free);
}

Descriptor open_to_write(const std::string& path) noexcept { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }

Descriptor create_beside(const std::string& path, std::string& name) {
  std::string pattern = path + ".XXXXXX";
  const Descriptor descriptor = ::mkostemp(pattern.data(), O_CLOEXEC);
  if (descriptor < 0) return descriptor;
  name = pattern;
  struct stat status {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor, exists ? status.st_mode & 07777 : 0666 & ~mask);
  return descriptor;
}

bool write_all(Descriptor descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool close_file(Descriptor descriptor) noexcept { return ::close(descriptor) == 0; }

bool rename_file(const std::string& from, const std::string& to) noexcept {
  return ::rename(from.c_str(), to.c_str()) == 0;
}

void remove_file(const std::string& path) noexcept { ::unlink(path.c_str()); }

std::string last_failure() { return std::strerror(errno); }

std::string folder_failure() { return std::strerror(EISDIR); }

}  // namespace shardplan::cli
