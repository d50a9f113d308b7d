//! `orangery container wait`: waits in its pod for the end of the program, and stores what that leaves in Secrets that were made for
//! it. It may look at its pod and fill these Secrets, and nothing else.

use std::{env, fs, time::Duration};

use data_encoding::BASE64;
use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::{
    Api, Client, Config,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt as _, watcher::watch_object},
};
use orangery_cli::{
    Exit, Terminal,
    command::container::{
        ContainerCommand, ContainerError, ProgramPaths, init, state::pack, tell_termination, variable,
    },
};
use orangery_core::{
    port::{Clock, Rng},
    yaml,
};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    machine::{OsChance, SystemClock},
    stop::StopSignal,
};

/// The most bytes of a document that is exported: it has to have room in a Secret.
const MOST_EXPORT_BYTES: u64 = 1_000_000;

/// How long a write is tried that the API server refuses or does not answer: its rights may be a moment younger than the pod.
const STORED_WITHIN: Duration = Duration::from_secs(120);

/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The labels and annotations of the deployer begin so.
const GROUP: &str = "container.deployer.landscaper.gardener.cloud";

/// Why nothing is stored of a pod that goes.
const TOLD_TO_END: &str =
    "the pod was told to end before its program had ended, so nothing of that is stored; the last state stays";

/// Carries `orangery container` out: the sentence of a failure is in the log and in the status of the container.
pub(crate) async fn execute(command: ContainerCommand, terminal: &mut Terminal) -> Exit {
    let environment = |name: &str| env::var(name).ok();
    let ended = match command {
        ContainerCommand::Init => init::execute(&environment),
        ContainerCommand::Wait => wait(&environment).await,
    };
    match ended {
        Ok(()) => Exit::Ok,
        Err(error) => {
            let message = error.to_string();
            tell_termination(&message);
            // Nobody reads what cannot be written.
            let _unread = terminal.line(&message);
            Exit::Failed
        }
    }
}

async fn wait(environment: &dyn Fn(&str) -> Option<String>) -> Result<(), ContainerError> {
    let paths = ProgramPaths::read(environment)?;
    let [pod, namespace] = ["POD_NAME", "POD_NAMESPACE"].map(|name| variable(environment, name));
    let (pod, namespace) = (pod?, namespace?);
    let result = variable(environment, "ORANGERY_RESULT_SECRET")?;
    let states: Vec<String> = variable(environment, "ORANGERY_STATE_SECRETS")?.split(',').map(str::to_owned).collect();
    let unreachable =
        |error: String| ContainerError(format!("the API server cannot be reached from this pod: {error}"));
    let config = Config::incluster().map_err(|error| unreachable(error.to_string()))?;
    let client = Client::try_from(config).map_err(|error| unreachable(error.to_string()))?;
    let mut stop =
        StopSignal::new().map_err(|error| ContainerError(format!("signals cannot be waited for: {error}")))?;
    let pods = Api::namespaced(client.clone(), &namespace);
    // Of a pod that is deleted the API server is told no end of a container before the last one.
    let code = tokio::select! {
        code = exit_code(&pods, &pod) => code?,
        () = stop.asked() => return Err(ContainerError(TOLD_TO_END.to_owned())),
    };
    let secrets = Secrets(Api::namespaced(client, &namespace));
    let state = stored(&secrets, &paths, &states).await;
    // What became of the program comes first: the rest may follow from it.
    if code != 0 {
        if let Ok(pieces) = state {
            secrets.fill(&result, &json!({"data": result_data(pieces, None)})).await?;
        }
        return Err(ContainerError(format!("the program ended with exit code {code}")));
    }
    let (pieces, exports) = (state?, exports(&paths)?);
    secrets.fill(&result, &json!({"data": result_data(pieces, exports)})).await
}

/// The exit code of the program, once it has ended.
async fn exit_code(pods: &Api<Pod>, name: &str) -> Result<i32, ContainerError> {
    let seen = watch_object(pods.clone(), name).default_backoff();
    pin_mut!(seen);
    let mut was_there = false;
    while let Some(pod) = seen.next().await {
        match pod {
            Ok(Some(pod)) => {
                was_there = true;
                if let Some(code) = exit_code_of(&pod) {
                    return Ok(code);
                }
            }
            Ok(None) if was_there => break,
            // The watch tries again, with pauses.
            Ok(None) | Err(_) => {}
        }
    }
    Err(ContainerError(format!("the pod {name} is gone")))
}

fn exit_code_of(pod: &Pod) -> Option<i32> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let main = statuses.iter().find(|status| status.name == "main")?;
    Some(main.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// Secrets of the namespace of the pod, of which a few may be filled.
struct Secrets(Api<Secret>);

impl Secrets {
    /// Fills one, tried again for some time.
    async fn fill(&self, name: &str, patch: &Value) -> Result<(), ContainerError> {
        let (end, mut pause) = (Instant::now() + STORED_WITHIN, FIRST_PAUSE);
        loop {
            let error = match self.0.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
                Ok(_) => return Ok(()),
                Err(error) => error,
            };
            let is_final = matches!(&error, kube::Error::Api(status) if [404, 413, 422].contains(&status.code));
            if is_final || Instant::now() + pause >= end {
                // No value of the Secret is in an error of the API server's about its name and rights.
                let why = match error {
                    kube::Error::Api(status) => format!("{} ({})", status.reason, status.code),
                    _ => "the API server does not answer".to_owned(),
                };
                return Err(ContainerError(format!("what the program left cannot be stored in Secret {name}: {why}")));
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Stores the state, and answers in how many pieces.
async fn stored(secrets: &Secrets, paths: &ProgramPaths, names: &[String]) -> Result<usize, ContainerError> {
    let Some(folder) = paths.shared(&paths.state)? else { return Ok(0) };
    let pieces = pack(&folder, names.len())?;
    // What was stored of an earlier try of this very container is written over.
    let (uuid, now) = (OsChance.job_id().to_string(), SystemClock.now().as_nanosecond().to_string());
    for (number, (name, piece)) in names.iter().zip(&pieces).enumerate() {
        let annotations = Map::from_iter([
            (format!("{GROUP}/uuid"), json!(uuid)),
            (format!("{GROUP}/num"), json!(number.to_string())),
            ("orangery.dev/state-stored-at".to_owned(), json!(now)),
            ("orangery.dev/state-pieces".to_owned(), json!(pieces.len().to_string())),
        ]);
        let patch = json!({"metadata": {"annotations": annotations}, "data": {"config": BASE64.encode(piece)}});
        secrets.fill(name, &patch).await?;
    }
    Ok(pieces.len())
}

/// The document that the program exported, as JSON; `None` where it has left none.
fn exports(paths: &ProgramPaths) -> Result<Option<Value>, ContainerError> {
    let Some(file) = paths.shared(&paths.exports)? else { return Ok(None) };
    let shown = paths.exports.as_path();
    let size = fs::metadata(&file).map_err(|error| ContainerError::file(shown, "read", &error))?;
    if !size.is_file() {
        return Err(ContainerError(format!("{} is no file; write one JSON or YAML document there", shown.display())));
    }
    let large = |bytes: u64| {
        ContainerError(format!(
            "{} has {bytes} bytes, and at most {MOST_EXPORT_BYTES} can be exported; export less",
            shown.display()
        ))
    };
    if size.len() > MOST_EXPORT_BYTES {
        return Err(large(size.len()));
    }
    let text = fs::read_to_string(&file).map_err(|error| ContainerError::file(shown, "read", &error))?;
    let value = yaml::decode(&text).map_err(|error| {
        ContainerError(format!("{} is neither JSON nor YAML, line {}", shown.display(), error.line))
    })?;
    // Aliases may make more of it.
    let bytes = value.to_string().len() as u64;
    if bytes > MOST_EXPORT_BYTES { Err(large(bytes)) } else { Ok(Some(value)) }
}

/// The data of the Secret that says what the run has left.
fn result_data(pieces: usize, exports: Option<Value>) -> Value {
    let encoded = |value: &Value| json!(BASE64.encode(value.to_string().as_bytes()));
    let mut data = Map::from_iter([("result".to_owned(), encoded(&json!({"statePieces": pieces})))]);
    data.extend(exports.map(|exports| ("config".to_owned(), encoded(&exports))));
    Value::Object(data)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn paths(folder: &Path) -> ProgramPaths {
        let at = |name: &str| folder.join(name);
        ProgramPaths {
            imports: at("imports"),
            exports: at("values"),
            component_descriptor: at("descriptor"),
            target: at("target"),
            content: at("content"),
            state: at("state"),
        }
    }

    #[test]
    fn con_16_what_is_exported_is_one_document_in_json_or_yaml() {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(folder.path());
        let exported = |text: &str| {
            fs::write(&paths.exports, text).unwrap();
            exports(&paths).map_err(|error| error.to_string())
        };
        assert_eq!(exports(&paths).unwrap(), None);
        assert_eq!(exported("a: 1\n"), Ok(Some(json!({"a": 1}))));
        assert_eq!(exported("{\"a\": [1, \"x\"]}"), Ok(Some(json!({"a": [1, "x"]}))));
        assert!(exported("a: [").unwrap_err().contains("is neither JSON nor YAML, line "));
        fs::remove_file(&paths.exports).unwrap();
        fs::create_dir(&paths.exports).unwrap();
        assert!(
            exports(&paths).unwrap_err().to_string().ends_with("is no file; write one JSON or YAML document there")
        );
    }

    #[test]
    fn limits_container_exports_a_document_has_a_size() {
        let folder = tempfile::tempdir().unwrap();
        let paths = paths(folder.path());
        let most = usize::try_from(MOST_EXPORT_BYTES).unwrap();
        fs::write(&paths.exports, format!("\"{}\"", "a".repeat(most - 2))).unwrap();
        assert!(exports(&paths).unwrap().is_some());
        fs::write(&paths.exports, format!("\"{}\"", "a".repeat(most - 1))).unwrap();
        assert!(exports(&paths).unwrap_err().to_string().contains("at most 1000000 can be exported"));
    }

    #[test]
    fn con_17_the_program_has_ended_when_its_container_has() {
        let pod = |state: Value| -> Pod {
            let status = |name: &str, state: &Value| json!({"name": name, "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state});
            let ended = json!({"terminated": {"exitCode": 1}});
            let statuses = [status("wait", &ended), status("main", &state)];
            serde_json::from_value(json!({"metadata": {}, "status": {"containerStatuses": statuses}})).unwrap()
        };
        assert_eq!(exit_code_of(&pod(json!({"running": {}}))), None);
        assert_eq!(exit_code_of(&pod(json!({"terminated": {"exitCode": 3}}))), Some(3));
    }
}
