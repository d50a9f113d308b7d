package spiff_test

import (
	"errors"
	"strings"
	"testing"

	"orangery.dev/plugins/cases"
	"orangery.dev/plugins/host"
	"orangery.dev/plugins/spiff"
)

func component() *cases.Answers {
	issued := map[string]any{"kubeconfig": "a3ViZQ==", "expirationTimestamp": "2026-11-21T12:00:00Z"}
	arguments := `{"expirationSeconds":600,"name":"n","namespace":"ns","target":{"kind":"Target"}}`
	return &cases.Answers{Told: map[string]any{
		`resources null [{"Name":"name","Value":"x"}]`:                              []any{map[string]any{"name": "x", "size": 12345678, "evaluated": "(( 1 + 1 ))"}},
		`resources {"component":{"name":"c"}} [{"Name":"a","Value":"b"}]`:           []any{map[string]any{"name": "of c"}},
		`resources {"meta":{"schemaVersion":"v2"}} [{"Name":"name","Value":"own"}]`: []any{map[string]any{"name": "own"}},
		`component null [{"Name":"name","Value":"c"}]`:                              map[string]any{"component": map[string]any{"name": "c"}},
		`key "cd://resources/x"`:                                                    "a2V5",
		`key "{\"resource\":{\"name\":\"x\"}}"`:                                     "c3RydWN0",
		`content "cd://resources/x"`:                                                "a: {b: 1}",
		`content "cd://resources/text"`:                                             "plain",
		`content "gone"`:                                                            errors.New("the component has no resource gone"),
		`issue-credential "serviceAccount" ` + arguments:                            issued,
		`issue-credential "shootAdmin" ` + arguments:                                issued,
	}}
}

var inputs = map[string]any{"cd": map[string]any{"meta": map[string]any{"schemaVersion": "v2"}}, "imports": map[string]any{"t": map[string]any{"kind": "Target"}, "seconds": 600}}

func TestFunctionsAnswerAsLandscapers(t *testing.T) {
	for expression, expected := range map[string]string{
		`getResource("name", "x").name`:                                                                 "x",
		`getResource("name", "x").size + 1`:                                                             "12345679",
		`getResource("name", "x").evaluated`:                                                            "2",
		`getResource(getComponent("name", "c"), "a", "b").name`:                                         "of c",
		`getResource(cd, "name", "own").name`:                                                           "own",
		`getComponent("name", "c").component.name`:                                                      "c",
		`getResourceKey("cd://resources/x")`:                                                            "a2V5",
		`getResourceKey({"resource"={"name"="x"}})`:                                                     "c3RydWN0",
		`getResourceContent("cd://resources/x").a.b`:                                                    "1",
		`getResourceContent("cd://resources/text")`:                                                     "plain",
		`parseOCIRef("host:5000/a/b:1").[0]`:                                                            "host:5000/a/b",
		`ociRefRepo("nginx:1")`:                                                                         "nginx",
		`ociRefVersion("nginx:1.2.3")`:                                                                  "1.2.3",
		`getServiceAccountKubeconfig("n", "ns", 600, imports.t)`:                                        "a3ViZQ==",
		`getServiceAccountKubeconfig("n", "ns", imports.seconds, imports.t)`:                            "a3ViZQ==",
		`getShootAdminKubeconfig("n", "ns", 600, imports.t)`:                                            "a3ViZQ==",
		`getShootAdminKubeconfigWithExpirationTimestamp("n", "ns", 600, imports.t).expirationTimestamp`: "1795262400",
		`getServiceAccountKubeconfigWithExpirationTimestamp("n", "ns", 600, imports.t).expirationTimestampReadable`: "2026-11-21T12:00:00Z",
		`getResourceContent("gone")`: "failure: a: (( getResourceContent(\"gone\") )): the component has no resource gone",
		`getResource("name")`:        "failure: a: (( getResource(\"name\") )): at least 2 arguments are expected",
		`getResourceKey()`:           "failure: a: (( getResourceKey() )): unable to provide key for empty relative artifact reference",
		`ociRefRepo(1)`:              "failure: a: (( ociRefRepo(1) )): Invalid argument: string expected",
		`ociRefVersion()`:            "failure: a: (( ociRefVersion() )): Too many arguments for parseOCIReference. Expected 1 reference.",
		`getOidcKubeconfig("a")`:     "failure: a: (( getOidcKubeconfig(\"a\") )): templating function getOidcKubeconfig expects 3 arguments: issuer url, client id, and target",
		`error(getShootAdminKubeconfig("n", "ns", 600, imports.t))`: `failure: a: (( error(getShootAdminKubeconfig("n", "ns", 600, imports.t)) )): [...] (string)`,
	} {
		actual := rendered(t, component(), "a: (( "+expression+" ))\n", inputs)
		actual = strings.TrimSuffix(strings.TrimPrefix(actual, `{"a":`), "}")
		if strings.Trim(actual, `"`) != expected {
			t.Errorf("%s\nis  %s\nnot %s", expression, actual, expected)
		}
	}
}

func TestMappingsHaveTheFunctionsOfSpiffOnly(t *testing.T) {
	for _, execution := range []host.Execution{host.ImportMapping, host.ExportMapping} {
		_, failure := spiff.Render(component(), host.Request{Execution: execution, Template: `{"a": "(( getResourceKey(\"cd://resources/x\") ))"}`, Inputs: []byte(`{}`)})
		if failure == nil || failure.Message != `a: (( getResourceKey("cd://resources/x") )): unknown function 'getResourceKey'` {
			t.Errorf("%v", failure)
		}
	}
}

// Without the line that takes the network away, the message is about a connection.
func TestNothingIsFetched(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/x", "https://127.0.0.1:1/x"} {
		actual := rendered(t, cases.Files{}, `a: (( read("`+url+`", "text") ))`, inputs)
		if !strings.Contains(actual, "a template cannot fetch URLs") {
			t.Errorf("%s", actual)
		}
	}
}

func TestTheMachinesEnvironmentAndFilesAreNotThere(t *testing.T) {
	t.Setenv("HOME", "/root")
	for expression, expected := range map[string]string{
		`env("HOME") || "none"`:                   `{"a":"none"}`,
		`env("HOME", "PATH")`:                     `{"a":{}}`,
		`read("/etc/hostname", "text") || "none"`: `{"a":"none"}`,
		`read("~/x", "text") || "none"`:           `{"a":"none"}`,
		`lookup_file("/etc/hostname", [])`:        `{"a":[]}`,
		`list_files("/etc") || "none"`:            `{"a":"none"}`,
	} {
		if actual := rendered(t, cases.Files{}, "a: (( "+expression+" ))", inputs); actual != expected {
			t.Errorf("%s is %s", expression, actual)
		}
	}
}

// Only what a template uses is read.
func TestFilesAreReadWhenTheyAreUsed(t *testing.T) {
	counting := &counter{Files: cases.Files{"a.yaml": "x: 1", "b.yaml": "y: 1"}}
	if actual := rendered(t, counting, `a: (( read("a.yaml").x ))`, inputs); actual != `{"a":1}` || counting.asked != "a.yaml " {
		t.Errorf("%s after reading %s", actual, counting.asked)
	}
}

type counter struct {
	cases.Files
	asked string
}

func (c *counter) ReadFile(path string) ([]byte, error) {
	c.asked += path + " "
	return c.Files.ReadFile(path)
}

func TestAHostReadsTextsOnly(t *testing.T) {
	files := cases.Files{"\uFFFD": "replaced"}
	for expression, expected := range map[string]string{
		`read(base64_decode("/w=="), "text")`: `{"a":"replaced"}`,
		`base64_decode("/w==")`:               "failure: a is no UTF-8 text; write binary content by base64",
		`[1, {"b"=base64_decode("/w==")}]`:    "failure: a[1].b is no UTF-8 text; write binary content by base64",
		`error(base64_decode("/w=="))`:        `failure: a: (( error(base64_decode("/w==")) )): ` + "\uFFFD",
	} {
		if actual := rendered(t, files, "a: (( "+expression+" ))", inputs); !strings.HasPrefix(actual, expected) {
			t.Errorf("%s is %s", expression, actual)
		}
	}
}

func TestAPanicOfSpiffIsAFailure(t *testing.T) {
	actual := rendered(t, cases.Files{}, `a: (( read() ))`, inputs)
	if !strings.HasPrefix(actual, "failure: spiff cannot evaluate the template: ") {
		t.Errorf("%s", actual)
	}
}

func TestAnIntegerThatIsKeptStaysOne(t *testing.T) {
	request := host.Request{
		Execution: host.Deploy,
		Template:  "state:\n  <<<: (( &state ))\n  count: (( integer(\"9007199254740993\") ))\nout: (( \"n\" state.count ))\n",
		Inputs:    []byte(`{}`),
	}
	for range 2 {
		answer, failure := spiff.Render(cases.Files{}, request)
		if failure != nil || string(answer.State) != `{"state":{"count":9007199254740993}}` || !strings.Contains(string(answer.Output.Document), `"out":"n9007199254740993"`) {
			t.Fatalf("%v: %s and %s", failure, answer.State, answer.Output.Document)
		}
		request.State = answer.State
	}
}
