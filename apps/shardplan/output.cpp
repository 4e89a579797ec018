#include "output.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "shardplan/core/number_text.hpp"
#include "system.hpp"

namespace shardplan::cli {
namespace {

std::string failure(std::string_view what, std::string_view path, const std::string& why = last_failure()) {
  return fmt::format("cannot {} {}: {}", what, path, why);
}

/// The descriptor of this process that /dev/stdout, /dev/fd/3 and the like are, or nothing.
std::optional<Descriptor> descriptor_of(std::string_view path) {
  if (path == "/dev/stdin") return static_cast<Descriptor>(Stream::input);
  if (path == "/dev/stdout") return static_cast<Descriptor>(Stream::output);
  if (path == "/dev/stderr") return static_cast<Descriptor>(Stream::error);
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.substr(0, folder.size()) != folder) continue;
    const std::string_view digits = path.substr(folder.size());
    if (const auto number = number_of<int>(digits); number && *number >= 0) return number;
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
  if (descriptor_ > 2) close_file(descriptor_);
  if (!temporary_.empty()) remove_file(temporary_);
}

bool is_same_file(const std::string& left, const std::string& right) {
  std::error_code error;
  return std::filesystem::is_regular_file(left, error) && std::filesystem::equivalent(left, right, error) && !error;
}

std::string OutputFile::open(const std::string& path) {
  if (path == "-") return {};
  if (path.empty()) return "-o \"\": a file needs a name";
  path_ = final_place(path);
  if (const std::optional<Descriptor> number = descriptor_of(path_)) {
    descriptor_ = duplicate(*number);
    return descriptor_ < 0 ? failure("write", path) : std::string();
  }
  const FileKind kind = file_kind(path_);
  if (kind == FileKind::folder) return failure("write", path, folder_failure());
  if (kind == FileKind::other) {  // a device, a pipe: there is nothing to rename
    descriptor_ = open_to_write(path_);
    return descriptor_ < 0 ? failure("write", path) : std::string();
  }
  if (kind == FileKind::regular && !is_writable(path_)) return failure("write", path);
  descriptor_ = create_beside(path_, temporary_);
  return descriptor_ < 0 ? failure("write", path) : std::string();
}

std::string OutputFile::commit(std::string_view text) {
  const std::string_view place = path_.empty() ? std::string_view("standard output") : std::string_view(path_);
  if (!write_all(descriptor_, text)) return failure("write", place);
  if (path_.empty()) return {};
  const bool closed = close_file(descriptor_);
  descriptor_ = -1;
  if (!closed) return failure("write", place);
  if (temporary_.empty()) return {};
  if (!rename_file(temporary_, path_)) return failure("write", place);
  temporary_.clear();
  return {};
}

}  // namespace shardplan::cli
