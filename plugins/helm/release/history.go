package release

import (
	"sort"
	"strconv"
	"time"

	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"

	"orangery.dev/helm/wire"
)

// Revision is one revision of a release, as its Secret's labels tell of it; the content is unpacked when it is asked for.
type Revision struct {
	Number int
	Status common.Status
	// Job is the job of Orangery that made it; empty where Helm has written it.
	Job string
	// Owner is the mark of the deploy item that has written it last (C-36); empty where Helm has.
	Owner string
	// Created is when it was stored first: the label of Helm, which loses it when it updates the Secret, or else what the
	// API server noted. Zero where nothing tells.
	Created time.Time
	Key     wire.Key
	secret  map[string]any
}

// Release unpacks the revision. Errors are of type *wire.Fault.
func (r *Revision) Release() (*helm.Release, error) {
	read, err := unpack(r.secret)
	if err != nil {
		return nil, wire.Wrong("", "%s holds revision %d of the release, and it cannot be read: %s; delete it if "+
			"the revision is not needed", r.Key, r.Number, err)
	}
	return read, nil
}

// History is the revisions of a release, the oldest first.
type History []*Revision

// Read reads the history of a release. Errors are of type *wire.Fault.
func Read(host wire.Host, namespace, name string) (History, error) {
	found, err := host.List(wire.Selection{
		APIVersion: "v1", Kind: "Secret", Namespace: namespace, Labels: "name=" + name + ",owner=helm",
	})
	if err != nil {
		return nil, err
	}
	var history History
	for _, secret := range found {
		labels := labels(secret)
		number, err := strconv.Atoi(labels["version"])
		if err != nil || secret["type"] != kind {
			continue
		}
		revision := &Revision{
			Number: number, Status: common.Status(labels["status"]), Job: texts(secret, "annotations")[JobAnnotation],
			Owner: texts(secret, "annotations")[OwnerAnnotation],
			Key:   SecretKey(namespace, name, number), secret: secret,
		}
		revision.Created = created(secret)
		history = append(history, revision)
	}
	sort.Slice(history, func(i, j int) bool { return history[i].Number < history[j].Number })
	return history, nil
}

func created(secret map[string]any) time.Time {
	if seconds, err := strconv.ParseInt(labels(secret)["createdAt"], 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}
	metadata, _ := secret["metadata"].(map[string]any)
	stamp, _ := metadata["creationTimestamp"].(string)
	noted, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return time.Time{}
	}
	return noted.UTC()
}

// Last is the newest revision; nil where there is none.
func (h History) Last() *Revision {
	if len(h) == 0 {
		return nil
	}
	return h[len(h)-1]
}

// Without is the history but for the revisions of a job, which are that job's own attempts.
func (h History) Without(job string) History {
	var others History
	for _, revision := range h {
		if revision.Job != job {
			others = append(others, revision)
		}
	}
	return others
}

// With is the newest revision in one of these states; nil where there is none.
func (h History) With(states ...common.Status) *Revision {
	for i := len(h) - 1; i >= 0; i-- {
		for _, state := range states {
			if h[i].Status == state {
				return h[i]
			}
		}
	}
	return nil
}

// Stands tells whether there is anything to upgrade. Revisions whose place others took, and which are gone since, are what was
// left of a release that is none any more.
func (h History) Stands() bool {
	for _, revision := range h {
		if revision.Status != common.StatusSuperseded && revision.Status != common.StatusUninstalled {
			return true
		}
	}
	return false
}

// Find is a revision by its number; nil where there is none.
func (h History) Find(number int) *Revision {
	for _, revision := range h {
		if revision.Number == number {
			return revision
		}
	}
	return nil
}

// Excess are the revisions that go so that at most so many stay, one that is about to come included. What is deployed
// stays, as Helm leaves it.
func (h History) Excess(most int) []*Revision {
	deployed := h.With(common.StatusDeployed)
	var excess []*Revision
	left := len(h) + 1
	for _, revision := range h {
		if left > most && revision != deployed {
			excess = append(excess, revision)
			left--
		}
	}
	return excess
}
