// Seeding math/rand again has to work here, because that is what a frozen snapshot does.
//
//go:debug randseednop=0
package spiff_test

import (
	"math/rand"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

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
	for name, expression := range chancy {
		draw := func() string {
			rand.Seed(7) //nolint:staticcheck // As a snapshot does.
			return rendered(t, cases.Files{}, "a: (( "+expression+" ))", inputs)
		}
		if first, second := draw(), draw(); first == second || strings.HasPrefix(first, "failure") {
			t.Errorf("%s draws the same twice: %s", name, first)
		}
	}
}

// The host answers the clock and crypto/rand by the job. Nothing else may decide what a template prints.
func TestTheSameTimeAndTheSameRandomnessRenderTheSame(t *testing.T) {
	draw := func(seed uint64) map[string]string {
		drawn := map[string]string{}
		for _, functions := range []map[string]string{chancy, timed} {
			for name, expression := range functions {
				synctest.Test(t, func(t *testing.T) {
					cryptotest.SetGlobalRandom(t, seed)
					drawn[name] = rendered(t, cases.Files{}, "a: (( "+expression+" ))", inputs)
				})
			}
		}
		return drawn
	}
	first, second, other := draw(1), draw(1), draw(2)
	for name, text := range first {
		if strings.HasPrefix(text, "failure") {
			t.Errorf("%s: %s", name, text)
		}
		if text != second[name] {
			t.Errorf("two renderings of one job draw %s and %s by %s", text, second[name], name)
		}
		if _, random := chancy[name]; random && text == other[name] {
			t.Errorf("another job draws the same by %s", name)
		}
	}
}
