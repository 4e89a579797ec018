#include "traffic.hpp"

namespace shardplan::explain {

Moved moved(Card& c, const Weights& weights) {
  const DataVolumes<double> volumes = data_volumes<double>(c.workspace().rule, c.run().training, weights);
  Moved of;
  of.trained = weights.trained + weights.adapters;
  if (of.trained > 0) {
    of.gradient = volumes.gradients / of.trained;
    of.weight = volumes.updated / of.trained;
  }
  of.frozen = volumes.gathered - volumes.updated;
  return of;
}

Moved moved(Card& c) { return moved(c, c.workspace().stages.front().weights.dense); }

std::string data_traffic(Card& c) {
  std::string text;
  double sum = 0;
  int calls = 0;
  for (const CommunicationCall& call : c.estimate().communication) {
    const bool of_data = call.group == GroupKind::data || call.group == GroupKind::expert_data;
    if (!of_data || call.sent_bytes_per_step == 0) continue;
    const double sent = static_cast<double>(call.sent_bytes_per_step);
    text += fmt::format("{}{} {:.2f}", text.empty() ? "" : " + ", call.name, sent / shardplan::gib);
    sum += sent;
    ++calls;
  }
  return calls > 1 ? fmt::format("{} = {}", text, gib(sum)) : calls == 1 ? text + " GiB" : text;
}

std::string sharding(const Run& run) {
  return run.parallel.fsdp != Fsdp::none ? std::string(name(run.parallel.fsdp))
                                         : fmt::format("ZeRO-{}", run.parallel.zero_stage);
}

}  // namespace shardplan::explain
