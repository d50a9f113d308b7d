package rehearsal

import "testing"

func TestTheRehearsalRuns(t *testing.T) {
	if err := Run(); err != nil {
		t.Fatal(err)
	}
}
