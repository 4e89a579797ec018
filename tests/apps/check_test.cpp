// What check promises: the fix passes, files are found, statuses hold, 1,000 files are read.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "check_files.hpp"
#include "property/random_run.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/runs.hpp"

namespace {

using nlohmann::json;

test::ProcessResult check(std::vector<std::string> words) {
  words.insert(words.begin(), {SHARDPLAN_BINARY, "check"});
  return test::run_process(words);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> names(const shardplan::cli::CheckFiles& files, const std::string& folder) {
  std::vector<std::string> short_names;
  for (const std::string& path : files.paths) {
    short_names.push_back(path.rfind(folder, 0) == 0 ? path.substr(folder.size() + 1) : path);
  }
  return short_names;
}

}  // namespace

TEST_CASE("the fix, pasted behind check, makes the file pass") {
  const test::TemporaryFolder folder;
  const std::vector<std::string> requires_ = {R"({"min_mfu": 0.5})",
                                              R"({"max_bubble": 0.02})",
                                              R"({"min_headroom_gib": 40})",
                                              R"({"max_step_s": 25})",
                                              R"({"min_tokens_per_s_per_gpu": 1100, "min_headroom_gib": 8})",
                                              R"({"fits": true, "min_mfu": 0.4, "max_bubble": 0.05})"};
  const std::vector<std::string> layouts = {
      R"({"num_gpus": 128, "model": "llama-3.1-70b", "parallel": {"tensor": 8, "pipeline": 4, "zero_stage": 1}})",
      R"({"num_gpus": 128, "model": "llama-3.1-70b", "parallel": {"tensor": 8, "pipeline": 8},
          "training": {"micro_batch_size": 4, "global_batch_size": 1024, "attention": "eager"}})",
      R"({"num_gpus": 8, "parallel": {"fsdp": "full_shard"}, "training": {"micro_batch_size": 8, "seq_length": 8192}})",
      R"({"num_gpus": 8})", R"({"num_gpus": 1})"};
  std::size_t fixes = 0;
  for (const std::string& layout : layouts) {
    for (const std::string& require : requires_) {
      json run = json::parse(test::run_text(layout));
      run["require"] = json::parse(require);
      const std::string file = folder.write("run.json", run.dump());
      const test::ProcessResult before = check({file, "--json"});
      CAPTURE(run.dump(), before.out, before.err);
      REQUIRE((before.status == 0 || before.status == 1));
      const json answer = json::parse(before.out)["files"][0];
      if (answer["fix"].is_null()) continue;
      CHECK(before.status == 1);
      ++fixes;
      std::vector<std::string> words = words_of(answer["fix"].get<std::string>());
      words.insert(words.begin(), file);
      const test::ProcessResult after = check(words);
      CAPTURE(after.out, after.err);
      CHECK(after.status == 0);
    }
  }
  CHECK(fixes >= 12);
}

TEST_CASE("states on the host come before more GPUs") {
  const test::TemporaryFolder folder;
  json run =
      json::parse(test::run_text(R"({"num_gpus": 8, "model": "llama-3.1-70b", "parallel": {"fsdp": "full_shard"}})"));
  const test::ProcessResult result = check({folder.write("run.json", run.dump()), "--json"});
  CAPTURE(result.out, result.err);
  const std::string fix = json::parse(result.out)["files"][0]["fix"].get<std::string>();
  CHECK_THAT(fix, test::Contains("--offload optimizer=cpu,parameters=cpu"));
  CHECK_THAT(fix, !test::Contains("--gpus"));
}

TEST_CASE("what the command line requires has no line of the file") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("run.json", test::run_text(R"({"require": {"min_mfu": 0.9}})"));
  const auto line = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {file, "--json"});
    const json failures = json::parse(check(words).out)["files"][0]["failures"];
    for (const json& failure : failures) {
      if (failure["requirement"] == "min_mfu") return failure["line"];
    }
    return json("none");
  };
  CHECK(line({}) > 1);
  CHECK(line({"--set", "require.min_mfu=0.8"}).is_null());
}

TEST_CASE("exit statuses: 0 all pass, 1 one fails, 2 one cannot be read, whatever the others say") {
  const test::TemporaryFolder folder;
  const std::string good = folder.write("good.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  const std::string bad = folder.write("bad.json", test::run_text(R"({"num_gpus": 1})"));
  const std::string broken = folder.write("broken.json", "{");
  CHECK(check({good}).status == 0);
  CHECK(check({good, bad}).status == 1);
  CHECK(check({broken, good, bad}).status == 2);
  CHECK(check({good, folder.path() + "/none.json"}).status == 2);
  const test::ProcessResult all = check({folder.path(), "--json"});
  CHECK(all.status == 2);
  const json answer = json::parse(all.out);
  CHECK(answer["passed"] == 1);
  CHECK(answer["failed"] == 1);
  CHECK(answer["errors"] == 1);
  CHECK_THAT(all.err, test::Contains("broken.json"));
  for (const char* const format : {"text", "markdown", "csv", "junit", "github", "sarif"}) {
    CAPTURE(format);
    CHECK(check({folder.path(), "--format", format}).status == 2);
    CHECK(check({good, "--format", format}).status == 0);
  }
}

TEST_CASE("files, folders and patterns") {
  const test::TemporaryFolder folder;
  const std::string base = folder.path();
  const std::string run = test::run_text("{}");
  std::filesystem::create_directories(base + "/a/b");
  std::filesystem::create_directories(base + "/.hidden");
  folder.write("a/one.json", run);
  folder.write("a/b/two.json", run);
  folder.write("a/b/broken.json", "{");
  folder.write("a/b/note.txt", run);
  folder.write(".hidden/three.json", run);
  folder.write("a/model.json", R"({"model_type": "llama"})");
  folder.write("a/empty.json", "{}");
  folder.write("a/named.json", R"({"$schema": "../schema/run.schema.json"})");
  using Names = std::vector<std::string>;
  const auto of = [&](const std::vector<std::string>& words) { return shardplan::cli::check_files(words); };
  const auto tree = of({base});
  CHECK(names(tree, base) == Names{"a/b/broken.json", "a/b/two.json", "a/named.json", "a/one.json"});
  CHECK(tree.notes.size() == 1);  // model.json and empty.json
  CHECK(names(of({base + "/**/t*.json"}), base) == Names{"a/b/two.json"});
  CHECK(names(of({base + "/a/[no]*.json"}), base) == Names{"a/named.json", "a/one.json"});
  CHECK(names(of({base + "/*/?ne.json", base + "/a/one.json", base + "/a/../a/one.json"}), base) ==
        Names{"a/one.json"});
  CHECK(of({base + "/x*.json"}).problems.size() == 1);
  CHECK(of({base + "/.hidden"}).paths.size() == 1);       // asked for by name
  CHECK(of({base + "/nothing.json"}).paths.size() == 1);  // reading it says what is wrong
}

TEST_CASE("what cannot be looked into is no pass, what is left out is named") {
  const test::TemporaryFolder folder;
  const std::string base = folder.path();
  folder.write("good.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  std::filesystem::create_directories(base + "/other/sub");
  folder.write("other/UPPER.JSON", "{");
  folder.write("other/cluster.json", R"({"gpu": "H100-SXM-80GB", "gpus_per_node": 8})");
  folder.write("other/misspelt.json", R"({"modle": "llama-3.1-8b", "cluster": "dgx-h100"})");
  folder.write("other/nothing.json", "{}");
  std::filesystem::create_symlink(base + "/nowhere.json", base + "/other/dangling.json");
  std::filesystem::create_directory_symlink(base + "/other/sub", base + "/other/link");
  using Names = std::vector<std::string>;
  const auto other = shardplan::cli::check_files({base + "/other"});
  CHECK(names(other, base) == Names{"other/UPPER.JSON", "other/dangling.json", "other/misspelt.json"});
  REQUIRE(other.notes.size() == 2);
  CHECK_THAT(other.notes[0],
             test::Contains("2 JSON files") && test::Contains("cluster.json") && test::Contains("nothing.json"));
  CHECK_THAT(other.notes[1], test::Contains("link"));
  CHECK(check({base}).status == 2);
  // Who is root looks into everything.
  std::filesystem::permissions(base + "/other", std::filesystem::perms::none);
  const bool closed = std::filesystem::status(base + "/other").permissions() == std::filesystem::perms::none &&
                      access((base + "/other").c_str(), R_OK) != 0;
  const auto all = shardplan::cli::check_files({base});
  if (closed) {
    CHECK(names(all, base) == Names{"good.json"});
    CHECK(all.problems.size() == 1);
  }
  std::filesystem::permissions(base + "/other", std::filesystem::perms::owner_all);
}

TEST_CASE("braces are alternatives, and what follows two dashes is a file") {
  const test::TemporaryFolder folder;
  const std::string base = folder.path();
  for (const char* const name : {"ab.json", "ac.json", "d.json", "-lead.json"})
    folder.write(name, test::run_text("{}"));
  using Names = std::vector<std::string>;
  const auto of = [&](const std::string& word) {
    return names(shardplan::cli::check_files({base + "/" + word}), base);
  };
  CHECK(of("{a{b,c},d}.json") == Names{"ab.json", "ac.json", "d.json"});
  CHECK(of("{d,x}*.json") == Names{"d.json"});
  CHECK(shardplan::cli::check_files({base + "/{x,y}.json"}).problems.size() == 1);
  const test::ProcessResult dashed =
      test::run_process({SHARDPLAN_BINARY, "check", "--json", "--", "-lead.json"}, {}, base);
  CAPTURE(dashed.err);
  CHECK(json::parse(dashed.out)["files"][0]["path"] == "-lead.json");
}

TEST_CASE("a file's name may be no UTF-8, its report is") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("bad\xff.json", test::run_text("{}"));
  const std::string path = json::parse(check({file, "--json"}).out)["files"][0]["path"];
  CHECK_THAT(path, test::Contains("bad\xEF\xBF\xBD.json"));
  CHECK_THAT(check({file, "--format", "junit"}).out, !test::Contains("\xff"));
}

TEST_CASE("a fix names the typed flag that gives way, and what it costs") {
  const test::TemporaryFolder folder;
  const std::string file = folder.write("run.json", test::run_text(R"({"num_gpus": 1, "training":
      {"micro_batch_size": 4, "seq_length": 4096, "peft": {"rank": 16}}, "require": {"min_headroom_gib": 20}})"));
  const test::ProcessResult before = check({file, "--mbs", "16", "--gbs", "64"});
  CAPTURE(before.out, before.err);
  CHECK_THAT(before.out, test::Contains("for --mbs 16"));
  CHECK_THAT(before.out, test::Contains("slower"));
}

TEST_CASE("a baseline is a folder, an earlier answer or one run") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() + "/before");
  const std::string now = folder.write("run.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  const std::string other = folder.write("new.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  folder.write("before/run.json",
               test::run_text(R"({"parallel": {"fsdp": "full_shard"}, "training": {"seq_length": 2048}})"));
  const test::ProcessResult with_folder = check({now, other, "--baseline", folder.path() + "/before", "--json"});
  const json answer = json::parse(with_folder.out);
  CHECK(answer["files"][0]["baseline"]["peak_bytes"] < answer["files"][0]["figures"]["peak_bytes"]);
  CHECK(answer["files"][1]["baseline"].is_null());
  const std::string earlier = folder.write("earlier.json", check({now, "--json"}).out);
  const json same = json::parse(check({now, other, "--baseline", earlier, "--json"}).out);
  CHECK(same["files"][0]["baseline"] == same["files"][0]["figures"]);
  CHECK(same["files"][1]["baseline"].is_null());
  const json one = json::parse(check({now, other, "--baseline", folder.path() + "/before/run.json", "--json"}).out);
  CHECK(one["files"][1]["baseline"] == answer["files"][0]["baseline"]);
  // Flags change the runs and not what they were, but where a file is no run without them.
  const json changed =
      json::parse(check({now, "--seq", "1024", "--baseline", folder.path() + "/before", "--json"}).out);
  CHECK(changed["files"][0]["figures"] != answer["files"][0]["figures"]);
  CHECK(changed["files"][0]["baseline"] == answer["files"][0]["baseline"]);
  folder.write("before/run.json", test::run_text(R"({"cluster": null, "parallel": {"fsdp": "full_shard"}})"));
  const json completed =
      json::parse(check({now, "--cluster", "dgx-h100", "--baseline", folder.path() + "/before", "--json"}).out);
  CHECK(completed["files"][0]["baseline"] == completed["files"][0]["figures"]);
  // The ends of paths: another checkout, seen from outside of this one.
  std::filesystem::create_directories(folder.path() + "/new/runs");
  std::filesystem::create_directories(folder.path() + "/old/runs");
  const std::string moved = folder.write("new/runs/a.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  folder.write("old/runs/a.json", test::run_text(R"({"parallel": {"fsdp": "full_shard"}})"));
  const json ends = json::parse(check({moved, "--baseline", folder.path() + "/old", "--json"}).out);
  CHECK(ends["files"][0]["baseline"] == ends["files"][0]["figures"]);
  const test::ProcessResult nowhere = check({moved, "--baseline", folder.path() + "/new/runs/nothing", "--json"});
  CHECK(nowhere.status == 2);
  std::filesystem::create_directories(folder.path() + "/empty");
  CHECK_THAT(check({moved, "--baseline", folder.path() + "/empty"}).err, test::Contains("has none of these runs"));
  folder.write("old/runs/a.json", "{");
  const test::ProcessResult broken = check({moved, "--baseline", folder.path() + "/old"});
  CHECK_THAT(broken.err, test::Contains("no legal run"));
  CHECK_THAT(broken.out, !test::Contains("the run is new"));
  CHECK(check({now, "--baseline", folder.path() + "/none"}).status == 2);
  const std::string wrong = folder.write("wrong.json", R"({"schema": "shardplan/check/v1", "files": 3})");
  CHECK(check({now, "--baseline", wrong}).status == 2);
}

TEST_CASE("the numbers are those of estimate") {
  const test::TemporaryFolder folder;
  test::Random random(5);
  for (int i = 0; i < 12; ++i) {
    const std::string file = folder.write("run.json", test::random_run(random).dump());
    const test::ProcessResult estimate = test::run_process({SHARDPLAN_BINARY, "estimate", file, "--json"});
    const test::ProcessResult checked = check({file, "--json"});
    CAPTURE(test::read_file(file), estimate.err);
    CHECK(checked.status == estimate.status);
    if (estimate.status == 2) continue;
    const json figures = json::parse(checked.out)["files"][0]["figures"];
    const json whole = json::parse(estimate.out);
    CHECK(figures["peak_bytes"] == whole["memory"]["peak_bytes"]);
    CHECK(figures["fits"] == whole["memory"]["fits"]);
    CHECK(figures["step_s"] == whole["time"]["step_s"]);
    CHECK(figures["mfu"] == whole["throughput"]["mfu"]);
  }
}
