// Result<T>: a value or the reason why the user's input gave none. Libraries of this project never
// print, exit or throw across a folder; they return Result and the caller adds context:
//
//   Result<Topology> build(const Spec& spec);
//   RAILYARD_ASSIGN(const Topology topology, build(spec));   // returns the error upwards
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sim/check.h"

namespace railyard::sim {

enum class ErrorCode {
  bad_input,    // the user's file or argument is wrong: exit status 1
  unsupported,  // asked for and not available: exit status 1
  would_hang,   // the simulated job can never end: exit status 3
  interrupted,  // the user stopped the run: exit status 130
  io,           // a file cannot be read or written: exit status 1
};

struct Error {
  ErrorCode code = ErrorCode::bad_input;
  std::string message;
  std::string where;  // "file:line:column: key" when known, else empty

  // "where: message", or the message alone.
  [[nodiscard]] std::string text() const {
    return where.empty() ? message : where + ": " + message;
  }
};

inline Error bad_input(std::string message, std::string where = {}) {
  return {ErrorCode::bad_input, std::move(message), std::move(where)};
}

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] const T& value() const& {
    RAILYARD_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  [[nodiscard]] T& value() & {
    RAILYARD_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(state_);
  }
  [[nodiscard]] T&& value() && {
    RAILYARD_CHECK(ok(), "value() of a failed Result");
    return std::get<0>(std::move(state_));
  }
  [[nodiscard]] const Error& error() const {
    RAILYARD_CHECK(!ok(), "error() of a good Result");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// The result of an action that yields nothing.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  [[nodiscard]] bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] const Error& error() const {
    RAILYARD_CHECK(!ok(), "error() of a good Result");
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace railyard::sim

#define RAILYARD_CONCAT_INNER(a, b) a##b
#define RAILYARD_CONCAT(a, b) RAILYARD_CONCAT_INNER(a, b)

// Evaluates `expression` (a Result<T>); on failure returns its error, else declares `declaration`.
#define RAILYARD_ASSIGN(declaration, expression)                   \
  auto RAILYARD_CONCAT(railyard_result_, __LINE__) = (expression); \
  if (!RAILYARD_CONCAT(railyard_result_, __LINE__).ok())           \
    return RAILYARD_CONCAT(railyard_result_, __LINE__).error();    \
  declaration = std::move(RAILYARD_CONCAT(railyard_result_, __LINE__)).value()

// Evaluates `expression` (any Result); on failure returns its error.
#define RAILYARD_TRY(expression)                                            \
  do {                                                                      \
    if (auto railyard_try_result = (expression); !railyard_try_result.ok()) \
      return railyard_try_result.error();                                   \
  } while (false)
