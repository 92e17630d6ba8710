#include "python/core/literal.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "base/error.hpp"

namespace hcclsim::python {
namespace {

namespace py = pybind11;
using study::Literal;

/// The nearest of 64 bits, and all digits where that is another one.
Literal literal_of_int(const py::handle& object) {
  Literal literal{.kind = Literal::Kind::integer};
  int overflow = 0;
  literal.integer = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
  if (overflow != 0) {
    literal.integer =
        overflow > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
    literal.text = py::str(object).cast<std::string>();
  }
  return literal;
}

Literal literal_of_items(const py::handle& object, Literal::Kind kind) {
  Literal literal{.kind = kind};
  for (const py::handle item : object) literal.items.push_back(literal_of(item));
  return literal;
}

Literal literal_of_dict(const py::handle& object) {
  Literal literal{.kind = Literal::Kind::dict};
  for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(object)) {
    literal.members.emplace_back(py::str(key).cast<std::string>(), literal_of(value));
  }
  return literal;
}

}  // namespace

Literal literal_of(const py::handle& object) {
  if (object.is_none()) return {};
  if (PyBool_Check(object.ptr()) != 0) return {.kind = Literal::Kind::boolean, .boolean = object.ptr() == Py_True};
  if (PyLong_Check(object.ptr()) != 0) return literal_of_int(object);
  if (PyFloat_Check(object.ptr()) != 0) return {.kind = Literal::Kind::real, .real = PyFloat_AsDouble(object.ptr())};
  if (PyUnicode_Check(object.ptr()) != 0) return {.kind = Literal::Kind::text, .text = object.cast<std::string>()};
  if (PyList_Check(object.ptr()) != 0) return literal_of_items(object, Literal::Kind::list);
  if (PyTuple_Check(object.ptr()) != 0) return literal_of_items(object, Literal::Kind::tuple);
  if (PyDict_Check(object.ptr()) != 0) return literal_of_dict(object);
  bad_input("type-error", "a {} is no value of an option: {}", Py_TYPE(object.ptr())->tp_name,
            py::repr(object).cast<std::string>());
}

py::object object_of(const Literal& literal) {
  switch (literal.kind) {
    case Literal::Kind::none:
      return py::none();
    case Literal::Kind::boolean:
      return py::bool_(literal.boolean);
    case Literal::Kind::integer:
      if (literal.text.empty()) return py::int_(literal.integer);
      return py::reinterpret_steal<py::object>(PyLong_FromString(literal.text.c_str(), nullptr, 10));
    case Literal::Kind::real:
      return py::float_(literal.real);
    case Literal::Kind::text:
      return py::str(literal.text);
    case Literal::Kind::list:
    case Literal::Kind::tuple: {
      py::list items;
      for (const Literal& item : literal.items) items.append(object_of(item));
      if (literal.kind == Literal::Kind::list) return items;
      return py::tuple(items);
    }
    case Literal::Kind::dict: {
      py::dict members;
      for (const auto& [key, value] : literal.members) members[py::str(key)] = object_of(value);
      return members;
    }
  }
  internal_error("unknown kind of literal");
}

}  // namespace hcclsim::python
