// The bindings that this module imports as wit_component/… are generated from wit/template while it is built, by
// plugins/build; the packages under go.bytecodealliance.org/pkg are those of plugins/go/pkg.
module wit_component

go 1.26
