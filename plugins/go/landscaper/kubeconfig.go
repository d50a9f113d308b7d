package landscaper

import (
	"encoding/json"
	"fmt"
	"time"

	"orangery.dev/plugins/host"
)

// IssuedCredential is a kubeconfig with a credential that ends.
type IssuedCredential struct {
	// Kubeconfig is base64.
	Kubeconfig string
	// Expires is when the credential ends.
	Expires time.Time
}

// WithExpiration is the answer of the functions called …WithExpirationTimestamp.
func (m IssuedCredential) WithExpiration() map[string]any {
	return map[string]any{
		"kubeconfig":                  m.Kubeconfig,
		"expirationTimestamp":         m.Expires.Unix(),
		"expirationTimestampReadable": m.Expires.UTC().Format(time.RFC3339),
	}
}

// form is what a function that mints wants to be given, in the words of its errors.
type form struct {
	kind, function, subject, target string
}

var (
	shootAdmin     = form{host.ShootAdmin, "getShootAdminKubeconfig", "shoot", "target for garden project "}
	serviceAccount = form{host.ServiceAccount, "getServiceAccountToken", "service account", "target"}
)

// ShootAdminKubeconfig reads (shoot, namespace, seconds, garden target).
func ShootAdminKubeconfig(h host.Host, args []any) (IssuedCredential, error) {
	return shootAdmin.issueCredential(h, args)
}

// ServiceAccountKubeconfig reads (service account, namespace, seconds, target).
func ServiceAccountKubeconfig(h host.Host, args []any) (IssuedCredential, error) {
	return serviceAccount.issueCredential(h, args)
}

func (f form) issueCredential(h host.Host, args []any) (IssuedCredential, error) {
	if len(args) != 4 {
		return IssuedCredential{}, fmt.Errorf("templating function %s expects 4 arguments: %s name, %s namespace, expiration seconds, and %s",
			f.function, f.subject, f.subject, f.target)
	}
	name, err := text(f.function, args, 0, f.subject+" name")
	if err != nil {
		return IssuedCredential{}, err
	}
	namespace, err := text(f.function, args, 1, f.subject+" namespace")
	if err != nil {
		return IssuedCredential{}, err
	}
	seconds, err := toInt64(args[2])
	if err != nil {
		return IssuedCredential{}, fmt.Errorf("templating function %s expects an integer as 3rd argument, namely the expiration seconds: %w", f.function, err)
	}
	if err := isObject(f.function, args, 3); err != nil {
		return IssuedCredential{}, err
	}
	var answer struct {
		Kubeconfig          string    `json:"kubeconfig"`
		ExpirationTimestamp time.Time `json:"expirationTimestamp"`
	}
	arguments := map[string]any{"name": name, "namespace": namespace, "expirationSeconds": seconds, "target": args[3]}
	if err := ask(h, f.kind, arguments, &answer); err != nil {
		return IssuedCredential{}, err
	}
	return IssuedCredential{Kubeconfig: answer.Kubeconfig, Expires: answer.ExpirationTimestamp}, nil
}

func ask(h host.Host, kind string, arguments map[string]any, answer any) error {
	encoded, err := json.Marshal(arguments)
	if err != nil {
		return fmt.Errorf("the arguments cannot be written as JSON: %w", err)
	}
	issued, err := h.IssueCredential(kind, encoded)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(issued, answer); err != nil {
		return fmt.Errorf("the host answered a credential of another form than %s has", kind)
	}
	return nil
}

var ordinals = []string{"1st", "2nd", "3rd", "4th"}

func text(function string, args []any, at int, meaning string) (string, error) {
	value, ok := args[at].(string)
	if !ok {
		return "", fmt.Errorf("templating function %s expects a string as %s argument, namely the %s", function, ordinals[at], meaning)
	}
	return value, nil
}

func isObject(function string, args []any, at int) error {
	if _, ok := args[at].(map[string]any); !ok {
		return fmt.Errorf("templating function %s expects a target object as %s argument, not %T", function, ordinals[at], args[at])
	}
	return nil
}

func toInt64(value any) (int64, error) {
	switch n := value.(type) {
	case int64:
		return n, nil
	case int32:
		return int64(n), nil
	case int16:
		return int64(n), nil
	case int8:
		return int64(n), nil
	case int:
		return int64(n), nil
	case float64:
		return int64(n), nil
	case float32:
		return int64(n), nil
	default:
		return 0, fmt.Errorf("unsupported type %T", value)
	}
}
