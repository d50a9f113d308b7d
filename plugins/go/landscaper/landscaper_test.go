package landscaper_test

import (
	"encoding/base64"
	"errors"
	"reflect"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/landscaper"
)

func TestAnOCIReferenceIsRepositoryAndVersion(t *testing.T) {
	digest := "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for reference, expected := range map[string][2]string{
		"host:5000/myrepo/myimage:1.0.0":             {"host:5000/myrepo/myimage", "1.0.0"},
		"host:5000/myrepo/myimage@" + digest:         {"host:5000/myrepo/myimage", digest},
		"example.com/a/b:1.0.0@" + digest:            {"example.com/a/b", digest},
		"https://example.com/a/b:2":                  {"example.com/a/b", "2"},
		"nginx:1.2":                                  {"nginx", "1.2"},
		"docker.io/library/nginx:1.2":                {"nginx", "1.2"},
		"index.docker.io/bitnami/redis:7":            {"bitnami/redis", "7"},
		"bitnami/redis:7":                            {"bitnami/redis", "7"},
		"host:5000/untagged":                         {"host:5000/untagged", "latest"},
		"oci://registry.example/charts/library/x:v1": {"registry.example/charts/library/x", "v1"},
	} {
		if actual, err := landscaper.ParseOCIRef(reference); err != nil || actual != expected {
			t.Errorf("%s is %q (%v), not %q", reference, actual, err, expected)
		}
	}
}

func TestWhatIsNoOCIReferenceIsRefused(t *testing.T) {
	for reference, expected := range map[string]string{
		"nginx":      "invalid reference",
		"UPPER:1":    "invalid reference format: repository name (library/UPPER) must be lowercase",
		"":           "invalid reference format",
		"a:b:c":      "invalid reference format",
		"a@sha256:1": "invalid reference format",
	} {
		if parts, err := landscaper.ParseOCIRef(reference); err == nil || err.Error() != expected {
			t.Errorf("%q is %q, %v, not refused by %q", reference, parts, err, expected)
		}
	}
}

var target = map[string]any{
	"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Target", "metadata": map[string]any{"name": "t"},
	"spec": map[string]any{"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": map[string]any{"kubeconfig": kubeconfig}},
}

const kubeconfig = `
apiVersion: v1
kind: Config
current-context: garden
preferences: {colors: true}
extensions:
- name: outer
  extension: {apiVersion: v1, kind: Foo, a: 1}
contexts:
- name: other
  context: {cluster: other, user: other}
- name: garden
  context:
    cluster: shoot
    user: me
    namespace: team
    extensions:
    - {name: inner, extension: {x: "y"}}
clusters:
- name: other
  cluster: {server: https://other}
- name: shoot
  cluster:
    server: https://api.shoot.example
    certificate-authority-data: Y2EtZGF0YQ==
    insecure-skip-tls-verify: false
    tls-server-name: sni
    proxy-url: http://proxy
    disable-compression: true
users:
- name: me
  user: {token: top-secret}
`

// As client-go 0.36.3 writes it, which Landscaper uses.
const login = `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Y2EtZGF0YQ==
    disable-compression: true
    proxy-url: http://proxy
    server: https://api.shoot.example
    tls-server-name: sni
  name: shoot
contexts:
- context:
    cluster: shoot
    extensions:
    - extension:
        x: "y"
      name: inner
    namespace: team
    user: me
  name: garden
current-context: garden
extensions:
- extension:
    a: 1
    apiVersion: v1
    kind: Foo
  name: outer
kind: Config
preferences:
  colors: true
users:
- name: me
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1beta1
      args:
      - oidc-login
      - get-token
      - --oidc-issuer-url=https://issuer
      - --oidc-client-id=id
      - --oidc-extra-scope=email
      - --oidc-extra-scope=profile
      - --oidc-extra-scope=offline_access
      - --oidc-use-pkce
      - --grant-type=auto
      command: kubectl
      env: null
      provideClusterInfo: false
`

func decoded(t *testing.T, text string) string {
	t.Helper()
	plain, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(plain)
}

func TestAnOIDCKubeconfigHasTheClusterAndNoCredential(t *testing.T) {
	told, err := landscaper.OIDCKubeconfig(cases.Files{}, []any{"https://issuer", "id", target})
	if actual := decoded(t, told); err != nil || actual != login {
		t.Errorf("%v: %s", err, actual)
	}
}

func withSpec(spec map[string]any) map[string]any {
	return map[string]any{"kind": "Target", "spec": spec}
}

func TestAKubeconfigIsTheWholeConfigurationWhereItHasNoKeyOfItsOwn(t *testing.T) {
	asObject := map[string]any{
		"current-context": "a",
		"contexts":        []any{map[string]any{"name": "a", "context": map[string]any{"cluster": "c", "user": "u"}}},
		"clusters":        []any{map[string]any{"name": "c", "cluster": map[string]any{"server": "https://c"}}},
	}
	first, err := landscaper.OIDCKubeconfig(cases.Files{}, []any{"i", "c", withSpec(map[string]any{"config": asObject})})
	if err != nil {
		t.Fatal(err)
	}
	nested := map[string]any{"kubeconfig": asObject}
	second, err := landscaper.OIDCKubeconfig(cases.Files{}, []any{"i", "c", withSpec(map[string]any{"config": nested})})
	if err != nil || first != second {
		t.Errorf("%v: %s and %s", err, decoded(t, first), decoded(t, second))
	}
}

func TestATargetWithASecretIsAskedOfTheHost(t *testing.T) {
	secret := withSpec(map[string]any{"secretRef": map[string]any{"name": "s"}})
	question := `issue-credential "cluster" {"target":{"kind":"Target","spec":{"secretRef":{"name":"s"}}}}`
	answers := &cases.Answers{Told: map[string]any{question: map[string]any{"kubeconfig": []byte(kubeconfig)}}}
	told, err := landscaper.OIDCKubeconfig(answers, []any{"https://issuer", "id", secret})
	if actual := decoded(t, told); err != nil || actual != login {
		t.Errorf("%v: %s", err, actual)
	}
}

func TestAWrongTargetOfAnOIDCKubeconfigIsRefused(t *testing.T) {
	for expected, args := range map[string][]any{
		"templating function getOidcKubeconfig expects 3 arguments: issuer url, client id, and target":  {"a", "b"},
		"templating function getOidcKubeconfig expects a string as 1st argument, namely the issuer url": {1, "b", target},
		"templating function getOidcKubeconfig expects a string as 2nd argument, namely the client id":  {"a", nil, target},
		"templating function getOidcKubeconfig expects a target object as 3rd argument, not string":     {"a", "b", "t"},
		"oidc kubeconfig builder: target config contains no kubeconfig":                                 {"a", "b", withSpec(map[string]any{"config": map[string]any{"oidcConfig": map[string]any{}}})},
		"oidc kubeconfig builder: failed to load config: the kubeconfig of the target has a wrong form": {"a", "b", withSpec(map[string]any{"config": map[string]any{"kubeconfig": "top-secret-token"}})},
		"oidc kubeconfig builder: current context not found":                                            {"a", "b", withSpec(map[string]any{"config": map[string]any{"kubeconfig": "current-context: a"}})},
		"oidc kubeconfig builder: current cluster not found":                                            {"a", "b", withSpec(map[string]any{"config": map[string]any{"kubeconfig": "{current-context: a, contexts: [{name: a, context: {cluster: b}}]}"}})},
		"oidc kubeconfig builder: could not resolve target: it has another form than a Target":          {"a", "b", withSpec(map[string]any{"secretRef": "text"})},
		"oidc kubeconfig builder: no credentials of kind \"cluster\" can be had here":                   {"a", "b", withSpec(map[string]any{"secretRef": map[string]any{}})},
	} {
		if _, err := landscaper.OIDCKubeconfig(cases.Files{}, args); err == nil || err.Error() != expected {
			t.Errorf("%v is not refused by %q: %v", args, expected, err)
		}
	}
}

func TestKubeconfigsAreMintedByTheHost(t *testing.T) {
	arguments := `{"expirationSeconds":600,"name":"n","namespace":"ns","target":{"kind":"Target"}}`
	issued := map[string]any{"kubeconfig": "a3ViZQ==", "expirationTimestamp": "2026-11-21T12:00:00+01:00"}
	answers := &cases.Answers{Told: map[string]any{
		`issue-credential "shootAdmin" ` + arguments:     issued,
		`issue-credential "serviceAccount" ` + arguments: issued,
	}}
	expected := map[string]any{
		"kubeconfig": "a3ViZQ==", "expirationTimestamp": int64(1795258800), "expirationTimestampReadable": "2026-11-21T11:00:00Z",
	}
	for _, seconds := range []any{600, int64(600), 600.7, int32(600)} {
		args := []any{"n", "ns", seconds, map[string]any{"kind": "Target"}}
		shoot, err := landscaper.ShootAdminKubeconfig(answers, args)
		if err != nil || !reflect.DeepEqual(shoot.WithExpiration(), expected) {
			t.Errorf("%v: %v", err, shoot.WithExpiration())
		}
		account, err := landscaper.ServiceAccountKubeconfig(answers, args)
		if err != nil || account != shoot {
			t.Errorf("%v: %v", err, account)
		}
	}
}

func TestWrongArgumentsOfKubeconfigsAreRefusedInLandscapersWords(t *testing.T) {
	for expected, args := range map[string][]any{
		"templating function getServiceAccountToken expects 4 arguments: service account name, service account namespace, expiration seconds, and target": {},
		"templating function getServiceAccountToken expects a string as 1st argument, namely the service account name":                                    {1, "", 1, target},
		"templating function getServiceAccountToken expects a string as 2nd argument, namely the service account namespace":                               {"", 1, 1, target},
		"templating function getServiceAccountToken expects an integer as 3rd argument, namely the expiration seconds: unsupported type string":           {"", "", "1", target},
		"templating function getServiceAccountToken expects a target object as 4th argument, not <nil>":                                                   {"", "", 1, nil},
	} {
		if _, err := landscaper.ServiceAccountKubeconfig(cases.Files{}, args); err == nil || err.Error() != expected {
			t.Errorf("%v is not refused by %q: %v", args, expected, err)
		}
	}
	_, err := landscaper.ShootAdminKubeconfig(cases.Files{}, nil)
	if expected := "templating function getShootAdminKubeconfig expects 4 arguments: shoot name, shoot namespace, expiration seconds, and target for garden project "; err == nil || err.Error() != expected {
		t.Errorf("%v", err)
	}
}

func TestTheEffectiveRepositoryContextIsTheLast(t *testing.T) {
	first, last := map[string]any{"baseUrl": "first"}, map[string]any{"baseUrl": "last"}
	contexts := []any{first, last}
	for _, descriptor := range []map[string]any{
		{"meta": map[string]any{"schemaVersion": "v2"}, "component": map[string]any{"repositoryContexts": contexts}},
		{"apiVersion": "ocm.software/v3alpha1", "repositoryContexts": contexts},
	} {
		if actual, err := landscaper.RepositoryContext(descriptor); err != nil || !reflect.DeepEqual(actual, last) {
			t.Errorf("%v: %v of %v", err, actual, descriptor)
		}
	}
	for _, descriptor := range []map[string]any{
		{"meta": map[string]any{"schemaVersion": "v3"}}, {"apiVersion": "v1", "repositoryContexts": contexts}, {},
	} {
		if actual, err := landscaper.RepositoryContext(descriptor); err != nil || actual != nil {
			t.Errorf("%v: %v of %v", err, actual, descriptor)
		}
	}
	for expected, descriptor := range map[string]any{
		"Unable to get effective component descriptor as no ComponentDescriptor is defined.": nil,
		"invalid component descriptor": "text",
	} {
		if _, err := landscaper.RepositoryContext(descriptor); err == nil || err.Error() != expected {
			t.Errorf("%v is not refused by %q: %v", descriptor, expected, err)
		}
	}
}

func TestResourcesAndComponentsAreSelectedByIdentity(t *testing.T) {
	resources := []any{map[string]any{"name": "x", "version": "1"}, map[string]any{"name": "x", "version": "2"}}
	answers := &cases.Answers{Told: map[string]any{
		`resources null [{"Name":"name","Value":"x"},{"Name":"os","Value":"linux"}]`: resources,
		`resources {"meta":{}} [{"Name":"name","Value":"x"}]`:                        resources[1:],
		`resources null [{"Name":"name","Value":"none"}]`:                            []any{},
		`component null [{"Name":"name","Value":"c"}]`:                               map[string]any{"component": "c"},
		`component null [{"Name":"name","Value":"gone"}]`:                            errors.New("no reference gone"),
		`key "cd://resources/x"`:                                                     "a2V5",
		`content "cd://resources/x"`:                                                 "text",
	}}
	all, err := landscaper.Resources(answers, []any{"name", "x", "os", "linux"})
	if err != nil || len(all) != 2 {
		t.Errorf("%v: %v", err, all)
	}
	if one, err := landscaper.Resource(answers, []any{"name", "x", "os", "linux"}); err != nil || one["version"] != "1" {
		t.Errorf("%v: %v", err, one)
	}
	other := map[string]any{"meta": map[string]any{}}
	if one, err := landscaper.Resource(answers, []any{other, "name", "x"}); err != nil || one["version"] != "2" {
		t.Errorf("%v: %v", err, one)
	}
	if component, err := landscaper.Component(answers, []any{"name", "c"}); err != nil || component["component"] != "c" {
		t.Errorf("%v: %v", err, component)
	}
	if key, err := landscaper.ResourceKey(answers, []any{"cd://resources/x"}); err != nil || key != "a2V5" {
		t.Errorf("%v: %v", err, key)
	}
	if content, err := landscaper.ResourceContent(answers, []any{"cd://resources/x"}); err != nil || content != "text" {
		t.Errorf("%v: %v", err, content)
	}
	for expected, ask := range map[string]func() (any, error){
		"at least 2 arguments are expected":                                         func() (any, error) { return landscaper.Resource(answers, []any{"name"}) },
		"odd number of key value pairs":                                             func() (any, error) { return landscaper.Component(answers, []any{"name", "x", "os"}) },
		"expect argument 0 to be a string":                                          func() (any, error) { return landscaper.Resources(answers, []any{1, "x"}) },
		"expect argument 1 to be a string":                                          func() (any, error) { return landscaper.Resources(answers, []any{"name", nil}) },
		"no resource of the component matches the identity":                         func() (any, error) { return landscaper.Resource(answers, []any{"name", "none"}) },
		"no reference gone":                                                         func() (any, error) { return landscaper.Component(answers, []any{"name", "gone"}) },
		"unable to provide key for empty relative artifact reference":               func() (any, error) { return landscaper.ResourceKey(answers, nil) },
		"this function requires 1 argument, but 2 were provided":                    func() (any, error) { return landscaper.ResourceKey(answers, []any{"a", "b"}) },
		"this function only requires a single argument, but multiple were provided": func() (any, error) { return landscaper.ResourceContent(answers, []any{"a", "b"}) },
		"unable to assert the first argument as string":                             func() (any, error) { return landscaper.ResourceContent(answers, []any{1}) },
	} {
		if _, err := ask(); err == nil || err.Error() != expected {
			t.Errorf("not refused by %q: %v", expected, err)
		}
	}
}
