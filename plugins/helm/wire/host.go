package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Problem is what went wrong, for the user who reads the item's status.
type Problem struct {
	// Code is an error code of Landscaper (docs/wire.md §3.3).
	Code string `json:"code"`
	// Message is one sentence: what, why, and how to mend it. Never a secret.
	Message string `json:"message"`
	// At is where in the configuration, as a JSON pointer; empty where it is nowhere.
	At string `json:"at,omitempty"`
}

// ConfigurationProblem is the code of what only another configuration mends.
const ConfigurationProblem = "ERR_CONFIGURATION_PROBLEM"

// FaultKind is what the host makes of a call that ends without an answer.
type FaultKind string

const (
	// Invalid says that only another configuration helps.
	Invalid FaultKind = "invalid"
	// Later says that the host calls again until the item's deadline.
	Later FaultKind = "later"
	// Denied says that a grant is missing.
	Denied FaultKind = "denied"
)

// Fault is why a call ends without an answer, in either direction.
type Fault struct {
	Kind    FaultKind
	Problem Problem
}

// Error is the message.
func (f *Fault) Error() string { return f.Problem.Message }

// MarshalJSON writes it as recorded cases have it.
func (f *Fault) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[FaultKind]Problem{f.Kind: f.Problem})
}

// Wrong is a fault of the configuration, at a JSON pointer.
func Wrong(at, format string, arguments ...any) *Fault {
	return &Fault{Invalid, Problem{Code: ConfigurationProblem, Message: fmt.Sprintf(format, arguments...), At: at}}
}

// APIResource is one kind that a cluster serves.
type APIResource struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced,omitempty"`
}

// Artifact is content that was found.
type Artifact interface {
	// Digest is `sha256:…` of the content.
	Digest() string
	// Size is the length in bytes.
	Size() uint64
	// Read reads all of it.
	Read() ([]byte, error)
	// Layer reads another layer of the same artifact by its media type; nil where it has none.
	Layer(mediaType string) ([]byte, error)
}

// Host is what the deployer may ask. Errors are of type *Fault.
type Host interface {
	// GetMany reads objects of the target's cluster; nil for those that do not exist.
	GetMany(keys []Key) ([]map[string]any, error)
	// List reads all objects of a selection.
	List(what Selection) ([]map[string]any, error)
	// Version is the server's version, such as `v1.33.4`.
	Version() (string, error)
	// Discover is the kinds that the cluster serves.
	Discover() ([]APIResource, error)
	// OCI finds an artifact by reference.
	OCI(reference string) (Artifact, error)
	// URL finds a file.
	URL(url string) (Artifact, error)
	// HelmRepository finds a chart of a classic repository.
	HelmRepository(url, chart, version string) (Artifact, error)
	// ComponentResource finds a resource of a component version.
	ComponentResource(key string) (Artifact, error)
	// Trace says what the call is at, for the log, and for the user where the host has to stop the call at a limit.
	Trace(message string)
}

// Failure is what went wrong in a stage of the proposal before.
type Failure struct {
	Stage   string  `json:"stage"`
	Key     *Key    `json:"key,omitempty"`
	Problem Problem `json:"problem"`
}

// Item is a deploy item.
type Item struct {
	Namespace  string          `json:"namespace"`
	Name       string          `json:"name"`
	UID        string          `json:"uid"`
	ItemType   string          `json:"itemType"`
	Generation uint64          `json:"generation"`
	Context    string          `json:"context"`
	Target     string          `json:"target,omitempty"`
	Job        string          `json:"job"`
	Config     json.RawMessage `json:"config"`
	Status     json.RawMessage `json:"status,omitempty"`
	Checkpoint []byte          `json:"checkpoint,omitempty"`
	Failed     *Failure        `json:"failed,omitempty"`
	// Now is the time of the job's first call.
	Now time.Time `json:"now"`
	// Seed is the same for every call of the job.
	Seed uint64 `json:"seed"`
	// Timeout in milliseconds, from the job's start to the item's deadline.
	Timeout uint64 `json:"timeout"`
}
