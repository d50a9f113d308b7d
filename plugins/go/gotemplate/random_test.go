// Seeding math/rand again has to work here, because that is what a frozen snapshot does.
//
//go:debug randseednop=0
package gotemplate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/sprig/v3"

	"orangery.dev/plugins/cases"
)

// chancy is every function of sprig that draws randomness, in a template that shows what it drew.
var chancy = map[string]string{
	"randInt":                  `{{ randInt 0 1000000000 }}`,
	"shuffle":                  `{{ shuffle "abcdefghijklmnopqrstuvwxyz0123456789" }}`,
	"randAlphaNum":             `{{ randAlphaNum 30 }}`,
	"randAlpha":                `{{ randAlpha 30 }}`,
	"randAscii":                `{{ randAscii 30 }}`,
	"randNumeric":              `{{ randNumeric 30 }}`,
	"randBytes":                `{{ randBytes 30 }}`,
	"uuidv4":                   `{{ uuidv4 }}`,
	"bcrypt":                   `{{ bcrypt "x" }}`,
	"htpasswd":                 `{{ htpasswd "user" "x" }}`,
	"encryptAES":               `{{ encryptAES "key" "text" }}`,
	"genPrivateKey":            `{{ genPrivateKey "ecdsa" }}{{ genPrivateKey "ed25519" }}`,
	"genCA":                    `{{ (genCA "ca" 1).Cert }}`,
	"genCAWithKey":             `{{ (genCAWithKey "ca" 1 (genPrivateKey "ed25519")).Cert }}`,
	"genSelfSignedCert":        `{{ (genSelfSignedCert "cn" nil nil 1).Key }}`,
	"genSelfSignedCertWithKey": `{{ (genSelfSignedCertWithKey "cn" nil nil 1 (genPrivateKey "ed25519")).Cert }}`,
	"genSignedCert":            `{{ (genSignedCert "cn" nil nil 1 (genCA "ca" 1)).Cert }}`,
	"genSignedCertWithKey":     `{{ (genSignedCertWithKey "cn" nil nil 1 (genCA "ca" 1) (genPrivateKey "ed25519")).Cert }}`,
}

// timed is every function of sprig that asks the clock by itself. The other ones about dates take the time from a
// template, mostly from now.
var timed = map[string]string{
	"now":              `{{ now }}`,
	"ago":              `{{ ago (toDate "2006-01-02" "1999-12-31") }}`,
	"date":             `{{ date "15:04:05" "" }}`,
	"htmlDate":         `{{ htmlDate "" }}`,
	"dateInZone":       `{{ dateInZone "15:04:05" "" "UTC" }}`,
	"date_in_zone":     `{{ date_in_zone "15:04:05" "" "UTC" }}`,
	"htmlDateInZone":   `{{ htmlDateInZone "" "UTC" }}`,
	"date_modify":      `{{ now | date_modify "1h" }}`,
	"dateModify":       `{{ now | dateModify "1h" }}`,
	"must_date_modify": `{{ now | must_date_modify "1h" }}`,
	"mustDateModify":   `{{ now | mustDateModify "1h" }}`,
	"durationRound":    `{{ durationRound (toDate "2006-01-02" "1999-12-31") }}`,
	"unixEpoch":        `{{ now | unixEpoch }}`,
}

func TestNoFunctionDrawsFromASourceThatASnapshotFreezes(t *testing.T) {
	cases.CheckDraws(t, chancy, drawn)
}

// The host answers the clock and crypto/rand by the job. Nothing else may decide what a template prints.
func TestTheSameTimeAndTheSameRandomnessRenderTheSame(t *testing.T) {
	cases.CheckRepeats(t, chancy, timed, drawn)
}

func drawn(t *testing.T, template string) string {
	return rendered(t, cases.Files{}, template, inputs)
}

// What sprig itself calls not repeatable is covered above, or not offered.
func TestEveryFunctionThatSprigCallsUnrepeatableIsKnown(t *testing.T) {
	hermetic := sprig.HermeticTxtFuncMap()
	for name := range sprig.TxtFuncMap() {
		if _, repeatable := hermetic[name]; repeatable {
			continue
		}
		_, drawn := chancy[name]
		_, asked := timed[name]
		if offered := !slices.Contains([]string{"env", "expandenv", "getHostByName"}, name); offered && !drawn && !asked {
			t.Errorf("sprig's %s is not repeatable and no test has it", name)
		}
	}
}

func TestRandomNumbersStayInTheirRange(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		seen[rendered(t, cases.Files{}, `{{ randInt -1 2 }}`, inputs)] = true
	}
	if len(seen) != 3 || !seen["-1"] || !seen["0"] || !seen["1"] {
		t.Errorf("%v", seen)
	}
	for _, arguments := range []string{"2 2", "3 2"} {
		if actual := rendered(t, cases.Files{}, `{{ randInt `+arguments+` }}`, inputs); !strings.Contains(actual, "invalid argument to randInt") {
			t.Errorf("%s", actual)
		}
	}
	shuffled := []rune(rendered(t, cases.Files{}, `{{ shuffle "äbcdefg" }}`, inputs))
	slices.Sort(shuffled)
	if string(shuffled) != "bcdefgä" {
		t.Errorf("%s", string(shuffled))
	}
}
