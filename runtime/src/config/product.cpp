// Product files: one card.
#include <array>
#include <cmath>
#include <utility>

#include "parse.h"
#include "schema.h"

namespace vatlas::runtime {
namespace config {
namespace {

using sim::SimTime;

struct Unit {
  const char* name;
  double factor;
};

// A kind of quantity: its units as multiples of the model's own, and what the model can cope with.
struct Dimension {
  std::span<const Unit> units;
  double least;
  double most;
  const char* range;
};

constexpr Unit kTimeUnits[] = {{"ps", 1}, {"ns", 1e3}, {"us", 1e6}, {"ms", 1e9}, {"s", 1e12}};
constexpr Unit kBandwidthUnits[] = {{"B/s", 1}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kSizeUnits[] = {{"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}};
constexpr Unit kFrequencyUnits[] = {{"MHz", 1}, {"GHz", 1000}};
constexpr Unit kOtherUnits[] = {{"cycles", 1}, {"cycles/repeat", 1}, {"B/cycle", 1}, {"count", 1}};

constexpr Dimension kTime{kTimeUnits, 0, 1e18, "0 to 1000000 s"};
constexpr Dimension kBandwidth{kBandwidthUnits, 1e6, 1e15, "1 MB/s to 1000 TB/s"};
constexpr Dimension kMemorySize{kSizeUnits, 1048576, 1099511627776.0, "1 MiB to 1024 GiB"};
constexpr Dimension kBufferSize{kSizeUnits, 1024, 67108864, "1 KiB to 64 MiB"};
constexpr Dimension kFrequency{kFrequencyUnits, 1, 100000, "1 MHz to 100 GHz"};
constexpr Dimension kCycles{kOtherUnits, 0, 1e9, "0 to 1e9"};
constexpr Dimension kPortRate{kOtherUnits, 0.01, 1e6, "0.01 to 1e6"};
constexpr Dimension kCores{kOtherUnits, 1, 1024, "1 to 1024"};
constexpr Dimension kPorts{kOtherUnits, 1, 1000, "1 to 1000"};
constexpr Dimension kArch{kOtherUnits, 1, 1e6, "1 to 1000000"};

constexpr std::array<const char*, sim::kVectorOpCount> kVectorOpNames = {
    "Add",  "Mul",        "Sub",       "Div",       "MaxMin", "Logic",         "Duplicate",
    "Cast", "CastWiden8", "Broadcast", "ReduceSum", "Copy",   "Transcendental"};
constexpr std::array<sim::VectorOp, sim::kVectorOpCount> kVectorOps = {
    sim::VectorOp::Add,           sim::VectorOp::Mul,       sim::VectorOp::Sub,       sim::VectorOp::Div,
    sim::VectorOp::MaxMin,        sim::VectorOp::Logic,     sim::VectorOp::Duplicate, sim::VectorOp::Cast,
    sim::VectorOp::CastWiden8,    sim::VectorOp::Broadcast, sim::VectorOp::ReduceSum, sim::VectorOp::Copy,
    sim::VectorOp::Transcendental};

// The members of one object of a document that has passed its schema.
class Group {
 public:
  Group(const Node& node, std::string path, Problems& problems)
      : node_(node), path_(std::move(path)), problems_(problems) {}

  Group group(const char* key) const { return {*node_.find(key), childPath(path_, key), problems_}; }
  const std::string& text(const char* key) const { return node_.find(key)->text; }

  // In the model's unit.
  double quantity(const char* key, const Dimension& dimension) const {
    const Node& value = *node_.find(key)->find("value");
    const std::string& unitName = node_.find(key)->find("unit")->text;
    double factor = 1;
    for (const Unit& unit : dimension.units) {
      factor = unitName == unit.name ? unit.factor : factor;
    }
    const double result = value.number * factor;
    if (!(result >= dimension.least && result <= dimension.most)) {
      fail(key, fmt::format("found {} {}; allowed {}", value.number, unitName, dimension.range));
      return dimension.least;
    }
    return result;
  }
  SimTime time(const char* key) const { return static_cast<SimTime>(std::llround(quantity(key, kTime))); }
  std::uint64_t size(const char* key, const Dimension& dimension) const {
    return static_cast<std::uint64_t>(quantity(key, dimension));
  }
  int count(const char* key, const Dimension& dimension) const {
    return static_cast<int>(quantity(key, dimension));
  }
  void fail(const char* key, const std::string& text) const {
    problems_.add(ConfigErrorCode::OutOfRange, node_.find(key)->find("value")->offset,
                  childPath(childPath(path_, key), "value"), text);
  }

 private:
  const Node& node_;
  std::string path_;
  Problems& problems_;
};

sim::CoreConfig readCore(const Group& group) {
  sim::CoreConfig core;
  core.clockMhz = group.quantity("clock", kFrequency);
  core.ubBytes = group.size("ub_size", kBufferSize);
  core.ubUsableBytes = group.size("ub_usable", kBufferSize);
  if (core.ubUsableBytes > core.ubBytes) {
    group.fail("ub_usable",
               fmt::format("found {} B; allowed at most ub_size, {} B", core.ubUsableBytes, core.ubBytes));
  }
  core.scalarIssueCycles = group.quantity("scalar_issue", kCycles);
  core.scalarLoadCycles = group.quantity("scalar_load", kCycles);
  core.mteIssueCycles = group.quantity("mte_issue", kCycles);
  core.mteLoadBytesPerCycle = group.quantity("mte_load", kPortRate);
  core.mteStoreBytesPerCycle = group.quantity("mte_store", kPortRate);
  const Group vector = group.group("vector");
  for (std::size_t i = 0; i < kVectorOps.size(); ++i) {
    const Group cost = vector.group(kVectorOpNames[i]);
    core.vector[static_cast<std::size_t>(kVectorOps[i])] = {cost.quantity("fixed", kCycles),
                                                            cost.quantity("per_repeat", kCycles)};
  }
  return core;
}

sim::PortConfig readPort(const Group& group) {
  sim::PortConfig port;
  port.rawBytesPerSecond = group.quantity("raw_bandwidth", kBandwidth);
  port.bandwidthBytesPerSecond = group.quantity("bandwidth", kBandwidth);
  if (port.bandwidthBytesPerSecond > port.rawBytesPerSecond) {
    group.fail("bandwidth", fmt::format("found {} B/s; allowed at most raw_bandwidth, {} B/s",
                                        port.bandwidthBytesPerSecond, port.rawBytesPerSecond));
  }
  port.readLatency = group.time("read_latency");
  port.writeLatency = group.time("write_latency");
  return port;
}

void collectNotes(const Node& node, const std::string& name, std::vector<ParameterNote>& notes) {
  if (const Node* value = node.find("value"); value != nullptr) {
    notes.push_back(
        {name, value->number, node.find("unit")->text, node.find("class")->text, node.find("source")->text});
    return;
  }
  for (const Node::Member& member : node.members) {
    if (member.value.kind == Node::Kind::Object) {
      collectNotes(member.value, name.empty() ? member.key : name + "." + member.key, notes);
    }
  }
}

}  // namespace

sim::ProductConfig parseProduct(Problems& problems) {
  sim::ProductConfig product;
  checkSchema("product", problems);
  if (!problems.none()) {
    return product;
  }
  const Group root(problems.document().root, "$", problems);
  product.name = root.text("name");
  product.displayName = root.text("display_name");
  product.family = root.text("family");
  product.socVersion = root.text("soc_version");
  product.shortSocVersion = root.text("short_soc_version");
  product.npuArch = root.count("npu_arch", kArch);
  product.aicCount = root.count("aic_count", kCores);
  product.aivCount = root.count("aiv_count", kCores);
  product.core = readCore(root.group("core"));

  const Group memory = root.group("memory");
  product.memory = {memory.size("size", kMemorySize), memory.size("l2_size", kMemorySize),
                    memory.quantity("bandwidth", kBandwidth), memory.time("latency")};
  const Group port = root.group("port");
  product.port = readPort(port);
  product.portCount = port.count("count", kPorts);
  const Group pcie = root.group("pcie");
  product.pcie = {pcie.quantity("bandwidth", kBandwidth), pcie.time("latency"),
                  pcie.quantity("peer_bandwidth", kBandwidth), pcie.time("peer_read_latency"),
                  pcie.time("peer_write_latency")};
  const Group launch = root.group("launch");
  product.launch = {launch.time("dispatch"), launch.time("hardware_init"), launch.time("software_init"),
                    launch.time("report"), launch.time("per_block")};
  const Group host = root.group("host");
  product.host = {host.time("api_call"), host.time("launch"), host.time("stream_synchronize"),
                  host.time("event")};
  product.systemCounterMhz = root.quantity("system_counter", kFrequency);
  product.kernelTimeout = root.time("kernel_timeout");
  return product;
}

}  // namespace config

sim::ProductConfig loadProduct(const std::filesystem::path& path) {
  const config::Document document = config::loadDocument(path);
  config::Problems problems(document);
  sim::ProductConfig product = config::parseProduct(problems);
  problems.throwFirst();
  return product;
}

std::vector<ParameterNote> parameterNotes(const std::filesystem::path& product) {
  const config::Document document = config::loadDocument(product);
  config::Problems problems(document);
  config::parseProduct(problems);
  problems.throwFirst();
  std::vector<ParameterNote> notes;
  config::collectNotes(document.root, "", notes);
  return notes;
}

}  // namespace vatlas::runtime
