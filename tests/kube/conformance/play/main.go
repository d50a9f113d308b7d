// Plays Kubernetes' own conformance specs of API machinery against two servers and compares what has become of them.
//
//	play SPECS ALLOWED REAL EMBEDDED [FOCUS]
//
// SPECS is the binary of the specs, ALLOWED a file of specs that may fail on the embedded server alone, REAL and EMBEDDED are
// kubeconfigs, FOCUS is a pattern of the specs to play. A spec is a process of its own. Fails if a spec that passes on the real
// server does not pass on the embedded one and is not allowed to, or if one that is allowed to fail passes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"sync"
	"time"
)

// How long a spec may take.
const patience = 100 * time.Second

// Specs that need running pods, or minutes: nothing runs a pod here.
var needsPods = regexp.MustCompile("Garbage collector|ResourceQuota|AdmissionWebhook|[Cc]onversion|Aggregator|all pods are removed|compacted away|OrderedNamespaceDeletion|CustomResourceFieldSelectors")

type spec struct {
	LeafNodeType            string
	LeafNodeText            string
	ContainerHierarchyTexts []string
	State                   string
	Failure                 struct{ Message string }
}

func (s spec) name() string { return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ") }

type outcome struct{ state, message string }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// Runs the binary and reads what it reports of the specs that it did not skip.
func run(binary, kubeconfig, focus string, more ...string) ([]spec, error) {
	folder, err := os.MkdirTemp("", "conformance")
	check(err)
	defer os.RemoveAll(folder)
	report := filepath.Join(folder, "report.json")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	arguments := append([]string{
		"--kubeconfig", kubeconfig, "--provider", "skeleton", "--disable-log-dump", "--minStartupPods=0",
		"--node-schedulable-timeout=5s", "--ginkgo.focus", focus, "--ginkgo.json-report", report,
	}, more...)
	// A failure is in the report.
	_ = exec.CommandContext(ctx, binary, arguments...).Run()
	content, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("no end in %s", patience)
	}
	var suites []struct{ SpecReports []spec }
	if err := json.Unmarshal(content, &suites); err != nil || len(suites) == 0 {
		return nil, fmt.Errorf("no report")
	}
	var specs []spec
	for _, s := range suites[0].SpecReports {
		if s.LeafNodeType == "It" && s.State != "skipped" {
			specs = append(specs, s)
		}
	}
	return specs, nil
}

func play(binary, kubeconfig, name string) outcome {
	specs, err := run(binary, kubeconfig, regexp.QuoteMeta(name))
	if err != nil {
		return outcome{"no end", err.Error()}
	}
	if len(specs) != 1 {
		return outcome{"not run", ""}
	}
	return outcome{specs[0].State, strings.ReplaceAll(specs[0].Failure.Message, "\n", " ")}
}

// Name and reason of the specs that may fail.
func readAllowed(path string) map[string]string {
	content, err := os.ReadFile(path)
	check(err)
	allowed := map[string]string{}
	for _, line := range strings.Split(string(content), "\n") {
		if name, reason, found := strings.Cut(line, " | "); found && !strings.HasPrefix(line, "#") {
			allowed[strings.TrimSpace(name)] = strings.TrimSpace(reason)
		}
	}
	return allowed
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: play SPECS ALLOWED REAL EMBEDDED [FOCUS]")
		os.Exit(2)
	}
	binary, allowed, servers := os.Args[1], readAllowed(os.Args[2]), os.Args[3:5]
	focus := regexp.MustCompile(".")
	if len(os.Args) > 5 {
		focus = regexp.MustCompile(os.Args[5])
	}
	all, err := run(binary, servers[0], `\[sig-api-machinery\].*\[Conformance\]`, "--ginkgo.dry-run")
	check(err)
	var names []string
	for _, s := range all {
		if name := s.name(); !needsPods.MatchString(name) && focus.MatchString(name) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	outcomes := make([][2]outcome, len(names))
	slots := make(chan struct{}, 2)
	var group sync.WaitGroup
	for i, name := range names {
		for server, kubeconfig := range servers {
			group.Add(1)
			go func() {
				defer group.Done()
				slots <- struct{}{}
				outcomes[i][server] = play(binary, kubeconfig, name)
				<-slots
			}()
		}
	}
	group.Wait()
	passed, broken := [2]int{}, 0
	for i, name := range names {
		real, embedded := outcomes[i][0], outcomes[i][1]
		for server := range servers {
			if outcomes[i][server].state == "passed" {
				passed[server]++
			}
		}
		reason, known := allowed[name]
		verdict := ""
		switch {
		case real.state == "passed" && embedded.state != "passed" && known:
			verdict = "allowed: " + reason
		case real.state == "passed" && embedded.state != "passed":
			verdict, broken = "BROKEN: "+embedded.message, broken+1
		case known && embedded.state == "passed":
			verdict, broken = "BROKEN: it passes and is allowed to fail; remove it from the list", broken+1
		}
		fmt.Printf("%-8s %-8s %s\n", real.state, embedded.state, name)
		if verdict != "" {
			fmt.Printf("                  %s\n", verdict)
		}
	}
	fmt.Printf("%d specs of %d need no pods: %d pass on the real server, %d on the embedded one, %d are broken\n",
		len(names), len(all), passed[0], passed[1], broken)
	if broken > 0 {
		os.Exit(1)
	}
}
