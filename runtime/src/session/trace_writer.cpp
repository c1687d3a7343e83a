#include "session/trace_writer.h"

#include <fmt/format.h>

#include <array>

namespace vatlas::runtime {
namespace {

constexpr std::uint64_t kPipeTracks = 1'000'000;

// Microseconds with all picoseconds, as the format wants decimal numbers.
std::string microseconds(sim::SimTime t) { return fmt::format("{}.{:06}", t / 1'000'000, t % 1'000'000); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string_view pipeName(sim::Pipe pipe) {
  static constexpr std::array<std::string_view, sim::kPipeCount> kNames = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX"};
  return kNames[static_cast<std::size_t>(pipe)];
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::open(const std::string& path, int cores, int cards) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return nullptr;
  std::fputs("[\n", file);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(file, cores, cards));
  for (int card = 0; card < cards; ++card) {
    writer->write(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", card, card));
  }
  writer->write(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"links and memories"}}}})", cards));
  return writer;
}

TraceWriter::~TraceWriter() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
}

void TraceWriter::write(const std::string& event) {
  if (!first_) std::fputs(",\n", file_);
  first_ = false;
  std::fwrite(event.data(), 1, event.size(), file_);
}

bool TraceWriter::wantsCore(int, int core) const { return cores_ < 0 || core < cores_; }

void TraceWriter::nameTrack(int process, std::uint64_t track, const std::string& name) {
  if (!named_.insert({process, track}).second) return;
  write(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", process, track, name));
  write(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", process, track, track));
}

void TraceWriter::span(const sim::TraceSpan& span) {
  std::uint64_t track = span.stream;
  if (span.track == sim::TraceTrack::CorePipe) {
    track = kPipeTracks + span.core * 8u + static_cast<std::uint64_t>(span.pipe);
    nameTrack(span.card, track, fmt::format("AIV {} {}", span.core, pipeName(span.pipe)));
  } else {
    nameTrack(span.card, track, fmt::format("stream {}", track));
  }
  std::string args;
  if (span.bytes != 0) args += fmt::format(R"("bytes":{})", span.bytes);
  if (span.peer >= 0) args += fmt::format(R"({}"card":{})", args.empty() ? "" : ",", span.peer);
  write(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})", quoted(span.name),
                    span.card, track, microseconds(span.start), microseconds(span.end - span.start), args));
}

void TraceWriter::counter(int resource, std::string_view name, sim::SimTime at, double bytesPerSecond) {
  const auto [known, fresh] = lastRate_.try_emplace(resource, -1.0);
  if (!fresh && known->second == bytesPerSecond) return;
  known->second = bytesPerSecond;
  write(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"GB/s":{:.3f}}}}})", quoted(name),
                    cards_, microseconds(at), bytesPerSecond / 1e9));
}

}  // namespace vatlas::runtime
