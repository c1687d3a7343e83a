// The SystemC side of the simulation; the only file of the project that includes SystemC.
#include <dlfcn.h>
#include <fmt/format.h>
#include <tlm_utils/multi_passthrough_target_socket.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <exception>
#include <mutex>
#include <systemc>
#include <tlm>

#include "simulation_state.h"

// libsystemc's own main() refers to it; programs that link with -z now would not load without.
int sc_main(int, char**) {
  return 0;
}

namespace vatlas::sim {
namespace {

constexpr int kCards = 8;

// A transfer rides on a generic payload: it may be longer than the payload's 32-bit length, and has a time of
// its own.
struct TransferExtension final : tlm::tlm_extension<TransferExtension> {
  tlm_extension_base* clone() const override { return new TransferExtension(*this); }
  void copy_from(const tlm_extension_base& other) override {
    *this = static_cast<const TransferExtension&>(other);
  }
  Fabric* fabric = nullptr;
  Transfer transfer;
};

// A card's socket towards the fabric, and the one of its host link.
struct Card final : sc_core::sc_module {
  tlm_utils::simple_initiator_socket<Card> toFabric{"to_fabric"};
  tlm_utils::simple_target_socket<Card> hostLink{"host_link"};
  explicit Card(const sc_core::sc_module_name& name) : sc_module(name) {
    hostLink.register_get_direct_mem_ptr(this, &Card::directMemory);
    hostLink.register_b_transport(this, &Card::refuse);
  }
  // Device memory is real memory at its own address: all of it may be accessed directly.
  bool directMemory(tlm::tlm_generic_payload& payload, tlm::tlm_dmi& dmi) {
    dmi.set_dmi_ptr(reinterpret_cast<unsigned char*>(payload.get_address()));
    dmi.set_start_address(payload.get_address());
    dmi.set_end_address(payload.get_address() + payload.get_data_length() - 1);
    dmi.set_granted_access(tlm::tlm_dmi::DMI_ACCESS_READ_WRITE);
    return true;
  }
  void refuse(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
    payload.set_response_status(tlm::TLM_COMMAND_ERROR_RESPONSE);  // bytes go by direct access only
  }
};

struct FabricModule final : sc_core::sc_module {
  tlm_utils::multi_passthrough_target_socket<FabricModule> cards{"cards"};
  explicit FabricModule(const sc_core::sc_module_name& name) : sc_module(name) {
    cards.register_b_transport(this, &FabricModule::transport);
  }
  void transport(int, tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
    const auto* extension = payload.get_extension<TransferExtension>();
    const Transfer& t = extension->transfer;
    extension->fabric->start(t.now, t.path, t.bytes, t.key);
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
};

struct Host final : sc_core::sc_module {
  sc_core::sc_vector<tlm_utils::simple_initiator_socket<Host>> links{"links", kCards};
  explicit Host(const sc_core::sc_module_name& name) : sc_module(name) {}
};

}  // namespace

// The whole elaborated model.
struct SystemCShell::State final : TransferPort {
  struct Top final : sc_core::sc_module {
    sc_core::sc_event go;
    sc_core::sc_vector<Card> cards{"card", kCards};
    FabricModule fabric{"fabric"};
    Host host{"host"};
    Simulation* simulation = nullptr;
    SimTime limit = 0;
    SimTime next = kNever;
    std::exception_ptr error;

    SC_HAS_PROCESS(Top);
    explicit Top(const sc_core::sc_module_name& name) : sc_module(name) {
      for (std::size_t i = 0; i < kCards; ++i) {
        cards[i].toFabric.bind(fabric.cards);
        host.links[i].bind(cards[i].hostLink);
      }
      SC_METHOD(engine);
      sensitive << go;
      dont_initialize();
    }
    void engine() {
      try {
        next = simulation->run(limit);
      } catch (...) {
        error = std::current_exception();  // must not pass through the kernel
      }
    }
  };

  State() {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    sc_core::sc_set_time_resolution(1, sc_core::SC_PS);
    top = std::make_unique<Top>("vatlas");
    payload.set_extension(&extension);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
  }
  ~State() override { payload.clear_extension(&extension); }

  void start(Fabric& fabric, const Transfer& transfer) override {
    extension.fabric = &fabric;
    extension.transfer = transfer;
    sc_core::sc_time delay;
    top->cards[static_cast<std::size_t>(transfer.card)].toFabric->b_transport(payload, delay);
  }

  std::byte* deviceBytes(Machine& machine, const void* address) override {
    const int card = machine.memory.cardOf(address);
    if (card < 0) return static_cast<std::byte*>(const_cast<void*>(address));
    tlm::tlm_generic_payload request;
    request.set_address(reinterpret_cast<std::uintptr_t>(address));
    request.set_data_length(1);
    tlm::tlm_dmi dmi;
    top->host.links[static_cast<std::size_t>(card)]->get_direct_mem_ptr(request, dmi);
    return reinterpret_cast<std::byte*>(dmi.get_dmi_ptr());
  }

  // The SystemC clock follows the machine's, counted on from one simulation to the next.
  void advanceClock(SimTime now) {
    const auto reached = static_cast<SimTime>(sc_core::sc_time_stamp().value());
    if (base + now > reached) {
      const auto ahead = static_cast<sc_dt::uint64>(base + now - reached);
      sc_core::sc_start(sc_core::sc_time::from_value(ahead), sc_core::SC_RUN_TO_TIME);
    }
  }

  std::mutex busy;
  std::unique_ptr<Top> top;
  tlm::tlm_generic_payload payload;
  TransferExtension extension;
  const Simulation* last = nullptr;
  SimTime base = 0;
};

SystemCShell::SystemCShell() : state_(std::make_unique<State>()) {}

SystemCShell& SystemCShell::instance() {
  // Lives as long as the process: SystemC cannot be elaborated twice, and tears its own statics down at exit.
  static SystemCShell* shell = new SystemCShell();
  return *shell;
}

SimTime SystemCShell::run(Simulation& simulation, SimTime limit) {
  State& s = *state_;
  const std::lock_guard<std::mutex> lock(s.busy);
  Machine& machine = SimulationAccess::machine(simulation);
  if (s.last != &simulation || machine.transferPort != &s) {
    s.last = &simulation;
    s.base = static_cast<SimTime>(sc_core::sc_time_stamp().value()) - machine.now;
    machine.transferPort = &s;
  }
  s.top->simulation = &simulation;
  s.top->limit = limit;
  s.top->error = nullptr;
  s.top->go.notify();  // immediate: a delta notification would run in the next sc_start only
  sc_core::sc_start(sc_core::SC_ZERO_TIME);
  s.advanceClock(machine.now);
  if (s.top->error) std::rethrow_exception(s.top->error);
  return s.top->next;
}

std::string SystemCShell::description() {
  const char* flavour = "threads of its own kind";
  if (dlsym(RTLD_DEFAULT, "_ZTVN7sc_core13sc_cor_pkg_qtE") != nullptr) flavour = "QuickThreads";
  if (dlsym(RTLD_DEFAULT, "_ZTVN7sc_core18sc_cor_pkg_pthreadE") != nullptr) flavour = "POSIX threads";
  return fmt::format("SystemC {} ({})", sc_core::sc_release(), flavour);
}

}  // namespace vatlas::sim
