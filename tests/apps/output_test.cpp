// A file appears whole or not at all.
#include "output.hpp"

#include <sys/stat.h>

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
