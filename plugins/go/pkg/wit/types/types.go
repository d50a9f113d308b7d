// Package wit_types has the types of WIT that Go has no words for.
package wit_types

const (
	// OptionNone is the tag of an option without a value.
	OptionNone = 0
	// OptionSome is the tag of an option with a value.
	OptionSome = 1
	// ResultOk is the tag of an answer.
	ResultOk = 0
	// ResultErr is the tag of an error.
	ResultErr = 1
)

// Unit is the type of what carries nothing.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}

// Option is a value or none.
type Option[T any] struct {
	tag   uint8
	value T
}

// None has no value.
func None[T any]() Option[T] { return Option[T]{} }

// Some has a value.
func Some[T any](value T) Option[T] { return Option[T]{OptionSome, value} }

// Tag is OptionNone or OptionSome.
func (o Option[T]) Tag() uint8 { return o.tag }

// IsSome tells whether there is a value.
func (o Option[T]) IsSome() bool { return o.tag == OptionSome }

// IsNone tells whether there is none.
func (o Option[T]) IsNone() bool { return o.tag == OptionNone }

// Some is the value. It panics where there is none.
func (o Option[T]) Some() T {
	if o.tag != OptionSome {
		panic("the option has no value")
	}
	return o.value
}

// SomeOr is the value, or another one where there is none.
func (o Option[T]) SomeOr(other T) T {
	if o.tag != OptionSome {
		return other
	}
	return o.value
}

// Result is an answer or an error.
type Result[T, E any] struct {
	tag uint8
	ok  T
	err E
}

// Ok is an answer.
func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{tag: ResultOk, ok: value} }

// Err is an error.
func Err[T, E any](err E) Result[T, E] { return Result[T, E]{tag: ResultErr, err: err} }

// Tag is ResultOk or ResultErr.
func (r Result[T, E]) Tag() uint8 { return r.tag }

// IsOk tells whether there is an answer.
func (r Result[T, E]) IsOk() bool { return r.tag == ResultOk }

// IsErr tells whether there is an error.
func (r Result[T, E]) IsErr() bool { return r.tag == ResultErr }

// Ok is the answer. It panics where there is an error.
func (r Result[T, E]) Ok() T {
	if r.tag != ResultOk {
		panic("the result is an error")
	}
	return r.ok
}

// Err is the error. It panics where there is an answer.
func (r Result[T, E]) Err() E {
	if r.tag != ResultErr {
		panic("the result is no error")
	}
	return r.err
}
