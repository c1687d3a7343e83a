// Writes what the model tells as a Chrome trace (JSON array of events), which Perfetto opens. Events are
// streamed to FILE.part, which is of use after a crash; at the end they are put into the order of (time,
// process, track), because the model tells what different cards do in an order that may depend on the host,
// and FILE takes its place. What is no regular file (a pipe, a device) is written directly at the end. No
// wall time, process or thread ids of the host.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vatlas/sim/trace.h"

namespace vatlas::runtime {

class TraceWriter final : public sim::TraceSink {
 public:
  // cores: AIV cores a card with all their pipes; -1: all. Null with errno set when the file cannot be
  // opened.
  static std::unique_ptr<TraceWriter> open(const std::string& path, int cores, int cards);
  ~TraceWriter() override;
  // Puts the file in its place; false when it cannot be written.
  bool close();

  bool wantsCore(int card, int core) const override;
  void span(const sim::TraceSpan& span) override;
  void counter(int resource, std::string_view name, sim::SimTime at, double bytesPerSecond) override;

 private:
  TraceWriter(std::FILE* file, int cores, int cards) : file_(file), cores_(cores), cards_(cards) {}
  void nameTrack(int process, std::uint64_t track, const std::string& name);
  struct Entry {
    sim::SimTime at;
    int process;
    std::uint64_t track;
    std::uint64_t offset;
    std::uint32_t length;
  };
  void write(const std::string& event, sim::SimTime at, int process, std::uint64_t track);
  bool putInOrder(std::FILE* to);

  std::FILE* file_;
  int cores_;
  int cards_;
  std::string target_;  // where links lead
  bool direct_ = false;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
  std::set<std::pair<int, std::uint64_t>> named_;
  std::map<int, double> lastRate_;
};

}  // namespace vatlas::runtime
