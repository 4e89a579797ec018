// Draws the schema of a document from the calls that write it: members and their order, words, lists, what may be null
// or absent. Every object is closed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json_writer.hpp"
#include "parts.hpp"

namespace shardplan::io::schema {

class SchemaWriter final : public JsonWriter {
 public:
  void integer(std::string_view name, std::int64_t value, Whole whole) override;
  void real(std::string_view name, double value) override;
  void count(std::string_view name, double value) override;
  void boolean(std::string_view name, bool value) override;
  void text(std::string_view name, std::string_view value) override;
  void null(std::string_view name) override;
  void json(std::string_view name, std::string_view value) override;
  void constant(std::string_view name, std::string_view value) override;
  void word(std::string_view name, std::string_view value, std::span<const std::string_view> words) override;
  void like(std::string_view place) override { like_ = place; }
  bool describes() const override { return true; }

  /// Of the documents that were written, in their order.
  const std::vector<Json>& documents() const noexcept { return documents_; }

 protected:
  void begin(std::string_view name, char bracket, Lines lines) override;
  void end(char bracket) override;
  void may_be_null() override { null_next_ = true; }
  void expect(const Entries& entries) override { expected_ = entries; }

 private:
  struct Level {
    std::string name;
    bool nullable = false;
    std::string like = {};
    int optional_outside = 0;  ///< parts of the object around it
    JsonWriter::Entries expected = {};
    Json properties = Json::object();
    std::vector<std::string> required = {};
    std::vector<Json> entries = {};  ///< of a list, each shape once
  };

  void add(std::string_view name, Json schema);

  std::vector<Level> levels_;
  std::vector<Json> documents_;
  // Of the next value.
  bool null_next_ = false;
  std::string like_;
  Entries expected_;
};

}  // namespace shardplan::io::schema
