// Package main plans an item natively, several times, and prints the nanoseconds that it took in the middle: what the
// same takes in the sandbox is compared with it (tests/compare).
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"orangery.dev/helm/plan"
	"orangery.dev/helm/wire"
)

const times = 5

// request is what is read from the standard input.
type request struct {
	Config json.RawMessage    `json:"config"`
	Kinds  []wire.APIResource `json:"kinds"`
}

// told is a cluster of which only its kinds are known.
type told []wire.APIResource

func (told) GetMany(keys []wire.Key) ([]map[string]any, error) {
	return make([]map[string]any, len(keys)), nil
}
func (told) List(wire.Selection) ([]map[string]any, error) { return nil, nil }
func (told) Version() (string, error)                      { return "v1.33.4", nil }
func (t told) Discover() ([]wire.APIResource, error)       { return t, nil }
func (told) OCI(string) (wire.Artifact, error)             { return nil, wire.Wrong("", "nothing is here") }
func (told) URL(string) (wire.Artifact, error)             { return nil, wire.Wrong("", "nothing is here") }
func (told) HelmRepository(_, _, _ string) (wire.Artifact, error) {
	return nil, wire.Wrong("", "nothing is here")
}
func (told) ComponentResource(string) (wire.Artifact, error) {
	return nil, wire.Wrong("", "nothing is here")
}
func (told) Trace(string) {}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	item := wire.Item{Name: "compared", Namespace: "default", Job: "a", Config: asked.Config, Now: time.Unix(1_700_000_000, 0)}
	samples := []int64{}
	for range times {
		begin := time.Now()
		proposal, err := plan.Plan(told(asked.Kinds), item)
		if err == nil {
			_, err = json.Marshal(proposal)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		samples = append(samples, time.Since(begin).Nanoseconds())
	}
	slices.Sort(samples)
	fmt.Println(samples[times/2])
}
