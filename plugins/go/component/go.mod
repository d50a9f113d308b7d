// The components of the Go engines. The bindings that this module imports as wit_component/… are generated from
// wit/template while it is built (plugins/build/src/go.rs), in a workspace with ../ and ../pkg.
module wit_component

go 1.26
