// A file appears whole or not at all.
#include "output.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
using shardplan::cli::OutputFile;

/// A folder of this test's own.
struct Folder {
  fs::path path;
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "output_test.XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }
};

std::string read(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a committed file holds the text, an abandoned one leaves the old file and nothing else") {
  const Folder folder;
  const fs::path path = folder.path / "result.txt";
  std::ofstream(path) << "old";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  {
    OutputFile abandoned;
    CHECK(abandoned.open(path.string()).empty());
  }
  CHECK(read(path) == "old");
  CHECK(folder.files() == 1);
  OutputFile file;
  CHECK(file.open(path.string()).empty());
  CHECK(file.commit("new\n").empty());
  CHECK(read(path) == "new\n");
  CHECK(folder.files() == 1);
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a link stays a link") {
  const Folder folder;
  std::ofstream(folder.path / "target") << "old";
  fs::create_symlink(folder.path / "target", folder.path / "link");
  OutputFile file;
  CHECK(file.open((folder.path / "link").string()).empty());
  CHECK(file.commit("new").empty());
  CHECK(fs::is_symlink(folder.path / "link"));
  CHECK(read(folder.path / "target") == "new");
}

TEST_CASE("a path that cannot be written fails when it is opened") {
  const Folder folder;
  OutputFile missing;
  CHECK_THAT(missing.open((folder.path / "no/such/folder").string()), test::Contains("No such file or directory"));
  OutputFile directory;
  CHECK_THAT(directory.open(folder.path.string()), test::Contains("Is a directory"));
}

TEST_CASE("a full device is reported") {
  if (!fs::exists("/dev/full")) return;
  OutputFile file;
  CHECK(file.open("/dev/full").empty());
  CHECK_THAT(file.commit("text"), test::Contains("No space left on device"));
}

TEST_CASE("what is no regular file is written through") {
  const Folder folder;
  const fs::path pipe = folder.path / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  OutputFile file;
  CHECK(file.open(pipe.string()).empty());
  CHECK(file.commit("text\n").empty());
  char buffer[16] = {};
  CHECK(::read(reader, buffer, sizeof buffer) == 5);
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
  CHECK(folder.files() == 1);
}

TEST_CASE("/dev/fd/N is that descriptor, also where it is a file that others hold open") {
  const Folder folder;
  const fs::path path = folder.path / "log";
  const int held = ::open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(held >= 0);
  REQUIRE(::write(held, "before\n", 7) == 7);
  const fs::path link = folder.path / "link";
  fs::create_symlink("/dev/fd/" + std::to_string(held), link);
  {
    OutputFile file;
    CHECK(file.open(link.string()).empty());
    CHECK(file.commit("text\n").empty());
  }
  REQUIRE(::write(held, "after\n", 6) == 6);
  ::close(held);
  CHECK(read(path) == "before\ntext\nafter\n");
  CHECK(folder.files() == 2);
}

TEST_CASE("an empty name is no file") {
  OutputFile file;
  CHECK(file.open("") == "-o \"\": a file needs a name");
}

TEST_CASE("one file under two names is one file") {
  const Folder folder;
  const std::string path = (folder.path / "run.json").string();
  std::ofstream(path) << "{}";
  CHECK(shardplan::cli::is_same_file(path, (folder.path / "." / "run.json").string()));
  CHECK_FALSE(shardplan::cli::is_same_file(path, (folder.path / "other.json").string()));
  CHECK_FALSE(shardplan::cli::is_same_file("/dev/null", "/dev/null"));
}
