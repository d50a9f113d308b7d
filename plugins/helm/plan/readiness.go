package plan

import (
	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// judged are the kinds that have a rule for when they are ready (docs/wire.md §9); others are ready when they exist.
var judged = map[[2]string]bool{
	{"", "Pod"}: true, {"", "ReplicationController"}: true, {"apps", "Deployment"}: true,
	{"apps", "StatefulSet"}: true, {"apps", "DaemonSet"}: true, {"apps", "ReplicaSet"}: true,
}

// readiness is the gate that the item asks for: the default checks and its own.
func (c *call) readiness(objects []render.Object) []wire.Readiness {
	var checks []wire.Readiness
	if c.config.DefaultReadiness {
		checks = workloads("default", objects)
	}
	return append(checks, c.config.Readiness...)
}

// workloads waits for the objects that have a rule.
func workloads(name string, objects []render.Object) []wire.Readiness {
	var keys []wire.Key
	for _, object := range objects {
		if key := object.Key(); judged[[2]string{key.Group(), key.Kind}] {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return []wire.Readiness{{Name: name, Scope: wire.Scope{Keys: keys}, Rule: wire.Usual}}
}

// waiting is what Helm waits for with --wait: the workloads, and claims that are bound.
func waiting(objects []render.Object) []wire.Readiness {
	checks := workloads("wait", objects)
	var claims []wire.Key
	for _, object := range objects {
		if key := object.Key(); key.Group() == "" && key.Kind == "PersistentVolumeClaim" {
			claims = append(claims, key)
		}
	}
	if len(claims) > 0 {
		bound := wire.Rule{{Path: "status.phase", Operator: "==", Values: []any{"Bound"}}}
		checks = append(checks, wire.Readiness{Name: "wait for claims", Scope: wire.Scope{Keys: claims}, Rule: bound})
	}
	return checks
}
