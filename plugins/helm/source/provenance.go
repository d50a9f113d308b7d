package source

import (
	"fmt"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/provenance"

	"orangery.dev/helm/config"
	"orangery.dev/helm/wire"
)

// signed is the media type of a provenance file beside a chart.
const signed = "application/vnd.cncf.helm.chart.provenance.v1.prov"

// verify holds a chart against its provenance file, as `helm verify` does, where the configuration asks for it.
func verify(from config.Chart, of *chart.Chart, packed, file []byte) error {
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(from.Keyring))
	if err != nil {
		return wire.Wrong("/chart/provenance/keyring", "chart.provenance.keyring cannot be read: %s; write public keys "+
			"as gpg --armor --export gives them", err)
	}
	name := fmt.Sprintf("%s-%s.tgz", of.Metadata.Name, of.Metadata.Version)
	signatory := &provenance.Signatory{KeyRing: keys}
	if _, err := signatory.Verify(packed, file, name); err != nil {
		return wire.Wrong("/chart/provenance", "%s is not what its provenance file says: %s; sign it again with "+
			"helm package --sign, or correct chart.provenance.keyring", from, err)
	}
	return nil
}

// provenanceOf fetches the provenance file of a chart. Errors are of type *wire.Fault.
func provenanceOf(from config.Chart, of wire.Artifact, host wire.Host) ([]byte, error) {
	if from.URL != "" {
		beside, err := host.URL(from.URL + ".prov")
		if err != nil {
			return nil, err
		}
		return beside.Read()
	}
	file, err := of.Layer(signed)
	if err == nil && file == nil {
		return nil, wire.Wrong("/chart/provenance", "%s has no provenance file; push it with one (helm package --sign)", from)
	}
	return file, err
}
