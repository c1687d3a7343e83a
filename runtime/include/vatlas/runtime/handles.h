// How the public libraries (acl, aclnn, HCCL) reach the session: handles, the calling thread's device,
// errors.
//
// A public function looks like this:
//   int aclrtThing(aclrtStream stream) {
//     return guarded("aclrtThing", [&] {                  // catches every exception: 500000 and a message
//       Call call = enterCall();                          // opens the session, spends the product's cost of
//       a call if (call.code != 0) return call.code;             // the message is set StreamRef ref =
//       resolveStream(call, stream); if (ref.code != 0) return ref.code;               // the message is set
//       call.session->submitCopy(*call.thread, ref.id, request);
//       return 0;
//     });
//   }
#pragma once

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "vatlas/runtime/error.h"
#include "vatlas/runtime/session.h"

namespace vatlas::runtime {

// One call into a public library. Keeps the session alive while it lasts.
struct Call {
  int code = 0;  // not 0: the session cannot be had; the thread's error message says why
  std::shared_ptr<Session> session;
  HostThread* thread = nullptr;
};

// Opens the session where needed and advances the calling thread's clock by `cost` (negative: the product's
// figure for a call without one of its own). A session that cannot be opened is answered with 507033.
Call enterCall(SimTime cost = -1);

struct StreamRef {
  int code = 0;  // 0, 107002 (no context), 107003 (stream of another context), 107017 (no such stream)
  StreamId id = 0;
  int device = -1;
};

// null: the default stream of the calling thread's context. The stream is void* so that users' headers stay
// out.
StreamRef resolveStream(const Call& call, void* stream);
StreamRef resolveStream(void* stream);

// The device of the calling thread's current context; -1 without one. Does not open a session.
int currentDevice() noexcept;

// What ACL_OPT_DETERMINISTIC and its like hold for the calling thread: the context's value, else the
// process's. False: never set.
bool systemParameter(int option, std::int64_t& value);

// The aclError of a failed wait, with the thread's message set: 507046 for a timeout, the stream's error for
// Failed.
int waitCode(const Call& call, WaitResult result, StreamId stream, std::string_view what);

// What becomes of an exception at the C boundary: 500000 (or 507033 for a session that cannot be opened).
int reportException(std::string_view function, const std::exception* error) noexcept;

template <typename Body>
int guarded(std::string_view function, Body&& body) noexcept {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& error) {
    return reportException(function, &error);
  } catch (...) {
    return reportException(function, nullptr);
  }
}

}  // namespace vatlas::runtime
