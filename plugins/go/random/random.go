// Package random draws what sprig's randInt and shuffle take from math/rand, whose seed a pre-initialised component has
// frozen. Everything here is drawn from crypto/rand, as all of sprig's other random functions do; the host makes that of
// the job.
package random

import (
	"crypto/rand"
	"fmt"
	"math/big"
)

// Int is a number from low up to, without, high.
func Int(low, high int) (int, error) {
	if high <= low {
		return 0, fmt.Errorf("invalid argument to randInt: %d is not less than %d", low, high)
	}
	drawn, err := draw(high - low)
	return low + drawn, err
}

// Shuffle is the characters of a text in another order.
func Shuffle(text string) (string, error) {
	characters := []rune(text)
	for i := len(characters) - 1; i > 0; i-- {
		j, err := draw(i + 1)
		if err != nil {
			return "", err
		}
		characters[i], characters[j] = characters[j], characters[i]
	}
	return string(characters), nil
}

func draw(below int) (int, error) {
	drawn, err := rand.Int(rand.Reader, big.NewInt(int64(below)))
	if err != nil {
		return 0, err
	}
	return int(drawn.Int64()), nil
}
