#include <fmt/format.h>
#include <strings.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "commands.h"
#include "npy.h"
#include "vatlas/runtime/config.h"
#include "vatlas/vatlas.h"

using namespace vatlas::tools;

namespace {

const std::vector<std::string> kX = {"int8", "hifloat8", "float8_e4m3fn", "float8_e5m2"};
const std::vector<std::string> kScales = {"float", "float8_e8m0"};
const std::vector<std::string> kOutput = {"float", "float16", "bfloat16"};

struct RunText {
  std::string x = "float8_e4m3fn", scales = "float8_e8m0", output = "bfloat16", shape = "1024,5120",
              input = "random";
};

void addRun(CLI::App& app, RunOptions& options, RunText& text) {
  CLI::App* run = app.add_subcommand("run", "run a quantized collective on a cluster and check its result");
  run->add_option("--cluster", options.cluster,
                  "name of a shipped cluster, or a file (default: VATLAS_CLUSTER, else ascend950dt_8p)");
  run->add_option("--op", options.op, "operator")
      ->required()
      ->check(CLI::IsMember({"quant_all_reduce", "quant_reduce_scatter"}));
  run->add_option("--x-dtype", text.x, "type of x")->check(CLI::IsMember(kX))->capture_default_str();
  run->add_option("--scales-dtype", text.scales, "type of scales")
      ->check(CLI::IsMember(kScales))
      ->capture_default_str();
  run->add_option("--out-dtype", text.output, "type of the output")
      ->check(CLI::IsMember(kOutput))
      ->capture_default_str();
  run->add_option("--shape", text.shape, "shape of x: bs,H or b,s,H")->capture_default_str();
  run->add_option("--input", text.input,
                  "generated inputs: random, or exact (any order of summation gives the same bits)")
      ->check(CLI::IsMember({"random", "exact"}))
      ->capture_default_str();
  run->add_option("--seed", options.seed, "seed of generated inputs")->capture_default_str();
  run->add_option("--x", options.xFile, "file of x of each rank, as x{rank}.npy; raw unless it ends in .npy");
  run->add_option("--scales", options.scalesFile, "file of scales of each rank, as scales{rank}.npy");
  run->add_option("--out", options.outFile, "file for the output of each rank, as out{rank}.npy");
  run->add_option("--repeat", options.repeat,
                  "calls of the operator on one communicator; the last one is reported")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  run->add_option("--trace", options.traceFile, "write a Perfetto trace");
  run->add_option("--trace-cores", options.traceCores, "AIV cores a card in the trace; -1: all")
      ->check(CLI::Range(-1, 1024))
      ->capture_default_str();
  run->add_option("--json", options.jsonFile, "write the report as JSON");
  run->add_flag("--deterministic", options.deterministic,
                "sum in rank order, so that all ranks agree bit for bit (ACL_OPT_DETERMINISTIC)");
  run->add_flag("--digest", options.digest, "print a SHA-256 over outputs, simulated times and the trace");
  run->add_flag("--quiet", options.quiet, "print neither report nor progress");
  run->add_flag("!--no-check", options.check, "do not compute the golden result");
}

// What the operators themselves look at in the environment.
bool environmentAsksForDeterminism() {
  const char* text = std::getenv("HCCL_DETERMINISTIC");
  return text != nullptr && (strcasecmp(text, "true") == 0 || strcasecmp(text, "strict") == 0);
}

void complete(RunOptions& options, const RunText& text) {
  options.deterministic = options.deterministic || environmentAsksForDeterminism();
  options.x = findDType(text.x);
  options.scales = findDType(text.scales);
  options.output = findDType(text.output);
  options.shape = parseShape(text.shape);
  options.input = text.input == "exact" ? InputKind::Exact : InputKind::Random;
  if (options.scales->acl == ACL_FLOAT8_E8M0 && options.x->acl != ACL_FLOAT8_E4M3FN &&
      options.x->acl != ACL_FLOAT8_E5M2) {
    throw UsageError(
        fmt::format("scales of float8_e8m0 go with x of float8_e4m3fn or float8_e5m2, not {}", text.x));
  }
  const std::uint64_t hidden = options.hidden();
  if (hidden < 1024 || hidden > 8192 || hidden % 128 != 0)
    throw UsageError(
        fmt::format("--shape {}: H is {}; allowed: 1024 to 8192, a multiple of 128", text.shape, hidden));
  if (options.xFile.empty() != options.scalesFile.empty())
    throw UsageError("--x and --scales belong together: give both or none");
  if (!options.xFile.empty()) options.input = InputKind::Files;
}

int dispatch(int argc, char** argv) {
  CLI::App app("vatlas: Ascend 950 clusters on a machine that has none");
  app.require_subcommand(1);
  app.set_version_flag("--version", vatlasVersion());
  RunOptions options;
  RunText text;
  addRun(app, options, text);
  std::vector<std::string> files;
  std::string cluster;
  app.add_subcommand("validate", "check configuration files and rank tables")
      ->add_option("FILE", files, "files")
      ->required();
  app.add_subcommand("info", "show the cards of a cluster")
      ->add_option("--cluster", cluster, "name of a shipped cluster, or a file");
  app.add_subcommand("doctor", "check this machine and installation");
  app.add_subcommand("version", "show the version");
  app.add_subcommand("model-check", "compare the model with measurements of real cards");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitEqual : kExitUsage;
  }
  if (app.got_subcommand("version")) {
    fmt::print("vatlas {}\n", vatlasVersion());
    return kExitEqual;
  }
  if (app.got_subcommand("validate")) return validateCommand(files);
  if (app.got_subcommand("info")) return infoCommand(cluster);
  if (app.got_subcommand("doctor")) return doctorCommand();
  if (app.got_subcommand("model-check")) return modelCheckCommand();
  complete(options, text);
  return runCommand(options);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = dispatch(argc, argv);
    if (std::fflush(stdout) == 0) return code;
    fmt::print(stderr, "vatlas: the output cannot be written\n");
    return code == kExitEqual ? kExitUsage : code;
  } catch (const UsageError& error) {
    fmt::print(stderr, "vatlas: {}\n", error.what());
    return kExitUsage;
  } catch (const FileError& error) {
    fmt::print(stderr, "vatlas: {}\n", error.what());
    return kExitUsage;
  } catch (const vatlas::runtime::ConfigError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return kExitUsage;
  } catch (const std::exception& error) {
    fmt::print(stderr, "vatlas: fault of the emulator: {}\n", error.what());
    return kExitFault;
  }
}
