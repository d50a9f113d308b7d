//go:build wasip1

// In nat.go, func (out *Nat) Exp( is func (out *Nat) expHere(

package bigmod

// Powers asks for x^e mod m, big-endian, as long as m. The components set it (plugins/go/component, plugins/helm/component): the
// host multiplies ten times as fast as WebAssembly does.
var Powers func(x, e, m []byte) ([]byte, error)

// What the host is asked for: moduli of keys, below which asking takes longer than computing, up to what the host takes.
const (
	fewestAsked = 512 / 8
	mostAsked   = 4096 / 8
)

// Exp calculates out = x^e mod m, as the method of the library does, which is expHere.
//
// m must be odd, or Exp will panic.
func (out *Nat) Exp(x *Nat, e []byte, m *Modulus) *Nat {
	if size := m.Size(); Powers == nil || size < fewestAsked || size > mostAsked || len(e) > mostAsked {
		return out.expHere(x, e, m)
	}
	power, err := Powers(x.Bytes(m), e, m.nat.Bytes(m))
	if err == nil {
		_, err = out.SetBytes(power, m)
	}
	if err != nil {
		panic("bigmod: the host cannot compute a power: " + err.Error())
	}
	return out
}
