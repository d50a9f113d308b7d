//! What has become of a pod: whether it has ended, what keeps it from beginning, and what its containers say.

use data_encoding::BASE64;
use orangery_sdk::Problem;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The containers in the order in which they are looked at.
const CONTAINERS: [&str; 3] = ["init", "wait", "main"];

/// What a container waits for in vain, whatever comes.
const HOPELESS: [&str; 3] = ["ErrImageNeverPull", "InvalidImageName", "ErrInvalidImageName"];

/// What a container waits for that may come: the kubelet tries again.
const PULLING: [&str; 3] = ["ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"];

/// The condition of a pod that somebody else than its item ends.
const DISRUPTED: &str = "DisruptionTarget";

/// The reason of that condition where a node is gone or is being cleared: of a node that is gone nobody tells the end of a pod.
const TAKEN_OFF: &str = "DeletionByTaintManager";

/// The longest reason of a condition, in bytes, as the host takes it.
const LONGEST_REASON: usize = 128;

/// The longest that is told of what a container says, in letters.
const LONGEST_WORDS: usize = 2048;

/// The containers whose end is the end of a run. What others have put beside them may run on.
const OF_RUN: [&str; 2] = ["main", "wait"];

/// A condition on a pod, in CEL: its run has ended, it is taken off its node, or something keeps a container of it from beginning.
/// That a pod as a whole has ended the kubelet says a second after its containers have (CON-30).
pub(crate) fn settled() -> String {
    let reasons: Vec<String> = HOPELESS.iter().chain(&PULLING).map(|reason| format!("'{reason}'")).collect();
    let kept = |list: &str| {
        format!(
            "has(object.status.{list}) && object.status.{list}.exists(c, has(c.state) && has(c.state.waiting) && \
             has(c.state.waiting.reason) && c.state.waiting.reason in [{}])",
            reasons.join(", ")
        )
    };
    let taken_off = format!(
        "has(object.metadata.deletionTimestamp) && has(object.status.conditions) && object.status.conditions.exists(c, \
         c.type == '{DISRUPTED}' && c.status == 'True' && has(c.reason) && c.reason == '{TAKEN_OFF}')"
    );
    let of_run = OF_RUN.map(|container| format!("'{container}'")).join(", ");
    let ended = format!(
        "has(object.status.containerStatuses) && [{of_run}].all(n, object.status.containerStatuses.exists(c, c.name == n && \
         has(c.state) && has(c.state.terminated)))"
    );
    format!(
        "has(object.status) && (has(object.status.phase) && object.status.phase in ['Succeeded', 'Failed'] || {ended} || {} || {} || \
         {taken_off})",
        kept("initContainerStatuses"),
        kept("containerStatuses")
    )
}

/// The same without what keeps a container: only the end counts.
pub(crate) fn is_over(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") || codes_of_run(pod).is_some() || is_taken_off(pod)
}

/// The exit codes of the containers of the run; `None` as long as one of them has not ended.
fn codes_of_run(pod: &Value) -> Option<Vec<i64>> {
    let code = |container: &&str| status(pod, container)?.pointer("/state/terminated/exitCode")?.as_i64();
    OF_RUN.iter().map(code).collect()
}

/// Whether the run has ended well, whatever else there is in the pod.
fn has_succeeded(pod: &Value) -> bool {
    match text(pod, "/status/phase") {
        "Succeeded" => true,
        "Failed" => false,
        _ => codes_of_run(pod).is_some_and(|codes| codes.iter().all(|code| *code == 0)),
    }
}

/// Whether Kubernetes deletes a pod since its node is gone or is being cleared. What runs there is told to end, and stores nothing.
fn is_taken_off(pod: &Value) -> bool {
    let is_so = |condition: &Value| text(condition, "/reason") == TAKEN_OFF;
    pod.pointer("/metadata/deletionTimestamp").is_some() && disruption(pod).is_some_and(is_so)
}

/// What says who ends a pod that its item does not end.
fn disruption(pod: &Value) -> Option<&Value> {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions?.iter().find(|condition| text(condition, "/type") == DISRUPTED && text(condition, "/status") == "True")
}

/// What keeps a container from beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Obstacle {
    container: &'static str,
    reason: String,
    message: String,
    /// Whether it may still come about.
    pub(crate) may_pass: bool,
}

impl Obstacle {
    /// What the item fails with.
    pub(crate) fn problem(&self) -> Problem {
        let Self { container, reason, message, .. } = self;
        let message = if message.is_empty() { String::new() } else { format!(": {}", cut(message)) };
        failure(format!(
            "the container {container} cannot begin, {reason}{message}; correct its image, or the credentials for it"
        ))
    }
}

/// What keeps the first container of a pod that anything keeps.
pub(crate) fn kept(pod: &Value) -> Option<Obstacle> {
    CONTAINERS.into_iter().find_map(|container| {
        let status = status(pod, container)?;
        let reason = text(status, "/state/waiting/reason");
        let may_pass = PULLING.contains(&reason);
        (may_pass || HOPELESS.contains(&reason)).then(|| Obstacle {
            container,
            reason: reason.to_owned(),
            message: text(status, "/state/waiting/message").to_owned(),
            may_pass,
        })
    })
}

/// Why a pod that has ended has not ended well; `None` where it has.
pub(crate) fn failed(pod: &Value) -> Option<Problem> {
    if has_succeeded(pod) {
        return None;
    }
    let ended_badly = |container: &&str| {
        let ended = status(pod, container)?.pointer("/state/terminated")?;
        let code = ended.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)?;
        let reason = Some(text(ended, "/reason")).filter(|reason| !["", "Error"].contains(reason));
        let reason = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let message = text(ended, "/message").trim();
        let message = if message.is_empty() { String::new() } else { format!(": {}", cut(message)) };
        Some(format!("the container {container} ended with exit code {code}{reason}{message}"))
    };
    let of_pod = || {
        let told: Vec<&str> = told_of(pod).into_iter().filter(|told| !told.is_empty()).collect();
        if told.is_empty() {
            "its pod failed without a reason".to_owned()
        } else {
            format!("its pod failed, {}", cut(&told.join(": ")))
        }
    };
    if is_taken_off(pod) && text(pod, "/status/phase") != "Failed" && codes_of_run(pod).is_none() {
        let [reason, message] = told_of(pod);
        return Some(failure(format!(
            "its pod was taken off node {}, {reason}: {}; the next job waits until that pod is gone",
            text(pod, "/spec/nodeName"),
            cut(message)
        )));
    }
    // `wait` fails with the program: that comes first.
    let containers = ["init", "main", "wait"];
    let why = containers.iter().find_map(ended_badly);
    let whole = match (why, told_of(pod)) {
        (Some(why), ["", _]) => why,
        (Some(why), [reason, _]) => format!("{why}; its pod was ended: {reason}"),
        (None, _) => of_pod(),
    };
    Some(failure(whole))
}

/// Reason and message of a pod as a whole; where it has none, those of whoever has ended it.
fn told_of(pod: &Value) -> [&str; 2] {
    let told = ["/status/reason", "/status/message"].map(|place| text(pod, place));
    match disruption(pod) {
        Some(condition) if told == ["", ""] => ["/reason", "/message"].map(|place| text(condition, place)),
        Some(_) | None => told,
    }
}

/// A failure that no code of the field says.
pub(crate) fn failure(message: String) -> Problem {
    Problem { code: String::new(), message, at: None }
}

/// Words of a container within their limit, without what moves the cursor of whoever reads them, or turns the text around.
fn cut(words: &str) -> String {
    let words = words.replace("\r\n", "\n");
    let count = words.chars().count();
    let shown = |c: char| if moves_text(c) { char::REPLACEMENT_CHARACTER } else { c };
    // The end of a log says more than its begin.
    let end: String = words.chars().skip(count.saturating_sub(LONGEST_WORDS)).map(shown).collect();
    if count <= LONGEST_WORDS { end } else { format!("… {end}") }
}

fn moves_text(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

fn status<'p>(pod: &'p Value, container: &str) -> Option<&'p Value> {
    let lists = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let all = lists.iter().filter_map(|list| pod.pointer(list)?.as_array()).flatten();
    all.into_iter().find(|status| text(status, "/name") == container)
}

fn text<'v>(of: &'v Value, pointer: &str) -> &'v str {
    of.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `podStatus` of the provider status (contract B). A pod that was never there has a name alone.
pub(crate) fn pod_status(name: &str, pod: Option<&Value>, succeeded: Option<&str>) -> Value {
    let mut told = Map::from_iter([("podName".to_owned(), json!(name))]);
    if let Some(pod) = pod {
        told.insert("lastRun".to_owned(), json!(text(pod, "/metadata/creationTimestamp")));
        let fields = [("main", "containerStatus"), ("init", "initContainerStatus"), ("wait", "waitContainerStatus")];
        for (container, field) in fields {
            told.extend(status(pod, container).map(|status| (field.to_owned(), container_status(status))));
        }
    }
    told.extend(succeeded.map(|job| ("lastSuccessfulJobID".to_owned(), json!(job))));
    Value::Object(told)
}

fn container_status(status: &Value) -> Value {
    let mut told = Map::from_iter([
        ("image".to_owned(), json!(text(status, "/image"))),
        ("imageID".to_owned(), json!(text(status, "/imageID"))),
        ("state".to_owned(), json!({})),
    ]);
    let mut put = |name: &str, text: &str| {
        if !text.is_empty() {
            told.insert(name.to_owned(), json!(cut(text)));
        }
    };
    for state in ["waiting", "terminated"] {
        if let Some(state) = status.pointer(&format!("/state/{state}")) {
            put("reason", text(state, "/reason"));
            put("message", text(state, "/message"));
        }
    }
    if status.pointer("/state/running").is_some() {
        put("reason", "Running");
    }
    if let Some(code) = status.pointer("/state/terminated/exitCode") {
        told.insert("exitCode".to_owned(), code.clone());
    }
    Value::Object(told)
}

/// The conditions of the item that tell of its pod (contract B): one for each container beside the program.
pub(crate) fn conditions(pod: &Value) -> Vec<Value> {
    let types = [("init", "InitContainer"), ("wait", "WaitContainer")];
    types.iter().filter_map(|(container, type_)| condition(type_, status(pod, container)?.get("state")?)).collect()
}

fn condition(type_: &str, state: &Value) -> Option<Value> {
    let told = |status: &str, reason: &str, message: &str| {
        let reason = reason.get(..reason.floor_char_boundary(LONGEST_REASON)).unwrap_or_default();
        json!({"type": type_, "status": status, "reason": reason, "message": cut(message)})
    };
    let reason_of = |state: &Value, otherwise: &str| {
        Some(text(state, "/reason")).filter(|reason| !reason.is_empty()).unwrap_or(otherwise).to_owned()
    };
    if let Some(running) = state.get("running") {
        let message = format!("Pod started running at {}", text(running, "/startedAt"));
        return Some(told("Progressing", "Pod running", &message));
    }
    if let Some(waiting) = state.get("waiting") {
        return Some(told("Progressing", &reason_of(waiting, "Waiting"), text(waiting, "/message")));
    }
    let ended = state.get("terminated")?;
    if ended.get("exitCode").and_then(Value::as_i64) == Some(0) {
        return Some(told("True", "ContainerSucceeded", "Container successfully finished"));
    }
    Some(told("False", &reason_of(ended, "Error"), text(ended, "/message")))
}

/// What `wait` has written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct RunResult {
    /// How many Secrets have the state of this run; none where it left the folder empty.
    pub(crate) state_pieces: usize,
    /// The document that the program exported.
    #[serde(skip)]
    pub(crate) exports: Option<Value>,
}

/// What a Secret says that `wait` has filled; `None` where it has not.
pub(crate) fn result(secret: &Value) -> Option<RunResult> {
    let decoded = |key: &str| {
        let text = secret.pointer(&format!("/data/{key}"))?.as_str()?;
        serde_json::from_slice::<Value>(&BASE64.decode(text.as_bytes()).ok()?).ok()
    };
    let result: RunResult = serde_json::from_value(decoded("result")?).ok()?;
    Some(RunResult { exports: decoded("config"), ..result })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(phase: &str, main: Value, wait: Value) -> Value {
        json!({"status": {"phase": phase,
            "initContainerStatuses": [{"name": "init", "state": {"terminated": {"exitCode": 0}}}],
            "containerStatuses": [{"name": "main", "state": main}, {"name": "wait", "state": wait}]}})
    }

    fn ended(code: i64, message: &str) -> Value {
        json!({"terminated": {"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }, "message": message}})
    }

    #[test]
    fn con_07_a_program_that_fails_is_named_with_its_exit_code_and_its_last_words() {
        let failed = |pod: &Value| failed(pod).map(|problem| problem.message);
        assert_eq!(failed(&pod("Succeeded", ended(0, ""), ended(0, ""))), None);
        assert_eq!(
            failed(&pod("Failed", ended(3, "no disk\n"), ended(1, "main ended with exit code 3"))).unwrap(),
            "the container main ended with exit code 3: no disk"
        );
        let killed = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
        assert_eq!(
            failed(&pod("Failed", killed, ended(0, ""))).unwrap(),
            "the container main ended with exit code 137 (OOMKilled)"
        );
        assert_eq!(
            failed(
                &json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"}})
            )
            .unwrap(),
            "its pod failed, Evicted: the node was low on memory"
        );
    }

    #[test]
    fn con_30_a_run_has_ended_when_its_containers_have_whatever_else_is_in_its_pod() {
        let told = |pod: &Value| is_over(pod).then(|| failed(pod).map(|problem| problem.message));
        let (running, done) = (json!({"running": {}}), ended(0, ""));
        assert_eq!(told(&pod("Running", done.clone(), running.clone())), None);
        assert_eq!(told(&pod("Running", running.clone(), done.clone())), None);
        let mut beside = pod("Running", done.clone(), done);
        beside["status"]["containerStatuses"].as_array_mut().unwrap().push(json!({"name": "proxy", "state": running}));
        assert_eq!(told(&beside), Some(None));
        let failed = told(&pod("Running", ended(3, "no disk"), ended(1, "")));
        assert_eq!(failed, Some(Some("the container main ended with exit code 3: no disk".to_owned())));
        // A pod that is taken off its node has told the end of its containers.
        let condition = json!({"type": DISRUPTED, "status": "True", "reason": TAKEN_OFF, "message": "m"});
        let mut taken_off = pod("Running", ended(143, ""), ended(1, ""));
        taken_off["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
        taken_off["status"]["conditions"] = json!([condition]);
        let expected = "the container main ended with exit code 143; its pod was ended: DeletionByTaintManager";
        assert_eq!(told(&taken_off).flatten().as_deref(), Some(expected));
    }

    #[test]
    fn con_23_a_pod_that_is_taken_off_its_node_has_ended_and_other_ends_are_told_with_their_cause() {
        let pod = |phase: &str, reason: &str, is_deleted: bool| {
            let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": reason, "message": "m"});
            let mut pod = json!({"metadata": {}, "spec": {"nodeName": "n"}, "status": {"phase": phase, "conditions": [condition]}});
            if is_deleted {
                pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            }
            pod
        };
        let told = |pod: &Value| is_over(pod).then(|| failed(pod).map(|problem| problem.message)).flatten();
        let taken_off =
            "its pod was taken off node n, DeletionByTaintManager: m; the next job waits until that pod is gone";
        assert_eq!(told(&pod("Running", TAKEN_OFF, true)).as_deref(), Some(taken_off));
        // One that runs to its end meanwhile is waited for.
        let waited_for = [pod("Running", TAKEN_OFF, false), pod("Running", "EvictionByEvictionAPI", true)];
        assert_eq!(waited_for.each_ref().map(is_over), [false, false]);
        let collected = "its pod failed, DeletionByPodGC: m";
        assert_eq!(told(&pod("Failed", "DeletionByPodGC", true)).as_deref(), Some(collected));
        let mut killed = pod("Failed", TAKEN_OFF, true);
        killed["status"]["containerStatuses"] = json!([{"name": "main", "state": {"terminated": {"exitCode": 143}}}]);
        let expected = "the container main ended with exit code 143; its pod was ended: DeletionByTaintManager";
        assert_eq!(told(&killed).as_deref(), Some(expected));
        let mut gone = pod("Failed", "", true);
        gone["status"]["conditions"][0]["status"] = json!("False");
        assert_eq!(told(&gone).as_deref(), Some("its pod failed without a reason"));
    }

    #[test]
    fn con_08_what_keeps_a_container_from_beginning_is_told_and_whether_it_may_pass() {
        let waits = |reason: &str| json!({"waiting": {"reason": reason, "message": "m"}});
        let creating = waits("ContainerCreating");
        assert_eq!(kept(&pod("Pending", creating.clone(), creating.clone())), None);
        for (reason, may_pass) in
            [("ImagePullBackOff", true), ("ErrImageNeverPull", false), ("InvalidImageName", false)]
        {
            let kept = kept(&pod("Pending", waits(reason), creating.clone())).unwrap();
            assert_eq!((kept.container, kept.may_pass), ("main", may_pass), "{reason}");
            assert_eq!(
                kept.problem().message,
                format!("the container main cannot begin, {reason}: m; correct its image, or the credentials for it")
            );
        }
    }

    #[test]
    fn con_32_words_of_a_container_do_not_move_the_cursor() {
        let words = cut("a\u{1b}[31m\0b\r\nc\td\u{7}\u{202e}\u{85}e");
        assert_eq!(words, "a\u{fffd}[31m\u{fffd}b\nc\td\u{fffd}\u{fffd}\u{fffd}e");
    }

    #[test]
    fn limits_words_of_a_container_the_end_of_them_is_told() {
        let cut_at = |length: usize| cut(&format!("{}z", "a".repeat(length - 1)));
        assert_eq!(cut_at(LONGEST_WORDS).chars().count(), LONGEST_WORDS);
        let longer = cut_at(LONGEST_WORDS + 1);
        assert!(longer.starts_with("… a") && longer.ends_with('z') && longer.chars().count() == LONGEST_WORDS + 2);
    }

    #[test]
    fn limits_reason_of_a_container_in_a_condition_is_cut() {
        let reason = |length: usize| {
            let state = json!({"waiting": {"reason": "a".repeat(length)}});
            condition("T", &state).unwrap()["reason"].as_str().unwrap().len()
        };
        assert_eq!([reason(LONGEST_REASON), reason(LONGEST_REASON + 1)], [LONGEST_REASON; 2]);
    }

    #[test]
    fn con_09_init_and_wait_are_conditions_of_the_item() {
        let of = |init: Value, wait: Value| {
            let status = |name: &str, state: Value| json!({"name": name, "state": state});
            let pod = json!({"status": {"initContainerStatuses": [status("init", init)],
                "containerStatuses": [status("main", json!({"running": {}})), status("wait", wait)]}});
            let told = conditions(&pod).into_iter().map(|told| {
                let text = |field: &str| told[field].as_str().unwrap().to_owned();
                ["type", "status", "reason", "message"].map(text).join("|")
            });
            told.collect::<Vec<_>>()
        };
        let creating = json!({"waiting": {"reason": "PodInitializing"}});
        assert_eq!(
            of(json!({"running": {"startedAt": "t"}}), creating),
            [
                "InitContainer|Progressing|Pod running|Pod started running at t",
                "WaitContainer|Progressing|PodInitializing|"
            ]
        );
        let failed = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "m"}});
        assert_eq!(
            of(json!({"terminated": {"exitCode": 0}}), failed),
            ["InitContainer|True|ContainerSucceeded|Container successfully finished", "WaitContainer|False|Error|m"]
        );
        assert_eq!(of(json!({}), json!({"waiting": {}})), ["WaitContainer|Progressing|Waiting|"]);
        assert_eq!(conditions(&json!({"metadata": {}})), Vec::<Value>::new());
    }

    #[test]
    fn con_09_the_status_of_containers_has_the_form_of_the_original() {
        let running = json!({"running": {"startedAt": "t"}});
        let status = pod_status("p", Some(&pod("Failed", ended(3, "x"), running)), Some("j"));
        let expected = json!({
            "podName": "p", "lastRun": "", "lastSuccessfulJobID": "j",
            "containerStatus": {"image": "", "imageID": "", "state": {}, "reason": "Error", "message": "x", "exitCode": 3},
            "initContainerStatus": {"image": "", "imageID": "", "state": {}, "exitCode": 0},
            "waitContainerStatus": {"image": "", "imageID": "", "state": {}, "reason": "Running"},
        });
        assert_eq!(status, expected);
    }
}
