package plan

import (
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/release"
	"orangery.dev/helm/render"
	"orangery.dev/helm/wire"
)

// testSuccess is what Helm 2 called tests.
const testSuccess helm.HookEvent = "test-success"

// Tests are the hooks `test` of the revision of a release that is deployed, as `helm test` runs them. It answers false where
// no revision is deployed. Errors are of type *wire.Fault.
func Tests(host wire.Host, namespace, name string) ([]wire.Test, bool, error) {
	history, err := release.Read(host, namespace, name)
	if err != nil {
		return nil, false, err
	}
	deployed := history.With(common.StatusDeployed)
	if deployed == nil {
		return nil, false, nil
	}
	of, err := deployed.Release()
	if err != nil {
		return nil, true, err
	}
	cluster, err := render.Look(host)
	if err != nil {
		return nil, true, err
	}
	var tests []wire.Test
	for _, hook := range event(of, helm.HookTest, testSuccess) {
		objects, err := render.Objects(hook.Manifest, of.Namespace, cluster, 0)
		if err != nil {
			return nil, true, err
		}
		for _, object := range objects {
			tests = append(tests, wire.Test{
				Source: hook.Path, Object: object.Content, DeleteBefore: removes(hook, beforeHookCreation),
				DeleteAfterSuccess: removes(hook, helm.HookSucceeded), DeleteAfterFailure: removes(hook, helm.HookFailed),
			})
		}
	}
	return tests, true, nil
}
