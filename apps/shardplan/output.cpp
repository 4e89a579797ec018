#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace shardplan::cli {
namespace {

std::string failure(std::string_view what, std::string_view path) {
  return fmt::format("cannot {} {}: {}", what, path, std::strerror(errno));
}

/// True when every byte went out. Zero bytes are written nowhere.
bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

/// The file that a path finally means: symbolic links followed, so that the link stays a link.
std::string final_place(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string place = resolved;
  std::free(resolved);
  return place;
}

}  // namespace

OutputFile::~OutputFile() {
  if (descriptor_ > 2) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

std::string OutputFile::open(const std::string& path) {
  if (path.empty() || path == "-") return {};
  path_ = final_place(path);
  struct stat status {};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    errno = EISDIR;
    return failure("write", path);
  }
  if (exists && !S_ISREG(status.st_mode)) {  // a device, a pipe: there is nothing to rename
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    return descriptor_ < 0 ? failure("write", path) : std::string();
  }
  if (exists && ::access(path_.c_str(), W_OK) != 0) return failure("write", path);
  std::string name = path_ + ".XXXXXX";
  descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor_ < 0) return failure("write", path);
  temporary_ = name;
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(descriptor_, exists ? status.st_mode & 07777 : 0666 & ~mask);
  return {};
}

std::string OutputFile::commit(std::string_view text) {
  const std::string_view place = path_.empty() ? std::string_view("standard output") : std::string_view(path_);
  if (!write_all(descriptor_, text)) return failure("write", place);
  if (path_.empty()) return {};
  const bool closed = ::close(descriptor_) == 0;
  descriptor_ = -1;
  if (!closed) return failure("write", place);
  if (temporary_.empty()) return {};
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return failure("write", place);
  temporary_.clear();
  return {};
}

}  // namespace shardplan::cli
