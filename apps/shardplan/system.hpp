// What the program asks of the operating system beyond the standard library: terminals, descriptors, closed pipes.
// Everything of POSIX is in system.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace shardplan::cli {

enum class Stream { input = 0, output = 1, error = 2 };

bool is_terminal(Stream stream) noexcept;
/// Columns of the terminal on standard output, where there is one that knows.
std::optional<int> terminal_columns() noexcept;

/// A reader that went away ends the program in silence, as it ends others.
void end_on_closed_pipe() noexcept;

/// An open file to write to: its number among the process's. None is negative.
using Descriptor = int;

enum class FileKind { none, folder, regular, other };
FileKind file_kind(const std::string& path) noexcept;
bool is_writable(const std::string& path) noexcept;

// What follows returns a negative descriptor or false where it failed; last_failure() says why.
Descriptor duplicate(Descriptor descriptor) noexcept;
Descriptor open_to_write(const std::string& path) noexcept;
/// A new file beside `path`, whose name is put in `name`, with the permissions of the file at `path` or of a new one.
Descriptor create_beside(const std::string& path, std::string& name);
/// Every byte. Zero bytes are written nowhere.
bool write_all(Descriptor descriptor, std::string_view text) noexcept;
bool close_file(Descriptor descriptor) noexcept;
bool rename_file(const std::string& from, const std::string& to) noexcept;
void remove_file(const std::string& path) noexcept;
std::string last_failure();
/// What writing to a folder fails with.
std::string folder_failure();

}  // namespace shardplan::cli
