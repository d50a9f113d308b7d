// The packages that bindings by wit-bindgen import, for synchronous components whose instances answer one call. The
// ones of the Bytecode Alliance under this name are served by no module proxy.
module go.bytecodealliance.org/pkg

go 1.26
