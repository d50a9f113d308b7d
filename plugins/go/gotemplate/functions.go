package gotemplate

import (
	"errors"
	"io/fs"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"

	"orangery.dev/plugins/host"
	"orangery.dev/plugins/landscaper"
	"orangery.dev/random"
)

// sprigFunctions are sprig's, without the environment and the network. They are gathered once.
var sprigFunctions = func() template.FuncMap {
	functions := template.FuncMap(sprig.FuncMap())
	delete(functions, "env")
	delete(functions, "expandenv")
	functions["getHostByName"] = noNames
	functions["randInt"] = random.Int
	functions["shuffle"] = random.Shuffle
	return functions
}()

func noNames(string) (string, error) {
	return "", errors.New("templates run in a sandbox without a network and cannot resolve host names; import the address instead")
}

// functions are those of Landscaper, for one rendering.
func (e *execution) functions() template.FuncMap {
	return template.FuncMap{
		"include":  e.include,
		"readFile": func(path string) ([]byte, error) { return e.host.ReadFile(host.Path(path)) },
		"readDir":  func(path string) ([]fs.FileInfo, error) { return readDir(e.host, path) },

		"toYaml":   toYAML,
		"fromYaml": fromYAML,

		"parseOCIRef":   landscaper.ParseOCIRef,
		"ociRefRepo":    part(0),
		"ociRefVersion": part(1),

		"getResource":          asked(e.host, landscaper.Resource),
		"getResources":         asked(e.host, landscaper.Resources),
		"getResourceKey":       asked(e.host, landscaper.ResourceKey),
		"getResourceContent":   asked(e.host, landscaper.ResourceContent),
		"getComponent":         asked(e.host, landscaper.Component),
		"getRepositoryContext": landscaper.RepositoryContext,

		"getShootAdminKubeconfig":                            asked(e.host, text(landscaper.ShootAdminKubeconfig)),
		"getShootAdminKubeconfigWithExpirationTimestamp":     asked(e.host, expiring(landscaper.ShootAdminKubeconfig)),
		"getServiceAccountKubeconfig":                        asked(e.host, text(landscaper.ServiceAccountKubeconfig)),
		"getServiceAccountKubeconfigWithExpirationTimestamp": asked(e.host, expiring(landscaper.ServiceAccountKubeconfig)),
		"getOidcKubeconfig":                                  asked(e.host, landscaper.OIDCKubeconfig),
	}
}

// question is a function that the host answers.
type question[T any] func(host.Host, []any) (T, error)

// asked makes a template function of a question.
func asked[T any](h host.Host, ask question[T]) func(args ...any) (T, error) {
	return func(args ...any) (T, error) { return ask(h, args) }
}

func text(issueCredential question[landscaper.IssuedCredential]) question[string] {
	return func(h host.Host, args []any) (string, error) {
		issued, err := issueCredential(h, args)
		return issued.Kubeconfig, err
	}
}

func expiring(issueCredential question[landscaper.IssuedCredential]) question[map[string]any] {
	return func(h host.Host, args []any) (map[string]any, error) {
		issued, err := issueCredential(h, args)
		if err != nil {
			return nil, err
		}
		return issued.WithExpiration(), nil
	}
}

func part(index int) func(string) (string, error) {
	return func(ref string) (string, error) {
		parts, err := landscaper.ParseOCIRef(ref)
		return parts[index], err
	}
}

// toYAML writes a value without the final newline; a value that YAML cannot write gives nothing.
func toYAML(value any) string {
	written, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(written), "\n")
}

func fromYAML(text string) (any, error) {
	var value any
	err := yaml.Unmarshal([]byte(text), &value)
	return value, err
}
