// Package main is a template engine as a component of the world orangery:template/templater-with-check. The engine is
// chosen by a build tag, gotemplate or spiff; the bindings and func main are generated.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"orangery.dev/plugins/host"

	check "wit_component/export_orangery_template_check"
	render "wit_component/export_orangery_template_template"
)

// collectAbove is the heap at which the collector first runs: three quarters of the memory that plugins/go/*.yaml allow
// one call. An instance answers one call, so what it leaves lying about below that is nobody's loss.
const collectAbove = 96 << 20

// prewarm runs once, while the component is built: what it leaves in memory is what every call begins with. It renders
// and checks twice, since some caches fill at the second use, and is not part of the component.
//
//go:wasmexport prewarm
func prewarm() {
	for range 2 {
		if _, failure := render.Engine(nowhere{}, rehearsal); failure != nil {
			unrehearsed(failure)
		}
		for _, failure := range check.Look(nowhere{}, rehearsal).Failures {
			unrehearsed(&failure)
		}
	}
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectAbove)
}

func unrehearsed(failure *host.Failure) {
	fmt.Fprintf(os.Stderr, "the rehearsal failed at line %d: %s\n%s", failure.Line, failure.Message, failure.Snippet)
	os.Exit(1)
}

// nowhere is the host of the rehearsal: there is none.
type nowhere struct{}

var errNowhere = errors.New("there is no host while the component is built")

func (nowhere) ReadFile(string) ([]byte, error)        { return nil, errNowhere }
func (nowhere) List(string) ([]string, error)          { return nil, errNowhere }
func (nowhere) ResourceKey(string) (string, error)     { return "", errNowhere }
func (nowhere) ResourceContent(string) ([]byte, error) { return nil, errNowhere }
func (nowhere) IssueCredential(string, json.RawMessage) (json.RawMessage, error) {
	return nil, errNowhere
}
func (nowhere) Component(json.RawMessage, []host.Pair) (json.RawMessage, error) {
	return nil, errNowhere
}
func (nowhere) Resources(json.RawMessage, []host.Pair) ([]json.RawMessage, error) {
	return nil, errNowhere
}
