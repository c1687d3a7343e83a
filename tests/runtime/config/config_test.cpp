// The shipped configurations say what the public figures say.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "vatlas/runtime/config.h"
#include "vatlas/runtime/version.h"

using namespace vatlas;
using namespace vatlas::runtime;

namespace {

sim::ClusterConfig shipped(const std::string& name) {
  return loadCluster(findCluster(name));
}

int linksBetween(const sim::ClusterConfig& c, int a, int b, sim::LinkKind kind) {
  int ports = 0;
  for (const sim::LinkConfig& link : c.links) {
    if (link.kind == kind && ((link.cardA == a && link.cardB == b) || (link.cardA == b && link.cardB == a)))
      ports += link.ports;
  }
  return ports;
}

}  // namespace

TEST_CASE("products carry the figures of the platform description") {
  const sim::ProductConfig pr = shipped("ascend950pr_8p").product;
  CHECK(pr.socVersion == "Ascend950PR_9589");
  CHECK(pr.aicCount == 32);
  CHECK(pr.aivCount == 64);
  CHECK(pr.core.clockMhz == 1650);
  CHECK(pr.memory.bytes == std::uint64_t{128} << 30);
  CHECK(pr.memory.bandwidthBytesPerSecond == Approx(1.637e12).epsilon(0.03));
  CHECK(pr.core.ubUsableBytes == 248 * 1024);
  CHECK(pr.npuArch == 3510);
  const sim::ProductConfig dt = shipped("ascend950dt_8p").product;
  CHECK(dt.socVersion == "Ascend950DT_9581");
  CHECK(dt.memory.bytes == std::uint64_t{144} << 30);
  CHECK(dt.memory.bandwidthBytesPerSecond == Approx(4.22e12).epsilon(0.01));
  const sim::ProductConfig card = shipped("atlas350_4p").product;
  CHECK(card.socVersion == "Ascend950PR_957b");
  CHECK(card.aicCount == 28);
  CHECK(card.aivCount == 56);
  CHECK(card.memory.bytes == std::uint64_t{112} << 30);
  CHECK(card.memory.bandwidthBytesPerSecond == Approx(1.4e12).epsilon(0.02));
}

TEST_CASE("every number of every product has a class and a source") {
  const std::set<std::string> classes = {"official", "measured", "derived", "estimate", "assumed"};
  for (const std::string& name : listShippedProducts()) {
    const auto notes = parameterNotes(findProduct(name));
    CHECK(notes.size() > 30);
    for (const ParameterNote& note : notes) {
      CAPTURE(name, note.name);
      CHECK(classes.count(note.confidence) == 1);
      CHECK_FALSE(note.source.empty());
    }
  }
}

TEST_CASE("950 clusters are full meshes, Atlas 350 is wired as the cards are") {
  for (const char* product : {"ascend950pr", "ascend950dt"}) {
    for (const int ranks : {2, 4, 8}) {
      const sim::ClusterConfig c = shipped(product + ("_" + std::to_string(ranks)) + "p");
      CHECK(c.ranks == ranks);
      CHECK(c.links.size() == static_cast<std::size_t>(ranks * (ranks - 1) / 2));
      for (const sim::LinkConfig& link : c.links) CHECK(link.bandwidthBytesPerSecond == Approx(47e9));
    }
  }
  CHECK(linksBetween(shipped("atlas350_2p"), 0, 1, sim::LinkKind::UnifiedBus) == 4);
  const sim::ClusterConfig four = shipped("atlas350_4p");
  const sim::ClusterConfig eight = shipped("atlas350_8p");
  for (int a = 0; a < 8; ++a) {
    for (int b = a + 1; b < 8; ++b) {
      if (b < 4) CHECK(linksBetween(four, a, b, sim::LinkKind::UnifiedBus) == 1);
      CHECK(linksBetween(eight, a, b, sim::LinkKind::UnifiedBus) == (a / 4 == b / 4 ? 1 : 0));
    }
  }
}

TEST_CASE("the support matrix names what it refuses") {
  const SupportMatrix matrix = loadSupportMatrix();
  CHECK_FALSE(matrix.check("quant_all_reduce", shipped("ascend950dt_8p")));
  CHECK_FALSE(matrix.check("quant_reduce_scatter", shipped("atlas350_4p")));
  const auto why = matrix.check("quant_all_reduce", shipped("atlas350_8p"));
  REQUIRE(why);
  CHECK_THAT(*why, Catch::Contains("UnifiedBus") && Catch::Contains("atlas350_8p"));
  CHECK_FALSE(matrix.check("quant_all_reduce", shipped("atlas350_8p"), std::vector<int>{0, 1, 2, 3}));
  CHECK_THROWS_AS(matrix.check("no_such_feature", shipped("ascend950dt_8p")), std::out_of_range);
}

TEST_CASE("a canonical cluster file loads as the same cluster") {
  for (const std::string& name : listShippedClusters()) {
    const sim::ClusterConfig original = shipped(name);
    const std::string path = "/tmp/vatlas_canonical_" + std::to_string(getpid()) + ".json";
    std::ofstream(path) << canonicalJson(original);
    const sim::ClusterConfig again = loadCluster(path);
    std::remove(path.c_str());
    CAPTURE(name);
    REQUIRE(again.links.size() == original.links.size());
    for (std::size_t i = 0; i < original.links.size(); ++i) {
      CHECK(again.links[i].cardA == original.links[i].cardA);
      CHECK(again.links[i].cardB == original.links[i].cardB);
      CHECK(again.links[i].bandwidthBytesPerSecond == original.links[i].bandwidthBytesPerSecond);
      CHECK(again.links[i].readLatency == original.links[i].readLatency);
    }
    CHECK(again.driverVersion == original.driverVersion);
    CHECK(again.product.socVersion == original.product.socVersion);
  }
}

TEST_CASE("versions are ordered as releases are") {
  const std::vector<const char*> ascending = {
      "8.0.RC1.alpha2", "8.0.RC1", "8.0.RC2", "8.0", "8.0.0.SPC1", "8.1", "9.1.0-beta.1", "9.1.0", "25.5.0"};
  for (std::size_t i = 1; i < ascending.size(); ++i) {
    const auto low = Version::parse(ascending[i - 1]);
    const auto high = Version::parse(ascending[i]);
    CAPTURE(ascending[i - 1], ascending[i]);
    REQUIRE((low && high));
    CHECK(*low < *high);
  }
  CHECK(*Version::parse("8.0") == *Version::parse("8.0.0"));
  for (const char* bad : {"", "x", "8..0", "1.2.3.4.5", "9999999999.1"}) {
    CAPTURE(bad);
    CHECK_FALSE(Version::parse(bad));
  }
}
