package spiff

import (
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"

	"github.com/mandelsoft/spiff/dynaml"
)

// Spiff has functions that reach out of the sandbox and no switch for some of them. Commands are off with a file
// system of its own; here the network and the environment are taken away from it, natively as in the sandbox.
func init() {
	http.DefaultTransport = noNetwork{}
	environment := os.Environ()
	os.Clearenv()
	dynaml.ReloadEnv()
	for _, variable := range environment {
		if name, value, found := strings.Cut(variable, "="); found {
			_ = os.Setenv(name, value)
		}
	}
}

var errNetwork = errors.New("a template cannot fetch URLs; put the file into the blueprint or make it a resource of the component")

// noNetwork refuses every request.
type noNetwork struct{}

// RoundTrip refuses.
func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNetwork }

// Spiff's own words for what is switched off, and ours.
var refusals = []struct {
	said *regexp.Regexp
	told string
}{
	{regexp.MustCompile(`(exec|pipe)[a-z_]*: no OS operations supported in this execution environment`), "$1: a template cannot run commands; compute it in the template, or import the result"},
	{regexp.MustCompile(`environment variable '([^']*)' not set`), "env: a template cannot read the environment (variable $1); import the value instead"},
	{regexp.MustCompile(`Get "[^"]*": `), ""},
}

func refused(message string) string {
	for _, refusal := range refusals {
		message = refusal.said.ReplaceAllString(message, refusal.told)
	}
	return message
}
