package spiff

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/mandelsoft/vfs/pkg/vfs"

	"orangery.dev/plugins/host"
)

var errReadOnly = errors.New("a template cannot write files; put what it needs into the blueprint or into its state")

// blueprint is the files of the blueprint as spiff reads them: each one is asked of the host when it is read, and
// nothing can be written. The blueprint is the root: no path leads out of it.
type blueprint struct {
	host host.Host
}

func (b blueprint) Open(name string) (vfs.File, error) {
	content, err := b.host.ReadFile(host.Path(name))
	if err == nil {
		return &file{entry: entry{name: path.Base(host.Path(name)), size: int64(len(content))}, Reader: bytes.NewReader(content)}, nil
	}
	names, folderErr := b.host.List(host.Path(name))
	if folderErr != nil || len(names) == 0 && host.Path(name) != "" {
		return nil, err
	}
	folder := &file{entry: entry{name: path.Base(host.Path(name)), folder: true}, Reader: bytes.NewReader(nil)}
	for _, inside := range names {
		info, err := b.Stat(path.Join(name, inside))
		if err != nil {
			return nil, err
		}
		folder.inside = append(folder.inside, info)
	}
	return folder, nil
}

func (b blueprint) Stat(name string) (fs.FileInfo, error) {
	if content, err := b.host.ReadFile(host.Path(name)); err == nil {
		return entry{name: path.Base(host.Path(name)), size: int64(len(content))}, nil
	}
	names, err := b.host.List(host.Path(name))
	if err != nil || len(names) == 0 && host.Path(name) != "" {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return entry{name: path.Base(host.Path(name)), folder: true}, nil
}

func (b blueprint) OpenFile(name string, flags int, _ vfs.FileMode) (vfs.File, error) {
	if flags&(os.O_WRONLY|os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND) != 0 {
		return nil, errReadOnly
	}
	return b.Open(name)
}

func (b blueprint) Lstat(name string) (fs.FileInfo, error) { return b.Stat(name) }

func (blueprint) Name() string                    { return "blueprint" }
func (blueprint) VolumeName(string) string        { return "" }
func (blueprint) FSTempDir() string               { return "/" }
func (blueprint) Normalize(name string) string    { return name }
func (blueprint) Getwd() (string, error)          { return "/", nil }
func (blueprint) Readlink(string) (string, error) { return "", fs.ErrInvalid }

func (blueprint) Create(string) (vfs.File, error)            { return nil, errReadOnly }
func (blueprint) Mkdir(string, vfs.FileMode) error           { return errReadOnly }
func (blueprint) MkdirAll(string, vfs.FileMode) error        { return errReadOnly }
func (blueprint) Remove(string) error                        { return errReadOnly }
func (blueprint) RemoveAll(string) error                     { return errReadOnly }
func (blueprint) Rename(string, string) error                { return errReadOnly }
func (blueprint) Symlink(string, string) error               { return errReadOnly }
func (blueprint) Chmod(string, vfs.FileMode) error           { return errReadOnly }
func (blueprint) Chtimes(string, time.Time, time.Time) error { return errReadOnly }

// file is an open file, or a folder with its entries.
type file struct {
	*bytes.Reader
	entry  entry
	inside []fs.FileInfo
}

func (f *file) Name() string                       { return f.entry.name }
func (f *file) Close() error                       { return nil }
func (f *file) Sync() error                        { return nil }
func (f *file) Stat() (fs.FileInfo, error)         { return f.entry, nil }
func (f *file) Write([]byte) (int, error)          { return 0, errReadOnly }
func (f *file) WriteAt([]byte, int64) (int, error) { return 0, errReadOnly }
func (f *file) WriteString(string) (int, error)    { return 0, errReadOnly }
func (f *file) Truncate(int64) error               { return errReadOnly }

func (f *file) Readdir(int) ([]fs.FileInfo, error) { return f.inside, nil }

func (f *file) ReadDir(int) ([]fs.DirEntry, error) {
	entries := []fs.DirEntry{}
	for _, info := range f.inside {
		entries = append(entries, fs.FileInfoToDirEntry(info))
	}
	return entries, nil
}

func (f *file) Readdirnames(int) ([]string, error) {
	names := []string{}
	for _, info := range f.inside {
		names = append(names, info.Name())
	}
	return names, nil
}

// entry is what is known of a file or a folder.
type entry struct {
	name   string
	size   int64
	folder bool
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return e.size }
func (e entry) IsDir() bool        { return e.folder }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) Sys() any           { return nil }

func (e entry) Mode() fs.FileMode {
	if e.folder {
		return fs.ModeDir | 0o755
	}
	return 0o644
}
