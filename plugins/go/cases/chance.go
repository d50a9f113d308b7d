package cases

import (
	"math/rand"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// Draw renders a template that shows what it drew.
type Draw func(t *testing.T, template string) string

// CheckDraws fails for templates that draw the same twice when math/rand is seeded alike, as a snapshot freezes it.
func CheckDraws(t *testing.T, chancy map[string]string, draw Draw) {
	t.Helper()
	for name, template := range chancy {
		seeded := func() string {
			rand.Seed(7) //nolint:staticcheck // As a snapshot does.
			return draw(t, template)
		}
		if first, second := seeded(), seeded(); first == second || strings.HasPrefix(first, "failure") {
			t.Errorf("%s draws the same twice: %s", name, first)
		}
	}
}

// CheckRepeats fails for templates that show something else with the same clock and the same crypto/rand, and for chancy
// ones that show the same with another.
func CheckRepeats(t *testing.T, chancy, timed map[string]string, draw Draw) {
	t.Helper()
	all := func(seed uint64) map[string]string {
		drawn := map[string]string{}
		for _, templates := range []map[string]string{chancy, timed} {
			for name, template := range templates {
				synctest.Test(t, func(t *testing.T) {
					cryptotest.SetGlobalRandom(t, seed)
					drawn[name] = draw(t, template)
				})
			}
		}
		return drawn
	}
	first, second, other := all(1), all(1), all(2)
	for name, text := range first {
		if strings.HasPrefix(text, "failure") {
			t.Errorf("%s: %s", name, text)
		}
		if text != second[name] {
			t.Errorf("two renderings of one job draw %s and %s by %s", text, second[name], name)
		}
		if _, random := chancy[name]; random && text == other[name] {
			t.Errorf("another job draws the same by %s", name)
		}
	}
}
