package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"

	"orangery.dev/helm/config"
	"orangery.dev/helm/wire"
)

// fixedHost is a host that has one chart, its provenance file under the same name, and nothing else.
type fixedHost struct {
	wire.Host
	packed, signed []byte
}

func (fixedHost) Trace(string) {}

func (s fixedHost) OCI(string) (wire.Artifact, error) { return held(s), nil }

func (s fixedHost) URL(url string) (wire.Artifact, error) {
	if strings.HasSuffix(url, ".prov") {
		return held{packed: s.signed}, nil
	}
	return held(s), nil
}

type held fixedHost

func (h held) Digest() string        { return "" }
func (h held) Size() uint64          { return uint64(len(h.packed)) }
func (h held) Read() ([]byte, error) { return h.packed, nil }
func (h held) Layer(mediaType string) ([]byte, error) {
	if mediaType != signed {
		return nil, nil
	}
	return h.signed, nil
}

func packed(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var whole bytes.Buffer
	compressed := gzip.NewWriter(&whole)
	archive := tar.NewWriter(compressed)
	for name, text := range files {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}
		if target, link := strings.CutPrefix(text, "-> "); link {
			header.Typeflag, header.Linkname, header.Size, text = tar.TypeSymlink, target, 0, ""
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return whole.Bytes()
}

const described = "apiVersion: v2\nname: app\nversion: 1.2.3\n"

// signer makes a key, and gives its public half in armor.
func signer(t *testing.T) (*openpgp.Entity, string) {
	t.Helper()
	key, err := openpgp.NewEntity("somebody", "", "somebody@example.org", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public bytes.Buffer
	armored, err := armor.Encode(&public, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Serialize(armored); err != nil {
		t.Fatal(err)
	}
	if err := armored.Close(); err != nil {
		t.Fatal(err)
	}
	return key, public.String()
}

func refusal(t *testing.T, from config.Chart, host wire.Host) string {
	t.Helper()
	_, err := Chart(from, host)
	if err == nil {
		t.Fatal("the chart is taken")
	}
	return err.Error()
}

func TestAChartIsHeldAgainstItsProvenanceWhereThatIsAskedFor(t *testing.T) {
	of := packed(t, map[string]string{"app/Chart.yaml": described})
	key, public := signer(t)
	_, stranger := signer(t)
	file, err := (&provenance.Signatory{Entity: key}).ClearSign(of, "app-1.2.3.tgz", []byte(described))
	if err != nil {
		t.Fatal(err)
	}
	host := fixedHost{packed: of, signed: []byte(file)}
	registry := config.Chart{Ref: "registry.example/app:1.2.3", Keyring: public}
	server := config.Chart{URL: "https://charts.example/app-1.2.3.tgz", Keyring: public}
	for _, from := range []config.Chart{registry, server} {
		if found, err := Chart(from, host); err != nil || found.Name() != "app" {
			t.Errorf("%s: %v", from, err)
		}
	}
	other := packed(t, map[string]string{"app/Chart.yaml": described, "app/more": "x"})
	begin := "the chart registry.example/app:1.2.3 is not what its provenance file says: "
	if told := refusal(t, registry, fixedHost{packed: other, signed: []byte(file)}); !strings.HasPrefix(told, begin+"sha256 sum does not match") {
		t.Error(told)
	}
	foreign := config.Chart{Ref: registry.Ref, Keyring: stranger}
	if told := refusal(t, foreign, host); !strings.HasPrefix(told, begin+"openpgp: signature made by unknown entity") {
		t.Error(told)
	}
	if told := refusal(t, registry, fixedHost{packed: of}); told != "the chart registry.example/app:1.2.3 has no provenance file; push it with one (helm package --sign)" {
		t.Error(told)
	}
	if told := refusal(t, config.Chart{Ref: registry.Ref, Keyring: "x"}, host); !strings.HasPrefix(told, "chart.provenance.keyring cannot be read: ") {
		t.Error(told)
	}
}

func TestWhatIsNoChartIsToldAndNotRead(t *testing.T) {
	for expected, files := range map[string]map[string]string{
		"it has more than 32 MiB when unpacked":   {"app/Chart.yaml": described, "app/long": strings.Repeat("x", 33<<20)},
		"app/link is a link;":                     {"app/Chart.yaml": described, "app/link": "-> /etc/passwd"},
		"app/../../x leads out of the chart":      {"app/Chart.yaml": described, "app/../../x": ""},
		"Chart.yaml file is missing":              {"app/values.yaml": ""},
		"only application charts are installable": {"app/Chart.yaml": described + "type: library\n"},
		"its dependencies other are not in charts/": {
			"app/Chart.yaml": described + "dependencies: [{name: other, version: 1.0.0}]\n",
		},
	} {
		told := refusal(t, config.Chart{Archive: packed(t, files)}, fixedHost{})
		if !strings.HasPrefix(told, "the chart in chart.archive.raw cannot be ") || !strings.Contains(told, expected) {
			t.Errorf("expected %q, it is %q", expected, told)
		}
	}
	if told := refusal(t, config.Chart{Archive: []byte("no archive")}, fixedHost{}); !strings.Contains(told, "it is no archive; pack it with helm package") {
		t.Error(told)
	}
}
