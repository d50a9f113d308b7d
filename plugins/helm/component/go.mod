// The Helm deployer as a component. The bindings that this module imports as wit_component/… are generated from
// wit/deployer while it is built (plugins/build/src/go.rs), in a workspace with ../ and ../../go/pkg.
module wit_component

go 1.26
