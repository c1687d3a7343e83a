#include "session/trace_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

namespace vatlas::runtime {
namespace {

constexpr std::uint64_t kPipeTracks = 1'000'000;

// Microseconds with all picoseconds, as the format wants decimal numbers.
std::string microseconds(sim::SimTime t) {
  return fmt::format("{}.{:06}", t / 1'000'000, t % 1'000'000);
}

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
  static constexpr std::array<std::string_view, sim::kPipeCount> kNames = {"S",    "V",    "M",  "MTE1",
                                                                           "MTE2", "MTE3", "FIX"};
  return kNames[static_cast<std::size_t>(pipe)];
}

}  // namespace

std::unique_ptr<TraceWriter> TraceWriter::open(const std::string& path, int cores, int cards) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return nullptr;
  std::fputs("[\n", file);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(file, cores, cards));
  writer->path_ = path;
  writer->offset_ = 2;
  for (int card = 0; card < cards; ++card) {
    writer->write(
        fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", card, card),
        -1, card, 0);
  }
  writer->write(
      fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"links and memories"}}}})",
                  cards),
      -1, cards, 0);
  return writer;
}

TraceWriter::~TraceWriter() {
  std::fputs("\n]\n", file_);
  std::fclose(file_);
  putInOrder();
}

// A new file takes the old one's place when it is complete; when it cannot be made, the old one stays.
void TraceWriter::putInOrder() {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.at, a.process, a.track) < std::tie(b.at, b.process, b.track);
  });
  const std::string sorted = path_ + ".part";
  std::FILE* from = std::fopen(path_.c_str(), "re");
  std::FILE* to = std::fopen(sorted.c_str(), "we");
  bool good = from != nullptr && to != nullptr && std::fputs("[\n", to) >= 0;
  std::string event;
  for (std::size_t i = 0; good && i < entries_.size(); ++i) {
    event.resize(entries_[i].length);
    good = std::fseek(from, static_cast<long>(entries_[i].offset), SEEK_SET) == 0 &&
           std::fread(event.data(), 1, event.size(), from) == event.size() &&
           (i == 0 || std::fputs(",\n", to) >= 0) &&
           std::fwrite(event.data(), 1, event.size(), to) == event.size();
  }
  good = good && std::fputs("\n]\n", to) >= 0;
  if (from != nullptr) std::fclose(from);
  if (to != nullptr) good = std::fclose(to) == 0 && good;
  if (!good || std::rename(sorted.c_str(), path_.c_str()) != 0) std::remove(sorted.c_str());
}

void TraceWriter::write(const std::string& event, sim::SimTime at, int process, std::uint64_t track) {
  if (!entries_.empty()) offset_ += 2;
  if (!entries_.empty()) std::fputs(",\n", file_);
  std::fwrite(event.data(), 1, event.size(), file_);
  entries_.push_back({at, process, track, offset_, static_cast<std::uint32_t>(event.size())});
  offset_ += event.size();
}

bool TraceWriter::wantsCore(int, int core) const {
  return cores_ < 0 || core < cores_;
}

void TraceWriter::nameTrack(int process, std::uint64_t track, const std::string& name) {
  if (!named_.insert({process, track}).second) return;
  write(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", process,
                    track, name),
        -1, process, track);
  write(fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
                    process, track, track),
        -1, process, track);
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
  write(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{{}}}}})",
                    quoted(span.name), span.card, track, microseconds(span.start),
                    microseconds(span.end - span.start), args),
        span.start, span.card, track);
}

void TraceWriter::counter(int resource, std::string_view name, sim::SimTime at, double bytesPerSecond) {
  const auto [known, fresh] = lastRate_.try_emplace(resource, -1.0);
  if (!fresh && known->second == bytesPerSecond) return;
  known->second = bytesPerSecond;
  write(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{},"args":{{"GB/s":{:.3f}}}}})", quoted(name),
                    cards_, microseconds(at), bytesPerSecond / 1e9),
        at, cards_, static_cast<std::uint64_t>(resource));
}

}  // namespace vatlas::runtime
