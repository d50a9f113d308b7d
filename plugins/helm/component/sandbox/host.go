// Package sandbox is what the deployer in a component has around it: the host behind the imports of wit/deployer, and the
// words of items and proposals.
package sandbox

import (
	"encoding/json"

	"go.bytecodealliance.org/pkg/wit/runtime"
	"go.bytecodealliance.org/pkg/wit/types"
	"orangery.dev/helm/wire"

	"wit_component/orangery_deployer_artifacts"
	"wit_component/orangery_deployer_cluster"
	"wit_component/orangery_deployer_log"
	"wit_component/orangery_deployer_types"
)

// Host is the host as a call in the sandbox reaches it.
type Host struct{}

// ask makes a host call. Its answer lies in memory that no later call gives back, so it need not be copied.
func ask[T any](call func() wit_types.Result[T, orangery_deployer_types.Fault]) (T, error) {
	runtime.PauseClock(true)
	answer := call()
	runtime.PauseClock(false)
	if answer.IsErr() {
		var none T
		return none, faultOf(answer.Err())
	}
	return answer.Ok(), nil
}

var target = orangery_deployer_types.MakeClusterRefTarget()

func object(text string) (map[string]any, error) {
	var content map[string]any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return nil, wire.Wrong("", "the cluster's answer is no object: %s", err)
	}
	return content, nil
}

func (Host) GetMany(keys []wire.Key) ([]map[string]any, error) {
	asked := make([]orangery_deployer_types.ObjectKey, 0, len(keys))
	for _, one := range keys {
		asked = append(asked, key(one))
	}
	found, err := ask(func() wit_types.Result[[]wit_types.Option[string], orangery_deployer_types.Fault] {
		return orangery_deployer_cluster.GetMany(target, asked)
	})
	if err != nil {
		return nil, err
	}
	objects := make([]map[string]any, len(found))
	for i, text := range found {
		if text.IsSome() {
			if objects[i], err = object(text.Some()); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

func (Host) List(what wire.Selection) ([]map[string]any, error) {
	found, err := ask(func() wit_types.Result[[]string, orangery_deployer_types.Fault] {
		return orangery_deployer_cluster.List(target, selection(what))
	})
	if err != nil {
		return nil, err
	}
	objects := make([]map[string]any, 0, len(found))
	for _, text := range found {
		content, err := object(text)
		if err != nil {
			return nil, err
		}
		objects = append(objects, content)
	}
	return objects, nil
}

func (Host) Version() (string, error) {
	return ask(func() wit_types.Result[string, orangery_deployer_types.Fault] {
		return orangery_deployer_cluster.Version(target)
	})
}

func (Host) Discover() ([]wire.APIResource, error) {
	found, err := ask(func() wit_types.Result[[]orangery_deployer_cluster.ApiResource, orangery_deployer_types.Fault] {
		return orangery_deployer_cluster.Discover(target)
	})
	resources := make([]wire.APIResource, 0, len(found))
	for _, one := range found {
		resources = append(resources, wire.APIResource{APIVersion: one.ApiVersion, Kind: one.Kind, Namespaced: one.Namespaced})
	}
	return resources, err
}

func (Host) Trace(message string) {
	orangery_deployer_log.Log(orangery_deployer_log.Level_Trace, message, nil)
}

type found = wit_types.Result[*orangery_deployer_artifacts.Artifact, orangery_deployer_types.Fault]

func (Host) OCI(reference string) (wire.Artifact, error) {
	return content(func() found { return orangery_deployer_artifacts.Oci(reference) })
}

func (Host) URL(url string) (wire.Artifact, error) {
	return content(func() found { return orangery_deployer_artifacts.Url(url) })
}

func (Host) HelmRepository(url, chart, version string) (wire.Artifact, error) {
	return content(func() found { return orangery_deployer_artifacts.HelmRepository(url, chart, version) })
}

func (Host) ComponentResource(key string) (wire.Artifact, error) {
	return content(func() found { return orangery_deployer_artifacts.ComponentResource(key) })
}

func content(call func() found) (wire.Artifact, error) {
	held, err := ask(call)
	if err != nil {
		return nil, err
	}
	return artifact{held}, nil
}

// artifact is content that the host holds. Its handle goes with the instance.
type artifact struct {
	held *orangery_deployer_artifacts.Artifact
}

// part is how much is read at once.
const part = 4 << 20

func (a artifact) Digest() string { return a.held.Digest() }
func (a artifact) Size() uint64   { return a.held.Size() }

func (a artifact) Read() ([]byte, error) {
	size := a.held.Size()
	all := make([]byte, 0, size)
	for uint64(len(all)) < size {
		read, err := ask(func() wit_types.Result[[]uint8, orangery_deployer_types.Fault] {
			return a.held.Read(uint64(len(all)), part)
		})
		if err != nil {
			return nil, err
		}
		if len(read) == 0 {
			return nil, wire.Wrong("", "the content of %s ends before its %d bytes", a.held.Digest(), size)
		}
		all = append(all, read...)
	}
	return all, nil
}

func (a artifact) Layer(mediaType string) ([]byte, error) {
	held, err := ask(func() wit_types.Result[wit_types.Option[*orangery_deployer_artifacts.Artifact], orangery_deployer_types.Fault] {
		return a.held.Layer(mediaType)
	})
	if err != nil || held.IsNone() {
		return nil, err
	}
	return artifact{held.Some()}.Read()
}
