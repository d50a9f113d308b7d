package sandbox

import (
	"errors"
	_ "unsafe" // For the name in the library.

	"go.bytecodealliance.org/pkg/wit/runtime"

	"wit_component/orangery_deployer_big_integers"
)

// What keys and signatures of RSA are computed with, and those of DSA (plugins/go/additions).
//
//go:linkname ofRSA crypto/internal/fips140/bigmod.Powers
//go:linkname ofDSA math/big.Powers
var ofRSA, ofDSA func(x, e, m []byte) ([]byte, error)

func init() {
	powers := func(x, e, m []byte) ([]byte, error) {
		runtime.PauseClock(true)
		answer := orangery_deployer_big_integers.ModularPower(x, e, m)
		runtime.PauseClock(false)
		if answer.IsErr() {
			return nil, errors.New(answer.Err())
		}
		return answer.Ok(), nil
	}
	ofRSA, ofDSA = powers, powers
}
