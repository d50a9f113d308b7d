package spiff

import (
	"encoding/json"
	"errors"

	"github.com/mandelsoft/spiff/dynaml"
	"github.com/mandelsoft/spiff/spiffing"
	"github.com/mandelsoft/spiff/yaml"

	"orangery.dev/plugins/host"
	"orangery.dev/plugins/landscaper"
)

// function is one of Landscaper's: plain values in, a plain value out.
type function func(h host.Host, args []any) (any, error)

// added are the functions that executions have beyond spiff's own. Data mappings have none.
var added = map[string]function{
	"getResource":        asAny(landscaper.Resource),
	"getResourceKey":     asAny(byReference(landscaper.ResourceKey)),
	"getResourceContent": asAny(content),
	"getComponent":       asAny(landscaper.Component),

	"parseOCIRef":   func(_ host.Host, args []any) (any, error) { return parseOCIRef(args) },
	"ociRefRepo":    func(_ host.Host, args []any) (any, error) { return part(args, 0) },
	"ociRefVersion": func(_ host.Host, args []any) (any, error) { return part(args, 1) },

	"getShootAdminKubeconfig":                            text(landscaper.ShootAdminKubeconfig),
	"getShootAdminKubeconfigWithExpirationTimestamp":     expiring(landscaper.ShootAdminKubeconfig),
	"getServiceAccountKubeconfig":                        text(landscaper.ServiceAccountKubeconfig),
	"getServiceAccountKubeconfigWithExpirationTimestamp": expiring(landscaper.ServiceAccountKubeconfig),
	"getOidcKubeconfig":                                  asAny(landscaper.OIDCKubeconfig),
}

func functions(h host.Host, execution host.Execution) spiffing.Functions {
	functions := spiffing.NewFunctions()
	functions.RegisterFunction("mkdir", refuseFolder)
	if execution == host.ImportMapping || execution == host.ExportMapping {
		return functions
	}
	for name, call := range added {
		functions.RegisterFunction(name, func(args []any, binding dynaml.Binding) (any, dynaml.EvaluationInfo, bool) {
			return evaluate(h, call, args, binding)
		})
	}
	return functions
}

func refuseFolder([]any, dynaml.Binding) (any, dynaml.EvaluationInfo, bool) {
	info := dynaml.DefaultInfo()
	return info.Error("mkdir: %s", errReadOnly)
}

// evaluate calls a function between spiff's values and plain ones. Expressions in the answer are evaluated, as
// Landscaper does.
func evaluate(h host.Host, call function, args []any, binding dynaml.Binding) (any, dynaml.EvaluationInfo, bool) {
	info := dynaml.DefaultInfo()
	plain := []any{}
	for _, arg := range args {
		value, err := yaml.Normalize(yaml.NewNode(arg, ""))
		if err != nil {
			return info.Error("%s", err)
		}
		plain = append(plain, value)
	}
	value, err := call(h, plain)
	if err != nil {
		return info.Error("%s", err)
	}
	// Through JSON, so that numbers and maps are those that spiff reads.
	encoded, err := json.Marshal(value)
	if err != nil {
		return info.Error("%s", err)
	}
	node, err := yaml.Unmarshal("", encoded)
	if err != nil {
		return info.Error("%s", err)
	}
	result, status := binding.Flow(node, false)
	if status != nil {
		return info.Error("%s", status)
	}
	return result.Value(), info, true
}

func asAny[T any](call func(host.Host, []any) (T, error)) function {
	return func(h host.Host, args []any) (any, error) { return call(h, args) }
}

func text(issueCredential func(host.Host, []any) (landscaper.IssuedCredential, error)) function {
	return func(h host.Host, args []any) (any, error) {
		issued, err := issueCredential(h, args)
		return issued.Kubeconfig, err
	}
}

func expiring(issueCredential func(host.Host, []any) (landscaper.IssuedCredential, error)) function {
	return func(h host.Host, args []any) (any, error) {
		issued, err := issueCredential(h, args)
		if err != nil {
			return nil, err
		}
		return issued.WithExpiration(), nil
	}
}

// byReference lets a resource be named by a structure too, as a relative reference is one.
func byReference(call func(host.Host, []any) (string, error)) func(host.Host, []any) (string, error) {
	return func(h host.Host, args []any) (string, error) {
		if len(args) == 1 {
			if _, ok := args[0].(string); !ok {
				encoded, err := json.Marshal(args[0])
				if err != nil {
					return "", errors.New("unable to parse input")
				}
				args = []any{string(encoded)}
			}
		}
		return call(h, args)
	}
}

// content is a resource's content, read as YAML.
func content(h host.Host, args []any) (any, error) {
	told, err := byReference(landscaper.ResourceContent)(h, args)
	if err != nil {
		return nil, err
	}
	node, err := yaml.Unmarshal("data", []byte(told))
	if err != nil {
		return nil, errors.New("unable to marshal resource into spiff node")
	}
	return yaml.Normalize(node)
}

func parseOCIRef(args []any) ([2]string, error) {
	if len(args) != 1 {
		return [2]string{}, errors.New("Too many arguments for parseOCIReference. Expected 1 reference.")
	}
	ref, ok := args[0].(string)
	if !ok {
		return [2]string{}, errors.New("Invalid argument: string expected")
	}
	return landscaper.ParseOCIRef(ref)
}

func part(args []any, index int) (string, error) {
	parts, err := parseOCIRef(args)
	return parts[index], err
}
