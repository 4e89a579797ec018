# Defaults, legality and what is said about a broken rule.
target_sources(shardplan PRIVATE
  describe.cpp
  describe_model.cpp
  describe_schedule.cpp
  describe_sharding.cpp
  describe_training.cpp
  describe_world.cpp
  legality.cpp
  resolve.cpp
  validate.cpp)
