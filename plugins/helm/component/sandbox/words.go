package sandbox

import (
	"encoding/json"
	"errors"
	"time"

	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_deploy"
	"wit_component/orangery_deployer_plan"
	"wit_component/orangery_deployer_types"
)

// Answer plans an item, in the words of the bindings.
func Answer(
	plan func(wire.Host, wire.Item) (*wire.Proposal, error), of orangery_deployer_deploy.Item,
) wit_types.Result[orangery_deployer_plan.Proposal, orangery_deployer_types.Fault] {
	item, err := item(of)
	if err != nil {
		return refused(err)
	}
	proposal, err := plan(Host{}, item)
	if err != nil {
		return refused(err)
	}
	told, err := proposalOf(proposal)
	if err != nil {
		return refused(err)
	}
	return wit_types.Ok[orangery_deployer_plan.Proposal, orangery_deployer_types.Fault](told)
}

func refused(err error) wit_types.Result[orangery_deployer_plan.Proposal, orangery_deployer_types.Fault] {
	return wit_types.Err[orangery_deployer_plan.Proposal](fault(err))
}

// fault is an error in the words of the bindings.
func fault(err error) orangery_deployer_types.Fault {
	var fault *wire.Fault
	if !errors.As(err, &fault) {
		fault = wire.Wrong("", "%s", err)
	}
	problem := Problem(fault.Problem)
	switch fault.Kind {
	case wire.Later:
		return orangery_deployer_types.MakeFaultLater(problem)
	case wire.Denied:
		return orangery_deployer_types.MakeFaultDenied(problem)
	default:
		return orangery_deployer_types.MakeFaultInvalid(problem)
	}
}

func faultOf(told orangery_deployer_types.Fault) *wire.Fault {
	switch told.Tag() {
	case orangery_deployer_types.Fault_Later:
		return &wire.Fault{Kind: wire.Later, Problem: problemOf(told.Later())}
	case orangery_deployer_types.Fault_Denied:
		return &wire.Fault{Kind: wire.Denied, Problem: problemOf(told.Denied())}
	default:
		return &wire.Fault{Kind: wire.Invalid, Problem: problemOf(told.Invalid())}
	}
}

// Problem is a problem in the words of the bindings.
func Problem(of wire.Problem) orangery_deployer_types.Problem {
	return orangery_deployer_types.Problem{Code: of.Code, Message: of.Message, At: some(of.At)}
}

func problemOf(told orangery_deployer_types.Problem) wire.Problem {
	return wire.Problem{Code: told.Code, Message: told.Message, At: told.At.SomeOr("")}
}

// some is the value, or none where it is empty.
func some[T comparable](value T) wit_types.Option[T] {
	var empty T
	if value == empty {
		return wit_types.None[T]()
	}
	return wit_types.Some(value)
}

func item(of orangery_deployer_deploy.Item) (wire.Item, error) {
	now, err := time.Parse(time.RFC3339, of.Now)
	if err != nil {
		return wire.Item{}, wire.Wrong("", "the host's time %q cannot be read: %s", of.Now, err)
	}
	read := wire.Item{
		Namespace: of.Namespace, Name: of.Name, UID: of.Uid, ItemType: of.ItemType, Generation: of.Generation,
		Context: of.Context, Target: of.Target.SomeOr(""), Job: of.Job, Config: json.RawMessage(of.Config),
		Status: json.RawMessage(of.Status.SomeOr("")), Checkpoint: of.Checkpoint.SomeOr(nil),
		Now: now.UTC(), Seed: of.Seed, Timeout: of.Timeout,
	}
	if of.Failed.IsSome() {
		failed := of.Failed.Some()
		read.Failed = &wire.Failure{Stage: failed.Stage, Problem: problemOf(failed.Problem)}
		if failed.Key.IsSome() {
			told := failed.Key.Some()
			read.Failed.Key = &wire.Key{
				APIVersion: told.ApiVersion, Kind: told.Kind, Namespace: told.Namespace.SomeOr(""), Name: told.Name,
			}
		}
	}
	return read, nil
}

func key(of wire.Key) orangery_deployer_types.ObjectKey {
	return orangery_deployer_types.ObjectKey{
		ApiVersion: of.APIVersion, Kind: of.Kind, Namespace: some(of.Namespace), Name: of.Name,
	}
}

func keys(of []wire.Key) []orangery_deployer_types.ObjectKey {
	all := make([]orangery_deployer_types.ObjectKey, 0, len(of))
	for _, one := range of {
		all = append(all, key(one))
	}
	return all
}

func selection(of wire.Selection) orangery_deployer_types.Selection {
	return orangery_deployer_types.Selection{
		ApiVersion: of.APIVersion, Kind: of.Kind, Namespace: some(of.Namespace), Names: of.Names,
		Labels: some(of.Labels), Fields: some(of.Fields),
	}
}

func cluster(of wire.Cluster) orangery_deployer_types.ClusterRef {
	if of == wire.Target {
		return target
	}
	return orangery_deployer_types.MakeClusterRefNamed(string(of))
}
