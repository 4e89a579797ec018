// Members of a struct that a JSON value is read into and written from.
#pragma once

#include <limits>
#include <optional>
#include <type_traits>

#include "shardplan/core/names.hpp"
#include "shardplan/core/value_type.hpp"

namespace shardplan {

/// A value that lives in an Object, as a number: a truth is 0 or 1, a word its index among the type's words, what is
/// not stated NaN. A type with a syntax of its own has neither function.
template <class Object>
struct Member {
  ValueType type;
  double (*get)(const Object& object) = nullptr;
  void (*set)(Object& object, double value) = nullptr;
};

namespace member_detail {

template <class Pointer>
struct PointedInto;
template <class Owner, class Value>
struct PointedInto<Value Owner::*> {
  using type = Owner;
};

template <class Value>
struct IsOptional : std::false_type {};
template <class Value>
struct IsOptional<std::optional<Value>> : std::true_type {};

template <auto First, auto... Rest, class Object>
constexpr auto& inside(Object& object) noexcept {
  if constexpr (sizeof...(Rest) == 0) {
    return object.*First;
  } else {
    return inside<Rest...>(object.*First);
  }
}

template <class Value>
constexpr double to_number(const Value& value) noexcept {
  if constexpr (IsOptional<Value>::value) {
    return value ? to_number(*value) : std::numeric_limits<double>::quiet_NaN();
  } else {
    return static_cast<double>(value);
  }
}

template <class Value>
constexpr void from_number(Value& value, double number) noexcept {
  if constexpr (IsOptional<Value>::value) {
    typename Value::value_type inner{};
    from_number(inner, number);
    value = inner;
  } else if constexpr (std::is_same_v<Value, bool>) {
    value = number != 0;
  } else if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(static_cast<int>(number));
  } else {
    value = static_cast<Value>(number);
  }
}

template <auto First, auto...>
struct OwnerOf : PointedInto<decltype(First)> {};

}  // namespace member_detail

namespace member {

/// The member that a path of pointers to members leads to. `Shift`: of the enumerator that is the first word.
template <int Shift, auto... Path>
constexpr auto at(ValueType type) noexcept {
  using Object = typename member_detail::OwnerOf<Path...>::type;
  Member<Object> member{type};
  member.get = [](const Object& object) {
    return member_detail::to_number(member_detail::inside<Path...>(object)) - Shift;
  };
  member.set = [](Object& object, double value) {
    member_detail::from_number(member_detail::inside<Path...>(object), value + Shift);
  };
  return member;
}

template <auto... Path>
constexpr auto integer(double from, double to) noexcept {
  return at<0, Path...>({ValueType::Kind::integer, {std::nullopt, from, to}});
}
template <auto... Path>
constexpr auto number(const NumberRange& range) noexcept {
  return at<0, Path...>({ValueType::Kind::number, range});
}
template <auto... Path>
constexpr auto rate() noexcept {
  return at<0, Path...>({ValueType::Kind::rate, {std::nullopt, 0, 1}});
}
template <auto... Path>
constexpr auto boolean() noexcept {
  return at<0, Path...>({ValueType::Kind::boolean});
}
/// An enum by its names, or a switch by two words.
template <auto... Path>
constexpr auto word(std::span<const std::string_view> words) noexcept {
  return at<0, Path...>({ValueType::Kind::word, {}, words});
}

}  // namespace member

}  // namespace shardplan
