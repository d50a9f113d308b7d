// Package wire is what the deployer and the host agree on: the words of wit/deployer, with the names that recorded cases
// have (plugins/sdk/src/cases.rs).
package wire

import "encoding/json"

// Key is the identity of one Kubernetes object.
type Key struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace is empty for kinds without one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Group is the API group; empty for the core group.
func (k Key) Group() string {
	group, _ := splitVersion(k.APIVersion)
	return group
}

// SameObject tells whether two keys name one object, whatever versions of its group they name.
func (k Key) SameObject(other Key) bool {
	return k.Group() == other.Group() && k.Kind == other.Kind && k.Namespace == other.Namespace && k.Name == other.Name
}

// String is `Kind namespace/name`, as the host shows it.
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

func splitVersion(apiVersion string) (group, version string) {
	for i := range apiVersion {
		if apiVersion[i] == '/' {
			return apiVersion[:i], apiVersion[i+1:]
		}
	}
	return "", apiVersion
}

// Selection is a set of objects of one kind.
type Selection struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace,omitempty"`
	Names      []string `json:"names,omitempty"`
	Labels     string   `json:"labels,omitempty"`
	Fields     string   `json:"fields,omitempty"`
}

// How an object that exists is brought to the desired form.
type How struct {
	// Word is one of the words of wit/deployer/0.1.0/plan.wit.
	Word string
	// Earlier is the desired form before, for Merge.
	Earlier map[string]any
	// Manager holds the fields, for ApplyAs.
	Manager string
}

// The ways to write that a chart needs.
var (
	Replace = How{Word: "replace"}
	Patch   = How{Word: "patch"}
	Create  = How{Word: "create"}
)

// Merge merges what changed since an earlier desired form.
func Merge(earlier map[string]any) How { return How{Word: "merge", Earlier: earlier} }

// ApplyAs is server-side apply under a field manager, where a conflict fails.
func ApplyAs(manager string) How { return How{Word: "applyAs", Manager: manager} }

// MarshalJSON writes a word, or a word with what it carries.
func (h How) MarshalJSON() ([]byte, error) {
	switch {
	case h.Earlier != nil:
		return json.Marshal(map[string]any{h.Word: h.Earlier})
	case h.Manager != "":
		return json.Marshal(map[string]any{h.Word: h.Manager})
	default:
		return json.Marshal(h.Word)
	}
}

// Ownership is what an object is to the item.
type Ownership string

const (
	// Managed objects are updated, pruned and deleted with the item.
	Managed Ownership = ""
	// Kept objects are updated, never deleted.
	Kept Ownership = "kept"
)

// Write is one object to be written, to the cluster of the item's target.
type Write struct {
	Object map[string]any `json:"object"`
	How    How            `json:"how"`
	Owned  Ownership      `json:"owned,omitempty"`
}

// Removal is one object to be deleted.
type Removal struct {
	Key Key `json:"key"`
}

// Cluster is the one of the item's target, or that of another Target by its name.
type Cluster string

// Target is the cluster of the item's own target.
const Target Cluster = ""

// MarshalJSON writes a named cluster as the host reads it.
func (c Cluster) MarshalJSON() ([]byte, error) {
	if c == Target {
		return json.Marshal("target")
	}
	return json.Marshal(map[string]string{"named": string(c)})
}

// Requirement is what one field of an object has to be.
type Requirement struct {
	Path     string `json:"path"`
	Operator string `json:"operator"`
	Values   []any  `json:"values,omitempty"`
}

// Scope is which objects a check looks at: one of the two.
type Scope struct {
	Keys     []Key      `json:"keys,omitempty"`
	Matching *Selection `json:"matching,omitempty"`
}

// Rule is when objects are ready: all requirements, or the usual rule of their kind.
type Rule []Requirement

// Usual is the usual rule of the kind.
var Usual Rule

// MarshalJSON writes the word of the usual rule, or the requirements.
func (r Rule) MarshalJSON() ([]byte, error) {
	if r == nil {
		return json.Marshal("usual")
	}
	return json.Marshal(map[string][]Requirement{"requirements": r})
}

// Readiness is a check that the host evaluates whenever an object changes.
type Readiness struct {
	Name  string  `json:"name"`
	On    Cluster `json:"on,omitempty"`
	Scope Scope   `json:"scope"`
	Rule  Rule    `json:"rule"`
	// Timeout in milliseconds; 0 is what is left of the item's own deadline.
	Timeout uint64 `json:"timeout,omitempty"`
}

// Gate is what has to hold before the next stage starts: nothing, readiness, or jobs and pods at their end.
type Gate struct {
	Ready     []Readiness `json:"ready,omitempty"`
	Completed []Key       `json:"completed,omitempty"`
}

// IsOpen tells whether nothing has to hold.
func (g Gate) IsOpen() bool { return len(g.Ready) == 0 && len(g.Completed) == 0 }

// Stage is what goes together.
type Stage struct {
	Name     string    `json:"name"`
	Removals []Removal `json:"removals,omitempty"`
	Writes   []Write   `json:"writes,omitempty"`
	Gate     Gate      `json:"gate,omitzero"`
}

// Follow is a second object, named by the value found in the first.
type Follow struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Path       string `json:"path"`
}

// PathSource is a place in an object.
type PathSource struct {
	On   Cluster `json:"on,omitempty"`
	Key  Key     `json:"key"`
	Path string  `json:"path"`
	Then *Follow `json:"then,omitempty"`
}

// ExportSource is a value, or a place that has it.
type ExportSource struct {
	Value any
	Path  *PathSource
}

// MarshalJSON writes the one that is given.
func (s ExportSource) MarshalJSON() ([]byte, error) {
	if s.Path != nil {
		return json.Marshal(map[string]any{"path": s.Path})
	}
	return json.Marshal(map[string]any{"value": s.Value})
}

// Export is one export of the item.
type Export struct {
	Key    string       `json:"key"`
	Source ExportSource `json:"source"`
}

// DeletionScope is part of the inventory: a word, or objects that match.
type DeletionScope struct {
	// Word is namespaced, clusterScoped or customResourceDefinitions.
	Word string
	// Managed are those of the inventory that match.
	Managed *Selection
	// Matching are all that match, managed or not.
	Matching *Selection
}

// MarshalJSON writes the one that is given.
func (s DeletionScope) MarshalJSON() ([]byte, error) {
	switch {
	case s.Managed != nil:
		return json.Marshal(map[string]any{"managed": s.Managed})
	case s.Matching != nil:
		return json.Marshal(map[string]any{"matching": s.Matching})
	default:
		return json.Marshal(s.Word)
	}
}

// DeletionGroup is deleted together.
type DeletionGroup struct {
	On    Cluster         `json:"on,omitempty"`
	What  []DeletionScope `json:"what"`
	Force bool            `json:"force,omitempty"`
}

// Next is what follows the last stage: the item succeeds with exports, fails, or the deployer is called again.
type Next struct {
	Exports []Export
	Fail    *Problem
}

// MarshalJSON writes the one that is given.
func (n Next) MarshalJSON() ([]byte, error) {
	if n.Fail != nil {
		return json.Marshal(map[string]any{"fail": n.Fail})
	}
	finish := map[string]any{}
	if len(n.Exports) > 0 {
		finish["exports"] = n.Exports
	}
	return json.Marshal(map[string]any{"finish": finish})
}

// Proposal is the answer.
type Proposal struct {
	Stages        []Stage         `json:"stages,omitempty"`
	Next          Next            `json:"next"`
	Recover       []byte          `json:"recover,omitempty"`
	Status        any             `json:"status,omitempty"`
	DeletionOrder []DeletionGroup `json:"deletionOrder,omitempty"`
	PruningOrder  []DeletionGroup `json:"pruningOrder,omitempty"`
}

// Test is one test of what was deployed: an object that is created.
type Test struct {
	// Source is where it comes from.
	Source string `json:"source"`
	// Object is the object.
	Object map[string]any `json:"object"`
	// DeleteBefore says whether what is left of an earlier run is deleted before.
	DeleteBefore bool `json:"deleteBefore,omitempty"`
	// DeleteAfterSuccess says whether it is deleted once it has succeeded.
	DeleteAfterSuccess bool `json:"deleteAfterSuccess,omitempty"`
	// DeleteAfterFailure says whether it is deleted once it has failed.
	DeleteAfterFailure bool `json:"deleteAfterFailure,omitempty"`
}
