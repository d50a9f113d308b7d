// Package main is the Helm deployer as a component of the world orangery:deployer/deployer-with-tests. The bindings
// and func main are generated.
package main

import (
	_ "embed"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	deploy "wit_component/export_orangery_deployer_deploy"
	tests "wit_component/export_orangery_deployer_tests"
	uninstall "wit_component/export_orangery_deployer_uninstall"
	validate "wit_component/export_orangery_deployer_validate"

	"orangery.dev/helm/config"
	"orangery.dev/helm/plan"
	"orangery.dev/helm/rehearsal"
)

// collectAbove is the heap at which the collector first runs: half of the memory that plugin.yaml allows one call, since some
// charts write texts of many mebibytes. An instance answers one call, so what it leaves lying about below that is nobody's loss.
const collectAbove = 128 << 20

func init() {
	deploy.Plan_ = plan.Plan
	uninstall.Plan_ = plan.Uninstall
	tests.Find_ = plan.Tests
	validate.Schema_ = config.Schema
	validate.Check_ = config.Check
}

// prewarm runs once, while the component is built: what it leaves in memory is what every call begins with. It is not
// part of the component.
//
//go:wasmexport prewarm
func prewarm() {
	for range 2 {
		if err := rehearsal.Run(); err != nil {
			fmt.Fprintf(os.Stderr, "the rehearsal failed: %s", err)
			os.Exit(1)
		}
	}
	runtime.GC()
	runtime.GC()
	debug.FreeOSMemory()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(collectAbove)
}
