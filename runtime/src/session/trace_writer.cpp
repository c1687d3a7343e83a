#include "session/trace_writer.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <tuple>
#include <utility>

namespace vatlas::runtime {
namespace {

constexpr std::uint64_t kPipeTracks = 1'000'000;
constexpr const char* kPart = ".part";      // events as they come
constexpr const char* kSorted = ".sorted";  // the file in the making

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
  std::error_code unknown;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, unknown);
  const std::string target = unknown ? path : real.string();
  struct stat info {};
  const bool exists = stat(target.c_str(), &info) == 0;
  if (exists && (S_ISDIR(info.st_mode) || access(target.c_str(), W_OK) != 0)) return nullptr;
  const bool direct = exists && !S_ISREG(info.st_mode);
  std::FILE* file = direct ? std::tmpfile() : std::fopen((target + kPart).c_str(), "w+e");
  if (file == nullptr) return nullptr;
  std::fputs("[\n", file);
  std::unique_ptr<TraceWriter> writer(new TraceWriter(file, cores, cards));
  writer->target_ = target;
  writer->direct_ = direct;
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
  if (!close()) fmt::print(stderr, "vatlas: the trace {} cannot be written\n", target_);
}

bool TraceWriter::close() {
  if (file_ == nullptr) return true;
  const std::string sorted = direct_ ? target_ : target_ + kSorted;
  std::FILE* to = std::fopen(sorted.c_str(), "we");
  bool good = to != nullptr && putInOrder(to);
  if (to != nullptr) good = std::fclose(to) == 0 && good;
  std::fclose(std::exchange(file_, nullptr));
  if (direct_) return good;
  good = good && std::rename(sorted.c_str(), target_.c_str()) == 0;
  if (to != nullptr && !good) std::remove(sorted.c_str());
  std::remove((target_ + kPart).c_str());
  return good;
}

bool TraceWriter::putInOrder(std::FILE* to) {
  std::stable_sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.at, a.process, a.track) < std::tie(b.at, b.process, b.track);
  });
  bool good = std::fflush(file_) == 0 && std::ferror(file_) == 0 && std::fputs("[\n", to) >= 0;
  std::string event;
  for (std::size_t i = 0; good && i < entries_.size(); ++i) {
    event.resize(entries_[i].length);
    good = pread(fileno(file_), event.data(), event.size(), static_cast<off_t>(entries_[i].offset)) ==
               static_cast<ssize_t>(event.size()) &&
           (i == 0 || std::fputs(",\n", to) >= 0) &&
           std::fwrite(event.data(), 1, event.size(), to) == event.size();
  }
  return good && std::fputs("\n]\n", to) >= 0;
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
