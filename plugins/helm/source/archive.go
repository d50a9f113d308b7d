package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
)

// largest is the size of an archive that is still read, packed as unpacked: there is room for that in a call, and none for the
// 100 MiB that Helm takes.
const largest = 32 << 20

var tooLarge = fmt.Errorf("it has more than %d MiB when unpacked", largest>>20)

// drive begins a path on another system.
var drive = regexp.MustCompile(`^[a-zA-Z]:/`)

// unpack is the files of an archive, as archive.LoadArchiveFiles of Helm names them. What Helm takes without a word, such as
// a link, is an error here.
func unpack(packed []byte) ([]*archive.BufferedFile, error) {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, errors.New("it is no archive; pack it with helm package")
	}
	var unpacked bytes.Buffer
	// An archive ends with its size when unpacked, which nobody has to believe.
	unpacked.Grow(int(min(binary.LittleEndian.Uint32(packed[len(packed)-4:]), 1<<20)) + bytes.MinRead)
	switch _, err := unpacked.ReadFrom(io.LimitReader(reader, largest+1)); {
	case err != nil:
		return nil, damaged(err)
	case unpacked.Len() > largest:
		return nil, tooLarge
	}
	var files []*archive.BufferedFile
	left := int64(largest)
	for entries := tar.NewReader(&unpacked); ; {
		entry, err := entries.Next()
		switch {
		case errors.Is(err, io.EOF) && len(files) > 0:
			return files, nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("it has no files")
		case err != nil:
			return nil, damaged(err)
		case entry.FileInfo().IsDir() || entry.Typeflag == tar.TypeXGlobalHeader:
			continue
		}
		name, err := nameInChart(entry)
		if err != nil {
			return nil, err
		}
		if left -= entry.Size; left < 0 {
			// With holes, which an archive need not have.
			return nil, tooLarge
		}
		data := make([]byte, entry.Size)
		if _, err := io.ReadFull(entries, data); err != nil {
			return nil, damaged(err)
		}
		data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
		files = append(files, &archive.BufferedFile{Name: name, ModTime: entry.ModTime, Data: data})
	}
}

func damaged(why error) error { return fmt.Errorf("the archive is damaged: %w", why) }

// nameInChart is the path of a file below the folder that an archive of a chart consists of.
func nameInChart(entry *tar.Header) (string, error) {
	if entry.Typeflag == tar.TypeSymlink || entry.Typeflag == tar.TypeLink {
		return "", fmt.Errorf("%s is a link; pack the chart with helm package, which puts the content there", entry.Name)
	}
	if most := archive.MaxDecompressedFileSize; entry.Size > most {
		return "", fmt.Errorf("%s has %d MiB; a file of a chart has at most %d MiB", entry.Name, entry.Size>>20, most>>20)
	}
	// Packed on Windows, perhaps.
	whole := strings.ReplaceAll(entry.Name, "\\", "/")
	folder, name, _ := strings.Cut(whole, "/")
	for part := range strings.SplitSeq(whole, "/") {
		if part == ".." {
			return "", leaves(entry)
		}
	}
	cleaned := path.Clean(name)
	switch {
	case path.IsAbs(whole) || path.IsAbs(name) || drive.MatchString(cleaned):
		return "", leaves(entry)
	case folder == "Chart.yaml" || cleaned == ".":
		return "", fmt.Errorf("%s is not in a folder; pack the chart with helm package", entry.Name)
	}
	return cleaned, nil
}

func leaves(entry *tar.Header) error { return fmt.Errorf("%s leads out of the chart", entry.Name) }
