package sandbox

import (
	"encoding/json"

	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_plan"
)

// text is a JSON document. What a chart has comes from YAML, so that it can always be written as JSON.
func text(of any) (string, error) {
	written, err := json.Marshal(of)
	if err != nil {
		return "", wire.Wrong("", "the proposal cannot be written: %s", err)
	}
	return string(written), nil
}

// each converts all of a list, up to the first error.
func each[A, B any](of []A, convert func(A) (B, error)) ([]B, error) {
	all := make([]B, 0, len(of))
	for _, one := range of {
		told, err := convert(one)
		if err != nil {
			return nil, err
		}
		all = append(all, told)
	}
	return all, nil
}

func proposalOf(of *wire.Proposal) (orangery_deployer_plan.Proposal, error) {
	stages, err := each(of.Stages, stage)
	if err != nil {
		return orangery_deployer_plan.Proposal{}, err
	}
	next, err := next(of.Next)
	if err != nil {
		return orangery_deployer_plan.Proposal{}, err
	}
	told := orangery_deployer_plan.Proposal{
		Stages: stages, Next: next, DeletionOrder: groups(of.DeletionOrder), PruningOrder: groups(of.PruningOrder),
		Recover: wit_types.None[[]uint8](), Status: wit_types.None[string](),
	}
	if of.Recover != nil {
		told.Recover = wit_types.Some(of.Recover)
	}
	if of.Status != nil {
		status, err := text(of.Status)
		if err != nil {
			return orangery_deployer_plan.Proposal{}, err
		}
		told.Status = wit_types.Some(status)
	}
	return told, nil
}

func stage(of wire.Stage) (orangery_deployer_plan.Stage, error) {
	writes, err := each(of.Writes, write)
	if err != nil {
		return orangery_deployer_plan.Stage{}, err
	}
	gate, err := gate(of.Gate)
	if err != nil {
		return orangery_deployer_plan.Stage{}, err
	}
	removals := make([]orangery_deployer_plan.ObjectRemoval, 0, len(of.Removals))
	for _, removal := range of.Removals {
		removals = append(removals, orangery_deployer_plan.ObjectRemoval{Key: key(removal.Key), On: target})
	}
	return orangery_deployer_plan.Stage{
		Name: of.Name, Removals: removals, Writes: writes, Gate: gate, Timeout: wit_types.None[uint64](),
	}, nil
}

func write(of wire.Write) (orangery_deployer_plan.ObjectWrite, error) {
	object, err := text(of.Object)
	if err != nil {
		return orangery_deployer_plan.ObjectWrite{}, err
	}
	how, err := how(of.How)
	owned := orangery_deployer_plan.Ownership_Managed
	if of.Owned == wire.Kept {
		owned = orangery_deployer_plan.Ownership_Kept
	}
	return orangery_deployer_plan.ObjectWrite{
		Object: object, On: target, How: how, Owned: owned,
		AtCreation: wit_types.None[string](), BeforeDeletion: wit_types.None[string](),
	}, err
}

func how(of wire.How) (orangery_deployer_plan.Write, error) {
	switch {
	case of.Earlier != nil:
		earlier, err := text(of.Earlier)
		return orangery_deployer_plan.MakeWriteMerge(earlier), err
	case of.Manager != "":
		return orangery_deployer_plan.MakeWriteApplyAs(of.Manager), nil
	case of.Word == wire.Create.Word:
		return orangery_deployer_plan.MakeWriteCreate(), nil
	case of.Word == wire.Patch.Word:
		return orangery_deployer_plan.MakeWritePatch(), nil
	default:
		return orangery_deployer_plan.MakeWriteReplace(), nil
	}
}

func gate(of wire.Gate) (orangery_deployer_plan.Gate, error) {
	if len(of.Completed) > 0 {
		return orangery_deployer_plan.MakeGateCompleted(keys(of.Completed)), nil
	}
	if len(of.Ready) == 0 {
		return orangery_deployer_plan.MakeGateAccepted(), nil
	}
	ready, err := each(of.Ready, readiness)
	return orangery_deployer_plan.MakeGateReady(ready), err
}

func readiness(of wire.Readiness) (orangery_deployer_plan.Readiness, error) {
	scope := orangery_deployer_plan.MakeScopeKeys(keys(of.Scope.Keys))
	if of.Scope.Matching != nil {
		scope = orangery_deployer_plan.MakeScopeMatching(selection(*of.Scope.Matching))
	}
	rule := orangery_deployer_plan.MakeReadinessRuleUsual()
	if of.Rule != nil {
		requirements, err := each(of.Rule, requirement)
		if err != nil {
			return orangery_deployer_plan.Readiness{}, err
		}
		rule = orangery_deployer_plan.MakeReadinessRuleRequirements(requirements)
	}
	return orangery_deployer_plan.Readiness{
		Name: of.Name, On: cluster(of.On), Scope: scope, Rule: rule, Timeout: some(of.Timeout),
	}, nil
}

func requirement(of wire.Requirement) (orangery_deployer_plan.Requirement, error) {
	values, err := each(of.Values, text)
	return orangery_deployer_plan.Requirement{Path: of.Path, Operator: of.Operator, Values: values}, err
}

func next(of wire.Next) (orangery_deployer_plan.Next, error) {
	if of.Fail != nil {
		return orangery_deployer_plan.MakeNextFail(Problem(*of.Fail)), nil
	}
	exports, err := each(of.Exports, export)
	return orangery_deployer_plan.MakeNextFinish(orangery_deployer_plan.Completion{Exports: exports}), err
}

func export(of wire.Export) (orangery_deployer_plan.ExportRule, error) {
	if of.Source.Path == nil {
		value, err := text(of.Source.Value)
		source := orangery_deployer_plan.MakeExportSourceValue(value)
		return orangery_deployer_plan.ExportRule{Key: of.Key, Source: source}, err
	}
	path := orangery_deployer_plan.PathSource{
		On: cluster(of.Source.Path.On), Key: key(of.Source.Path.Key), Path: of.Source.Path.Path,
		Then: wit_types.None[orangery_deployer_plan.Follow](),
	}
	if then := of.Source.Path.Then; then != nil {
		path.Then = wit_types.Some(orangery_deployer_plan.Follow{ApiVersion: then.APIVersion, Kind: then.Kind, Path: then.Path})
	}
	return orangery_deployer_plan.ExportRule{Key: of.Key, Source: orangery_deployer_plan.MakeExportSourcePath(path)}, nil
}

func groups(of []wire.DeletionGroup) []orangery_deployer_plan.DeletionGroup {
	all := make([]orangery_deployer_plan.DeletionGroup, 0, len(of))
	for _, group := range of {
		told := orangery_deployer_plan.DeletionGroup{On: cluster(group.On), Force: group.Force}
		for _, scope := range group.What {
			told.What = append(told.What, deletionScope(scope))
		}
		all = append(all, told)
	}
	return all
}

func deletionScope(of wire.DeletionScope) orangery_deployer_plan.DeletionScope {
	switch {
	case of.Managed != nil:
		return orangery_deployer_plan.MakeDeletionScopeManaged(selection(*of.Managed))
	case of.Matching != nil:
		return orangery_deployer_plan.MakeDeletionScopeMatching(selection(*of.Matching))
	case of.Word == "clusterScoped":
		return orangery_deployer_plan.MakeDeletionScopeClusterScoped()
	case of.Word == "customResourceDefinitions":
		return orangery_deployer_plan.MakeDeletionScopeCustomResourceDefinitions()
	default:
		return orangery_deployer_plan.MakeDeletionScopeNamespaced()
	}
}
