//! What an operator of an earlier build left in mid-job: the data of an embedded server, recorded once for each version and kept,
//! is gone on with by the operator under test.

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use orangery_api::annotation::COPY_OF;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    binary::Binary,
    crash_points::{Cut, NEVER, Outcome, Scenario, compare_objects, ended, play},
    effects::{self, Effects},
    end_state::end_state,
    former_cluster::FormerCluster,
    proxy::Sound,
    tree::{API, any, wait_until_idle},
    world::{Ground, MOCK, World},
};

/// The files of an embedded server's objects. Its credentials lie beside them, and are made anew.
const FILES: [&str; 2] = ["FORMAT", "objects.redb"];

/// The folder of the same of the former cluster, where there is one.
const FORMER: &str = "former";

/// Plays a scenario on an embedded server until `share` of four quarters of its writes are done, kills the operator, and keeps
/// what is there. With `OLDER` the operator is that of an older binary.
pub async fn record(scenario: &Scenario, share: usize, file: &Path, binary: impl AsyncFn() -> Binary) {
    let (_, writes) = play(scenario, &Ground::Embedded, binary().await, None).await;
    let (folder, cut) = (folder(), Cut::new());
    let former = former(scenario, folder.path()).await;
    let mut world = World::in_folder(folder.path(), binary().await, Arc::clone(&cut) as _).await;
    world.start_older(&[MOCK]);
    scenario.begin(&world).await;
    cut.arm(writes * share / 4);
    scenario.deed.carry_out(&world.objects).await;
    cut.is_reached().await;
    world.kill().await;
    cut.arm(NEVER);
    world.end().await;
    let mut files = FILES.map(|name| (folder.path().join(name), PathBuf::from(name))).to_vec();
    let former = match former {
        Some(former) => former.stop().await,
        None => None,
    };
    if let Some(folder) = &former {
        files.extend(FILES.map(|name| (folder.path().join(name), Path::new(FORMER).join(name))));
    }
    fs::create_dir_all(file.parent().expect("it has a folder")).expect("the folder can be made");
    let packed = File::create(file).expect("the file can be made");
    let mut archive = tar::Builder::new(GzEncoder::new(packed, Compression::best()));
    for (file, name) in files {
        archive.append_path_with_name(file, name).expect("the server has written its objects");
    }
    archive.into_inner().and_then(GzEncoder::finish).and_then(|mut file| file.flush()).expect("it can be packed");
}

/// The operator under test goes on with what each file has kept, to the end that the scenario has where nothing disturbs it, and
/// then deletes all of it.
///
/// # Panics
/// It ends otherwise.
pub async fn go_on(scenario: &Scenario, files: &[PathBuf], binary: impl AsyncFn() -> Binary) {
    let (undisturbed, _) = play(scenario, &Ground::Embedded, binary().await, None).await;
    for file in files {
        go_on_with(file, scenario, &undisturbed, binary().await).await;
    }
}

async fn go_on_with(file: &Path, scenario: &Scenario, undisturbed: &Outcome, binary: Binary) {
    let folder = folder();
    let packed = File::open(file).expect("the file can be read");
    tar::Archive::new(GzDecoder::new(packed)).unpack(folder.path()).expect("it can be unpacked");
    let former = former(scenario, folder.path()).await;
    let mut world = World::in_folder(folder.path(), binary, Arc::new(Sound)).await;
    let effects = Effects::begin(world.objects.client()).await;
    world.start();
    ended(&world.objects, &scenario.deed).await;
    wait_until_idle(&world.objects).await;
    // What is done now is what was still to do: the end of all that is done where nothing disturbs it.
    for (name, done) in effects::by_name(&effects.until_now(&world.objects).await) {
        let all = undisturbed.effects.get(&name).cloned().unwrap_or_default();
        if !all.ends_with(&done) {
            crate::fail(&format!("after {}, {name} came to say {done:?}, which is no end of {all:?}", file.display()));
        }
    }
    let ended = end_state(&world.objects).await;
    let ended: Vec<String> =
        ended.iter().filter(|object| !is_left(object)).map(|object| without_label_of_source(object)).collect();
    let of_any_build = |objects: &[String]| objects.iter().map(|object| without_build(object)).collect::<Vec<_>>();
    let (expected, ended) = (of_any_build(&undisturbed.objects), of_any_build(&ended));
    compare_objects(&expected, &ended, &format!("after {}", file.display()));
    if let Some(former) = &former {
        former.has_lost(&undisturbed.effects.keys().map(String::as_str).collect::<Vec<_>>()).await;
    }
    world.objects.delete(&any("Installation", "tree")).await;
    for kind in ["Installation", "Execution", "DeployItem"] {
        world.objects.expect_absent(&json!({"apiVersion": API, "kind": kind})).await;
    }
    world.end().await;
    if let Some(former) = former {
        drop(former.stop().await);
    }
}

/// The former cluster of a scenario that has one, with the objects that were kept beside those of the world, if any.
async fn former(scenario: &Scenario, kept: &Path) -> Option<FormerCluster> {
    if !scenario.deed.is_move() {
        return None;
    }
    let (folder, kept) = (folder(), kept.join(FORMER));
    if kept.is_dir() {
        // A server takes no folder that has something else in it.
        for name in FILES {
            fs::rename(kept.join(name), folder.path().join(name)).expect("the file can be moved");
        }
        fs::remove_dir(&kept).expect("it is empty");
    }
    Some(FormerCluster::in_folder(folder).await)
}

/// Whether it is a proposal whose operator was killed right after the write that ended the job: it goes with its item (C-63).
fn is_left(object: &str) -> bool {
    object.contains(r#""type":"orangery.dev/proposal""#)
}

/// An object, but for what earlier builds wrote: a copy of a guarded Target had the label of its source, and has it until the
/// next job writes it (C-151).
fn without_label_of_source(object: &str) -> String {
    let is_copy = object.contains(r#""kind":"Target""#) && object.contains("landscaper.gardener.cloud/sourceType");
    match is_copy && !object.contains(r#""finalizers""#) {
        true => object.replace(r#","orangery.dev/in-use":"true""#, ""),
        false => object.to_owned(),
    }
}

/// An object, but for the digest of the component that has deployed it, as each build has its own, and for what a Target is a copy
/// of: earlier builds did not say that (C-171).
fn without_build(object: &str) -> String {
    let mut object: Value = serde_json::from_str(object).expect("an object is JSON");
    if let Some(deployer) = object.pointer_mut("/status/deployer").and_then(Value::as_object_mut) {
        deployer.remove("identity");
    }
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(COPY_OF);
    }
    object.to_string()
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}
