package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"orangery.dev/helm/config"
)

func TestFilesAreNamedAsHelmNamesThem(t *testing.T) {
	packed := packed(t, map[string]string{
		"app/Chart.yaml":             described,
		"app/":                       "",
		"app/templates//a.yaml":      "a: b\n",
		"app/templates/./b.yaml":     "\xef\xbb\xbfc: d\n",
		`app\templates\c.yaml`:       "",
		"app/charts/sub/Chart.yaml":  "e: f\n",
		"other/charts/sub/.ignored":  "",
		"app/charts/packed-1.tgz":    "no archive",
		"app/files/a name.with...ok": "",
	})
	expected, err := archive.LoadArchiveFiles(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files, err := unpack(packed)
	if err != nil || len(files) != 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i, file := range files {
		theirs := expected[i]
		if file.Name != theirs.Name || !file.ModTime.Equal(theirs.ModTime) || string(file.Data) != string(theirs.Data) {
			t.Errorf("the file is %+v and not %+v", file, theirs)
		}
	}
}

func TestFilesThatNoChartHasAreRefused(t *testing.T) {
	for expected, name := range map[string]string{
		"/app/x leads out of the chart":                                   "/app/x",
		"app//etc/x leads out of the chart":                               "app//etc/x",
		`app\..\x leads out of the chart`:                                 `app\..\x`,
		"app/C:/x leads out of the chart":                                 "app/C:/x",
		"Chart.yaml is not in a folder; pack the chart with helm package": "Chart.yaml",
		"README.md is not in a folder; pack the chart with helm package":  "README.md",
		"app/long has 6 MiB; a file of a chart has at most 5 MiB":         "app/long",
		"it has no files": "app/",
	} {
		text := map[string]string{"app/long": strings.Repeat("x", 6<<20)}[name]
		told := refusal(t, config.Chart{Archive: packed(t, map[string]string{name: text})}, fixedHost{})
		if told != "the chart in chart.archive.raw cannot be used: "+expected {
			t.Errorf("expected %q, it is %q", expected, told)
		}
	}
}

// A file of an archive can have holes, which are no bytes there and would be some of the chart.
func TestHolesCountAsMuchAsBytes(t *testing.T) {
	whole := bytes.NewBuffer(nil)
	for range largest/archive.MaxDecompressedFileSize + 1 {
		whole.Write(hollow(archive.MaxDecompressedFileSize))
	}
	whole.Write(make([]byte, 1024))
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := whole.WriteTo(writer); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := unpack(packed.Bytes()); err != tooLarge {
		t.Errorf("it is read: %v", err)
	}
}

// hollow is the header of a file that is one hole, in the old format of GNU.
func hollow(size int64) []byte {
	header := make([]byte, 512)
	octal := func(at int, value int64) { copy(header[at:], fmt.Sprintf("%011o", value)) }
	copy(header, "app/hollow")
	copy(header[100:], "0000644")
	octal(124, 0)
	octal(136, 0)
	copy(header[148:], "        ")
	header[156] = tar.TypeGNUSparse
	copy(header[257:], "ustar  ")
	octal(386, size)
	octal(398, 0)
	octal(483, size)
	sum := 0
	for _, value := range header {
		sum += int(value)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	return header
}
