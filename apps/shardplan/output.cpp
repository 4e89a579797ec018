#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

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

/// The descriptor of this process that /dev/stdout, /dev/fd/3 and the like are, or nothing.
std::optional<int> descriptor_of(std::string_view path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.substr(0, folder.size()) != folder) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number >= 0) return number;
  }
  return std::nullopt;
}

/// What a path finally means: symbolic links followed one by one, so that a link stays a link, up to a descriptor,
/// whose own link names a file that others hold open.
std::string final_place(const std::string& path) {
  constexpr int most_links = 40;
  std::filesystem::path place = path;
  std::error_code error;
  for (int i = 0; i < most_links && !descriptor_of(place.string()); ++i) {
    const std::filesystem::path target = std::filesystem::read_symlink(place, error);
    if (error) break;
    place = target.is_absolute() ? target : place.parent_path() / target;
  }
  return place.string();
}

}  // namespace

OutputFile::~OutputFile() {
  if (descriptor_ > 2) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

bool is_same_file(const std::string& left, const std::string& right) {
  std::error_code error;
  return std::filesystem::is_regular_file(left, error) && std::filesystem::equivalent(left, right, error) && !error;
}

std::string OutputFile::open(const std::string& path) {
  if (path == "-") return {};
  if (path.empty()) return "-o \"\": a file needs a name";
  path_ = final_place(path);
  if (const std::optional<int> number = descriptor_of(path_)) {
    descriptor_ = ::fcntl(*number, F_DUPFD_CLOEXEC, 3);
    return descriptor_ < 0 ? failure("write", path) : std::string();
  }
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
