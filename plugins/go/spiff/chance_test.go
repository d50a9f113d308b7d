// Seeding math/rand again has to work here, because that is what a frozen snapshot does.
//
//go:debug randseednop=0
package spiff_test

import (
	"testing"

	"orangery.dev/plugins/cases"
)

// chancy is every function of spiff that draws randomness.
var chancy = map[string]string{
	"rand":             `rand("[:alnum:]", 30)`,
	"rand of a number": `rand(1000000000)`,
	"bcrypt":           `bcrypt("x")`,
	"encrypt":          `encrypt("text", "key")`,
	"wggenkey":         `wggenkey()`,
	"x509genkey":       `x509genkey(2048)`,
	"x509genkey curve": `x509genkey("P256")`,
	"x509cert":         `x509cert({"usage"=["CertSign"], "validity"=1, "subject"={"commonName"="x"}, "privateKey"=x509genkey("P256")})`,
}

// timed is every function of spiff that asks the clock. The salt of md5crypt is drawn from a source that it seeds with
// the time.
var timed = map[string]string{
	"md5crypt": `md5crypt("x")`,
	"archive":  `archive({"a"={"data"="x"}}, "tar")`,
}

func TestNoFunctionDrawsFromASourceThatASnapshotFreezes(t *testing.T) {
	cases.CheckDraws(t, chancy, drawn)
}

// The host answers the clock and crypto/rand by the job. Nothing else may decide what a template prints.
func TestTheSameTimeAndTheSameRandomnessRenderTheSame(t *testing.T) {
	cases.CheckRepeats(t, chancy, timed, drawn)
}

func drawn(t *testing.T, expression string) string {
	return rendered(t, cases.Files{}, "a: (( "+expression+" ))", inputs)
}
