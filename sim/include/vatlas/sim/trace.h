// What the model tells a trace. Strings are static or owned by the caller for the length of the call.
#pragma once

#include <cstdint>
#include <string_view>

#include "vatlas/sim/core_port.h"
#include "vatlas/sim/time.h"

namespace vatlas::sim {

enum class TraceTrack : std::uint8_t { Stream, CorePipe, Resource };

struct TraceSpan {
  int card = 0;
  TraceTrack track = TraceTrack::Stream;
  std::uint32_t core = 0;    // CorePipe
  Pipe pipe = Pipe::S;       // CorePipe
  std::uint64_t stream = 0;  // Stream
  std::string_view name;
  SimTime start = 0;
  SimTime end = 0;
  std::uint64_t bytes = 0;  // copies
  int peer = -1;            // copies: the card of the memory, when it is another
};

class TraceSink {
 public:
  virtual ~TraceSink() = default;
  virtual bool wantsCore(int card, int core) const = 0;  // spans of this core's pipes are asked for
  virtual void span(const TraceSpan& span) = 0;
  virtual void counter(int resource, std::string_view name, SimTime at, double bytesPerSecond) = 0;
};

}  // namespace vatlas::sim
