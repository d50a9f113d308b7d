package sandbox

import (
	_ "unsafe" // For the name in the library.

	"go.bytecodealliance.org/pkg/wit/types"

	"wit_component/orangery_template_big_integers"
)

// What keys and signatures of RSA are computed with, and those of DSA (plugins/go/additions).
//
//go:linkname ofRSA crypto/internal/fips140/bigmod.Powers
//go:linkname ofDSA math/big.Powers
var ofRSA, ofDSA func(x, e, m []byte) ([]byte, error)

func init() {
	powers := func(x, e, m []byte) ([]byte, error) {
		return ask(func() wit_types.Result[[]byte, string] {
			return orangery_template_big_integers.ModularPower(x, e, m)
		})
	}
	ofRSA, ofDSA = powers, powers
}
