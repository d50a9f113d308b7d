package landscaper

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"

	"orangery.dev/plugins/host"
)

// The forms of a kubeconfig, as client-go writes them: yaml sorts the keys.
type (
	kubeconfig struct {
		Kind           string         `json:"kind,omitempty"`
		APIVersion     string         `json:"apiVersion,omitempty"`
		Preferences    preferences    `json:"preferences,omitzero"`
		Clusters       []namedCluster `json:"clusters"`
		Users          []namedUser    `json:"users"`
		Contexts       []namedContext `json:"contexts"`
		CurrentContext string         `json:"current-context"`
		Extensions     []extension    `json:"extensions,omitempty"`
	}
	preferences struct {
		Colors     bool        `json:"colors,omitempty"`
		Extensions []extension `json:"extensions,omitempty"`
	}
	namedCluster struct {
		Name    string  `json:"name"`
		Cluster cluster `json:"cluster"`
	}
	cluster struct {
		Server                   string      `json:"server"`
		TLSServerName            string      `json:"tls-server-name,omitempty"`
		InsecureSkipTLSVerify    bool        `json:"insecure-skip-tls-verify,omitempty"`
		CertificateAuthority     string      `json:"certificate-authority,omitempty"`
		CertificateAuthorityData []byte      `json:"certificate-authority-data,omitempty"`
		ProxyURL                 string      `json:"proxy-url,omitempty"`
		DisableCompression       bool        `json:"disable-compression,omitempty"`
		Extensions               []extension `json:"extensions,omitempty"`
	}
	namedContext struct {
		Name    string         `json:"name"`
		Context clusterContext `json:"context"`
	}
	clusterContext struct {
		Cluster    string      `json:"cluster"`
		User       string      `json:"user"`
		Namespace  string      `json:"namespace,omitempty"`
		Extensions []extension `json:"extensions,omitempty"`
	}
	namedUser struct {
		Name string `json:"name"`
		User user   `json:"user"`
	}
	user struct {
		Exec *login `json:"exec,omitempty"`
	}
	login struct {
		Command            string   `json:"command"`
		Args               []string `json:"args"`
		Env                []string `json:"env"`
		APIVersion         string   `json:"apiVersion,omitempty"`
		ProvideClusterInfo bool     `json:"provideClusterInfo"`
	}
	extension struct {
		Name      string `json:"name"`
		Extension any    `json:"extension"`
	}
)

// OIDCKubeconfig reads (issuer URL, client id, target): a kubeconfig of the target's cluster that logs in by
// OpenID Connect, base64. No credential of the target is in it.
func OIDCKubeconfig(h host.Host, args []any) (string, error) {
	const function = "getOidcKubeconfig"
	if len(args) != 3 {
		return "", errors.New("templating function getOidcKubeconfig expects 3 arguments: issuer url, client id, and target")
	}
	issuer, err := text(function, args, 0, "issuer url")
	if err != nil {
		return "", err
	}
	client, err := text(function, args, 1, "client id")
	if err != nil {
		return "", err
	}
	if err := isObject(function, args, 2); err != nil {
		return "", err
	}
	source, err := kubeconfigOf(h, args[2])
	if err != nil {
		return "", fmt.Errorf("oidc kubeconfig builder: %w", err)
	}
	config, err := loginBy(source, issuer, client)
	if err != nil {
		return "", fmt.Errorf("oidc kubeconfig builder: %w", err)
	}
	written, err := yaml.Marshal(config)
	if err != nil {
		return "", fmt.Errorf("oidc kubeconfig builder: failed to write config: %w", err)
	}
	return base64.StdEncoding.EncodeToString(written), nil
}

// kubeconfigOf is the kubeconfig of a target (docs/wire.md §1.4): of its configuration, or, where that lies in a
// Secret, what the host tells of the cluster.
func kubeconfigOf(h host.Host, target any) ([]byte, error) {
	encoded, err := json.Marshal(target)
	if err != nil {
		return nil, fmt.Errorf("could not resolve target: %w", err)
	}
	var form struct {
		Spec struct {
			Config    json.RawMessage `json:"config"`
			SecretRef map[string]any  `json:"secretRef"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(encoded, &form); err != nil {
		return nil, errors.New("could not resolve target: it has another form than a Target")
	}
	if form.Spec.SecretRef != nil {
		var answer struct {
			Kubeconfig []byte `json:"kubeconfig"`
		}
		err := ask(h, host.Cluster, map[string]any{"target": target}, &answer)
		return answer.Kubeconfig, err
	}
	return contentKubeconfig(form.Spec.Config)
}

func contentKubeconfig(content json.RawMessage) ([]byte, error) {
	var form struct {
		Kubeconfig json.RawMessage `json:"kubeconfig"`
		OIDC       json.RawMessage `json:"oidcConfig"`
		Self       json.RawMessage `json:"selfConfig"`
	}
	found := content
	if json.Unmarshal(content, &form) == nil && (form.Kubeconfig != nil || form.OIDC != nil || form.Self != nil) {
		found = form.Kubeconfig
	}
	if len(found) == 0 || string(found) == "null" {
		return nil, errors.New("target config contains no kubeconfig")
	}
	var text string
	if json.Unmarshal(found, &text) == nil {
		return []byte(text), nil
	}
	return found, nil
}

func loginBy(source []byte, issuer, client string) (*kubeconfig, error) {
	config := &kubeconfig{}
	if err := yaml.Unmarshal(source, config); err != nil {
		// The parser quotes what it read, and that is a secret.
		return nil, errors.New("failed to load config: the kubeconfig of the target has a wrong form")
	}
	current, ok := find(config.Contexts, func(c namedContext) bool { return c.Name == config.CurrentContext })
	if !ok {
		return nil, errors.New("current context not found")
	}
	used, ok := find(config.Clusters, func(c namedCluster) bool { return c.Name == current.Context.Cluster })
	if !ok {
		return nil, errors.New("current cluster not found")
	}
	config.Kind, config.APIVersion = "Config", "v1"
	config.Contexts = []namedContext{current}
	config.Clusters = []namedCluster{used}
	config.Users = []namedUser{{Name: current.Context.User, User: user{Exec: &login{
		APIVersion: "client.authentication.k8s.io/v1beta1",
		Command:    "kubectl",
		Args: []string{
			"oidc-login",
			"get-token",
			"--oidc-issuer-url=" + issuer,
			"--oidc-client-id=" + client,
			"--oidc-extra-scope=email",
			"--oidc-extra-scope=profile",
			"--oidc-extra-scope=offline_access",
			"--oidc-use-pkce",
			"--grant-type=auto",
		},
	}}}}
	return config, nil
}

func find[T any](all []T, wanted func(T) bool) (T, bool) {
	for _, one := range all {
		if wanted(one) {
			return one, true
		}
	}
	var none T
	return none, false
}
