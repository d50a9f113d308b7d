package diagnosis

import (
	"slices"

	"orangery.dev/plugins/host"
)

const (
	// mostReads is how many paths a failure may have (wit/template/0.1.0/template.wit).
	mostReads = 16
	// mostRead is how many bytes the fields of such a path may have, with one byte for each of its steps.
	mostRead = 256
)

// Reads gathers what a failing line reads: each path once, as many and as long ones as the contract takes.
type Reads struct {
	paths []host.InputPath
}

// Add gathers a path. The inputs as a whole are none.
func (r *Reads) Add(path host.InputPath) {
	bytes := len(path)
	for _, step := range path {
		bytes += len(step.Name)
	}
	isKnown := slices.ContainsFunc(r.paths, func(known host.InputPath) bool { return slices.Equal(known, path) })
	if len(path) > 0 && bytes <= mostRead && !isKnown && len(r.paths) < mostReads {
		r.paths = append(r.paths, path)
	}
}

// Paths is what was gathered.
func (r *Reads) Paths() []host.InputPath { return r.paths }
