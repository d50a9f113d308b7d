//go:build wasip1

// In nat.go, func (z nat) expNNMontgomery( is func (z nat) expNNMontgomeryHere(

package big

// Powers asks for x^y mod m, big-endian, as long as m, of an odd m. The components set it (plugins/go/component,
// plugins/helm/component): the host multiplies ten times as fast as WebAssembly does.
var Powers func(x, y, m []byte) ([]byte, error)

// What the host is asked for: numbers of keys, below which asking takes longer than computing, up to what the host takes.
const (
	fewestAsked = 512 / _W
	mostAsked   = 4096 / _W
)

// expNNMontgomery calculates x**y mod m for an odd m, as the method of the library does, which is expNNMontgomeryHere.
func (z nat) expNNMontgomery(stk *stack, x, y, m nat) nat {
	if Powers == nil || len(m) < fewestAsked || len(m) > mostAsked || len(y) > mostAsked {
		return z.expNNMontgomeryHere(stk, x, y, m)
	}
	if x.cmp(m) >= 0 {
		_, x = nat(nil).div(stk, nil, x, m)
	}
	power, err := Powers(octets(x), octets(y), octets(m))
	if err != nil {
		panic("big: the host cannot compute a power: " + err.Error())
	}
	return z.setBytes(power)
}

// octets is a number big-endian, without leading zeros.
func octets(of nat) []byte {
	buffer := make([]byte, len(of)*_S)
	return buffer[of.bytes(buffer):]
}
