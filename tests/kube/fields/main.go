// Prints the fields of the built-in kinds of Kubernetes: see the head of fields.txt.
package main

import (
	"fmt"
	"reflect"
	"sort"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	apps "k8s.io/api/apps/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	autoscaling2 "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	flowcontrol "k8s.io/api/flowcontrol/v1"
	networking "k8s.io/api/networking/v1"
	node "k8s.io/api/node/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	storage "k8s.io/api/storage/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var kinds = []any{
	admission.MutatingAdmissionPolicy{}, admission.MutatingAdmissionPolicyBinding{}, admission.MutatingWebhookConfiguration{},
	admission.ValidatingAdmissionPolicy{}, admission.ValidatingAdmissionPolicyBinding{}, admission.ValidatingWebhookConfiguration{},
	apiextensions.CustomResourceDefinition{}, apiregistration.APIService{},
	apps.ControllerRevision{}, apps.DaemonSet{}, apps.Deployment{}, apps.ReplicaSet{}, apps.StatefulSet{},
	authentication.SelfSubjectReview{}, authentication.TokenRequest{}, authentication.TokenReview{},
	authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{}, authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{},
	autoscaling.HorizontalPodAutoscaler{}, autoscaling.Scale{}, autoscaling2.HorizontalPodAutoscaler{},
	batch.CronJob{}, batch.Job{}, certificates.CertificateSigningRequest{}, coordination.Lease{},
	core.Binding{}, core.ConfigMap{}, core.Endpoints{}, core.Event{}, core.LimitRange{}, core.Namespace{}, core.Node{}, core.PersistentVolume{},
	core.PersistentVolumeClaim{}, core.Pod{}, core.PodTemplate{}, core.ReplicationController{}, core.ResourceQuota{}, core.Secret{}, core.Service{}, core.ServiceAccount{},
	discovery.EndpointSlice{}, events.Event{}, flowcontrol.FlowSchema{}, flowcontrol.PriorityLevelConfiguration{},
	meta.DeleteOptions{}, meta.Status{}, networking.IPAddress{}, networking.Ingress{}, networking.IngressClass{}, networking.NetworkPolicy{}, networking.ServiceCIDR{},
	node.RuntimeClass{}, policy.Eviction{}, policy.PodDisruptionBudget{},
	rbac.ClusterRole{}, rbac.ClusterRoleBinding{}, rbac.Role{}, rbac.RoleBinding{}, scheduling.PriorityClass{},
	storage.CSIDriver{}, storage.CSINode{}, storage.CSIStorageCapacity{}, storage.StorageClass{}, storage.VolumeAttachment{}, storage.VolumeAttributesClass{},
}

// The types with a form of their own in JSON.
var plain = map[string]string{
	"meta.Time": "time", "meta.MicroTime": "microtime", "meta.Duration": "duration", "meta.FieldsV1": "raw",
	"resource.Quantity": "quantity", "intstr.IntOrString": "intstr", "runtime.RawExtension": "raw", "apiextensions.JSON": "raw",
}

var lines = map[string]string{}

func name(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	last := parts[len(parts)-1]
	if last == "v1" || last == "v2" {
		group := parts[len(parts)-2]
		if group == "autoscaling" && last == "v2" {
			group = "autoscaling2"
		}
		last = group
	}
	return last + "." + t.Name()
}

func of(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Float64:
		return "float"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint32:
		return "int"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if strings.HasSuffix(t.Name(), "ExtraValue") {
			lines[name(t)] = name(t) + " 1:~items:[string"
			return name(t)
		}
		return "[" + of(t.Elem())
	case reflect.Map:
		return "{" + of(t.Elem())
	case reflect.Struct:
		if form, ok := plain[name(t)]; ok {
			return form
		}
		message(t)
		return name(t)
	}
	panic(t.String())
}

func message(t reflect.Type) {
	if _, ok := lines[name(t)]; ok {
		return
	}
	lines[name(t)] = ""
	line := name(t)
	for i := range t.NumField() {
		field := t.Field(i)
		number := ""
		if tag := strings.Split(field.Tag.Get("protobuf"), ","); len(tag) > 1 {
			number = tag[1]
		}
		if field.Name == "TypeMeta" || number == "" || number == "-" {
			continue
		}
		words := strings.Split(field.Tag.Get("json"), ",")
		has := func(word string) bool {
			for _, w := range words[1:] {
				if w == word {
					return true
				}
			}
			return false
		}
		inline := has("inline") || (words[0] == "" && field.Anonymous)
		mark := ""
		structure := field.Type.Kind() == reflect.Struct
		switch {
		case inline || field.Type.Kind() == reflect.Pointer && (has("omitempty") || has("omitzero")):
		case structure && !has("omitzero"):
			mark = "="
		case has("omitempty") || has("omitzero"):
			mark = "~"
		default:
			mark = "="
		}
		title := words[0]
		if inline {
			title = ""
		}
		if title == "" && !inline { // JSONSchemaPropsOr…: the fields have no names in JSON.
			title = strings.ToLower(field.Name[:1]) + field.Name[1:]
			mark = ""
		}
		line += fmt.Sprintf(" %s:%s%s:%s", number, mark, title, of(field.Type))
	}
	lines[name(t)] = line
}

func main() {
	for _, kind := range kinds {
		message(reflect.TypeOf(kind))
	}
	var all []string
	for _, line := range lines {
		all = append(all, line)
	}
	sort.Strings(all)
	fmt.Println(strings.Join(all, "\n"))
}
