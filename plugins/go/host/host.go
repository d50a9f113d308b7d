// Package host is what a template engine and its host agree on, as Go sees it: the mirror of wit/template.
//
// An engine is a function from a Request to a Rendered or a Failure. All that it reads on the way it asks of a Host.
// Time and randomness are not asked here: the engines' libraries take them from package time and crypto/rand, which
// the sandbox answers by the job (wit/template/0.1.0/randomness.wit says how), so that rendering twice gives the same.
package host

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
)

// Execution is the list of the blueprint that an execution stands in (docs/wire.md §4.3).
type Execution string

const (
	// Import is importExecutions.
	Import Execution = "import"
	// Deploy is deployExecutions.
	Deploy Execution = "deploy"
	// Subinstallation is subinstallationExecutions.
	Subinstallation Execution = "subinstallation"
	// Export is exportExecutions.
	Export Execution = "export"
	// ImportMapping is importDataMappings of an installation.
	ImportMapping Execution = "importMapping"
	// ExportMapping is exportDataMappings of an installation.
	ExportMapping Execution = "exportMapping"
)

// Request is one execution to render.
type Request struct {
	// Execution is the list it stands in.
	Execution Execution `json:"execution"`
	// Name is the execution's name.
	Name string `json:"name"`
	// File is the blueprint file that the template comes from; empty for a template written in the blueprint.
	File string `json:"file,omitempty"`
	// Template is the template's text, or the file's content.
	Template string `json:"template"`
	// Inputs is a JSON object: imports, cd, components, blueprint, values, … as the execution receives them.
	Inputs json.RawMessage `json:"inputs"`
	// State is what this execution kept in the last job; nil if nothing.
	State json.RawMessage `json:"state,omitempty"`
}

// Output is either Text or Document.
type Output struct {
	// Text is YAML, decoded by the host, whose errors can then show the rendered line. Used where Document is nil.
	Text string
	// Document is finished JSON.
	Document json.RawMessage
}

// Rendered is what came of a template.
type Rendered struct {
	// Output is the rendered document.
	Output Output
	// State is kept for this execution's next job; nil keeps what the host finds in the output.
	State json.RawMessage
	// Warnings are told to the user, one sentence each.
	Warnings []string
}

// Failure is why nothing came of a template, and where.
type Failure struct {
	// Message is one sentence, without the place and never with a value of an import.
	Message string `json:"message"`
	// File is the blueprint file; empty for a template written in the blueprint.
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 is unknown.
	Line uint32 `json:"line,omitempty"`
	// Column counts from 1; 0 is unknown.
	Column uint32 `json:"column,omitempty"`
	// Snippet is some lines around the place, with a marker.
	Snippet string `json:"snippet,omitempty"`
	// Reads is what the failing line reads of the inputs, in the order of the text (wit/template/0.1.0/template.wit).
	Reads []InputPath `json:"reads,omitempty"`
}

// InputPath is a way from the inputs down.
type InputPath []InputStep

// InputStep is one step from a value to a part of it.
type InputStep struct {
	// Kind is the kind of the part.
	Kind StepKind
	// Name is that of a Field.
	Name string
}

// StepKind is the part of a value that a step leads to.
type StepKind uint8

const (
	// Field is a field of an object.
	Field StepKind = iota
	// Items is each item of a list.
	Items
	// Entries is each item of a list, or each value of an object.
	Entries
)

// MarshalJSON writes a step as the host's own tests do: {"field": "imports"}, "items" or "entries".
func (s InputStep) MarshalJSON() ([]byte, error) {
	switch s.Kind {
	case Items:
		return json.Marshal("items")
	case Entries:
		return json.Marshal("entries")
	default:
		return json.Marshal(map[string]string{"field": s.Name})
	}
}

// Fields is the path of names.
func Fields(names ...string) InputPath {
	path := make(InputPath, 0, len(names))
	for _, name := range names {
		path = append(path, InputStep{Name: name})
	}
	return path
}

// Then is a longer path; the path itself stays as it is.
func (p InputPath) Then(steps ...InputStep) InputPath {
	return append(slices.Clip(p), steps...)
}

// Findings is what can be said of a template before it has inputs (wit/template/0.1.0/check.wit).
type Findings struct {
	// Failures is what is wrong whatever the inputs are.
	Failures []Failure `json:"failures,omitempty"`
	// References is what the template reads by a fixed name; what it computes is left out.
	References []Reference `json:"references,omitempty"`
}

// Reference is a field of the inputs that a template reads.
type Reference struct {
	// Path is from the inputs down, such as imports and host.
	Path []string `json:"path"`
	// File is the blueprint file; empty for a template written in the blueprint.
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 is unknown.
	Line uint32 `json:"line,omitempty"`
	// Column counts from 1; 0 is unknown.
	Column uint32 `json:"column,omitempty"`
}

// Pair is a name and a value of an identity; all pairs of an identity have to match.
type Pair struct {
	// Name is the name.
	Name string
	// Value is the value.
	Value string
}

// The kinds of credentials that IssueCredential knows. Each needs a grant of its own.
const (
	// ServiceAccount is a kubeconfig with a token of a service account of the target cluster, by TokenRequest.
	// Arguments: name, namespace, expirationSeconds, target. Answer: kubeconfig (base64), expirationTimestamp (RFC 3339).
	ServiceAccount = "serviceAccount"
	// ShootAdmin is an administrator's kubeconfig of a Gardener shoot, by the subresource adminkubeconfig.
	// Arguments: name, namespace, expirationSeconds, target (of the garden project). Answer as for ServiceAccount.
	ShootAdmin = "shootAdmin"
	// Cluster is the kubeconfig of a target whose content lies in a Secret, without its users: no credential at all.
	// Arguments: target. Answer: kubeconfig (base64).
	Cluster = "cluster"
)

// Host answers what a template may ask. Each error is one sentence, to be shown as it is.
type Host interface {
	// ReadFile is the content of a blueprint file. The path is relative, with slashes, without "..".
	ReadFile(path string) ([]byte, error)
	// List is the names in a folder, sorted; the empty path is the blueprint's root.
	List(path string) ([]string, error)
	// Component is the descriptor that a component descriptor references under an identity; nil stands for the
	// blueprint's own component.
	Component(from json.RawMessage, identity []Pair) (json.RawMessage, error)
	// Resources are the resources of a component descriptor that match an identity, in its order.
	Resources(from json.RawMessage, identity []Pair) ([]json.RawMessage, error)
	// ResourceKey is a key of a resource, which deployers hand back.
	ResourceKey(reference string) (string, error)
	// ResourceContent is the content of a resource as templates see it: base64 where it is an octet stream.
	ResourceContent(reference string) ([]byte, error)
	// IssueCredential is a credential of a kind for a target. The answer is a secret.
	IssueCredential(kind string, arguments json.RawMessage) (json.RawMessage, error)
}

// Path is a path of a template as ReadFile and List take it. The blueprint is the root: no path leads out of it.
func Path(name string) string {
	return path.Clean("/" + Text(name))[1:]
}

// Text is a text of a template as a host takes it: templates can cut characters in two, and hosts read UTF-8.
func Text(text string) string {
	return strings.ToValidUTF8(text, "\uFFFD")
}
