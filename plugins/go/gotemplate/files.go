package gotemplate

import (
	"io/fs"
	"path"
	"time"

	"orangery.dev/plugins/host"
)

func readDir(h host.Host, name string) ([]fs.FileInfo, error) {
	folder := host.Path(name)
	names, err := h.List(folder)
	if err != nil {
		return nil, err
	}
	entries := []fs.FileInfo{}
	for _, name := range names {
		entries = append(entries, &entry{host: h, path: path.Join(folder, name)})
	}
	return entries, nil
}

// entry is a file or a folder of a blueprint. What it is, is asked when a template wants to know.
type entry struct {
	host    host.Host
	path    string
	asked   bool
	content []byte
	folder  bool
}

func (e *entry) ask() *entry {
	if !e.asked {
		content, err := e.host.ReadFile(e.path)
		e.asked, e.content, e.folder = true, content, err != nil
	}
	return e
}

// Name is the last part of the path.
func (e *entry) Name() string { return path.Base(e.path) }

// Size is the number of bytes of a file, and nothing for a folder.
func (e *entry) Size() int64 { return int64(len(e.ask().content)) }

// IsDir says whether it is a folder.
func (e *entry) IsDir() bool { return e.ask().folder }

// Mode is the usual one: a blueprint has no rights of its own.
func (e *entry) Mode() fs.FileMode {
	if e.IsDir() {
		return fs.ModeDir | 0o755
	}
	return 0o644
}

// ModTime is not known.
func (e *entry) ModTime() time.Time { return time.Time{} }

// Sys is nothing.
func (e *entry) Sys() any { return nil }
