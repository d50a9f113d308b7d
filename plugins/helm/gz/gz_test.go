package gz

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"hash/crc32"
	"io"
	"strings"
	"testing"
)

func unpacked(t *testing.T, file []byte) string {
	t.Helper()
	reader, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	// One file, and nothing behind it.
	reader.Multistream(false)
	text, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAStoredTextIsReadBackWhateverItsLength(t *testing.T) {
	for _, length := range []int{0, 1, longest - 1, longest, longest + 1, 2 * longest, 3*longest + 7} {
		text := strings.Repeat("abcdefg", length/7+1)[:length]
		if unpacked(t, Stored([]byte(text))) != text {
			t.Errorf("%d bytes are not what was stored", length)
		}
	}
}

func TestPartsAreOneFile(t *testing.T) {
	first, second := "one and one and ", "one and two"
	part := func(text string, end func(*flate.Writer) error) []byte {
		var deflated bytes.Buffer
		writer, err := flate.NewWriter(&deflated, flate.BestSpeed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := end(writer); err != nil {
			t.Fatal(err)
		}
		return deflated.Bytes()
	}
	file := File(crc32.ChecksumIEEE([]byte(first+second)), len(first+second),
		part(first, (*flate.Writer).Flush), part(second, (*flate.Writer).Close))
	if found := unpacked(t, file); found != first+second {
		t.Errorf("it is %q", found)
	}
}
