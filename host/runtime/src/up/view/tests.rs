use std::sync::Mutex;

use futures::FutureExt as _;
use orangery_api::{
    execution::{DeployItemTemplate, ExecutionSpec},
    label,
};
use orangery_cli::terminal::Appearance;
use serde_json::{Value, json};

use super::*;

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn terminal() -> (Terminal, Written) {
    let err = Written::default();
    (Terminal::new(Box::new(io::sink()), Box::new(err.clone()), Appearance::PLAIN), err)
}

fn installation(name: &str, version: u64, status: Value) -> Installation {
    serde_json::from_value(json!({"metadata": {"namespace": "ns", "name": name, "uid": name,
        "resourceVersion": version.to_string(), "generation": 1}, "spec": {"blueprint": {}}, "status": status}))
    .unwrap()
}

fn finished(phase: &str) -> Value {
    json!({"phase": phase, "jobID": "1", "jobIDFinished": "1", "observedGeneration": 1})
}

fn applied(name: &str) -> ViewScope {
    let object = json!({"apiVersion": "landscaper.gardener.cloud/v1alpha1", "kind": "Installation",
        "metadata": {"namespace": "ns", "name": name}});
    ViewScope::of(&[serde_json::from_value(object).unwrap()])
}

#[tokio::test]
async fn a_view_is_final_when_the_job_is_and_judges_only_what_was_applied() {
    let stores = Stores::new();
    stores.installations.upsert(installation("other", 1, finished("Failed")));
    stores.installations.upsert(installation("mine", 2, json!({"phase": "Progressing", "jobID": "1"})));
    let mut view = LiveView::new(stores.clone(), applied("mine"), &"ns".into());
    let (mut terminal, err) = terminal();
    let ending = async {
        tokio::task::yield_now().await;
        stores.installations.upsert(installation("mine", 3, finished("Succeeded")));
    };
    let (drawn, ()) = tokio::join!(view.until_final(&mut terminal), ending);
    drawn.unwrap();
    assert_eq!(view.tell_outcome(&mut terminal), Exit::Ok);
    assert_eq!(
        err.text(),
        "warning: Installation ns/mine deploys nothing: its blueprint has no deployExecutions and no subinstallations that \
         give anything; correct blueprint.yaml if that is not what was meant\n"
    );
}

#[tokio::test]
async fn what_failed_is_exit_code_1() {
    let stores = Stores::new();
    stores.installations.upsert(installation("mine", 1, finished("Failed")));
    let mut view = LiveView::new(stores, ViewScope::All, &"ns".into());
    let (mut terminal, _) = terminal();
    view.until_final(&mut terminal).await.unwrap();
    assert_eq!(view.tell_outcome(&mut terminal), Exit::Failed);
}

#[tokio::test]
async fn what_nothing_triggers_is_told_with_the_way_to_start_it() {
    let stores = Stores::new();
    stores.installations.upsert(installation("mine", 1, json!({})));
    let mut view = LiveView::new(stores, ViewScope::All, &"ns".into());
    let (mut terminal, err) = terminal();
    view.until_final(&mut terminal).await.unwrap();
    assert_eq!(view.tell_outcome(&mut terminal), Exit::Failed);
    assert_eq!(
        err.text(),
        "error: Installation ns/mine was not started, because nothing triggers it; add the annotation \
         landscaper.gardener.cloud/operation: reconcile to its manifest, or run orangery reconcile mine -n ns\n"
    );
}

#[tokio::test]
async fn a_deploy_item_of_its_own_is_started_by_another_operation() {
    let item = |version: u64, annotations: Value| {
        serde_json::from_value::<DeployItem>(json!({
            "metadata": {"namespace": "ns", "name": "item", "uid": "item", "resourceVersion": version.to_string(),
                "annotations": annotations},
            "spec": {"type": "t"},
        }))
        .unwrap()
    };
    let stores = Stores::new();
    stores.deploy_items.upsert(item(1, json!({})));
    let mut view = LiveView::new(stores.clone(), ViewScope::All, &"ns".into());
    let (mut terminal, err) = terminal();
    view.until_final(&mut terminal).await.unwrap();
    assert_eq!(view.tell_outcome(&mut terminal), Exit::Failed);
    assert_eq!(
        err.text(),
        "error: DeployItem ns/item was not started, because nothing triggers it; add the annotation \
         landscaper.gardener.cloud/operation: test-reconcile to its manifest\n"
    );

    // An installation that has been asked to start is not done.
    stores.deploy_items.upsert(item(2, json!({"landscaper.gardener.cloud/operation": "test-reconcile"})));
    let mut view = LiveView::new(stores, ViewScope::All, &"ns".into());
    assert!(view.until_final(&mut terminal).now_or_never().is_none());
}

#[test]
fn c_99_a_tree_is_read_without_what_its_objects_deploy() {
    let stores = Stores::new();
    let long = json!({"text": (0..10_000_u32).map(|number| number.wrapping_mul(2_654_435_761).to_string()).collect::<String>()});
    let meta = |name: &str, labels: Value| json!({"namespace": "ns", "name": name, "uid": name, "resourceVersion": "1", "labels": labels});
    let whole = json!({"metadata": meta("mine", json!({})), "spec": {"blueprint": {"inline": {"filesystem": long}}},
        "status": finished("Succeeded")});
    stores.installations.upsert(serde_json::from_value(whole).unwrap());
    let item =
        |name: &str| DeployItemTemplate { name: name.to_owned(), config: Some(long.clone()), ..Default::default() };
    let mut execution = Execution::new("mine", ExecutionSpec::new("", vec![item("b"), item("a")]));
    execution.metadata = serde_json::from_value(meta("mine", json!({}))).unwrap();
    stores.executions.upsert(execution);
    for name in ["a", "b"] {
        let labels = json!({(label::MANAGED_BY): "mine", (label::ITEM_NAME): name});
        let item = json!({"metadata": meta(name, labels), "spec": {"type": "t", "target": {"name": "c"}, "config": long},
            "status": finished("Succeeded")});
        stores.deploy_items.upsert(serde_json::from_value(item).unwrap());
    }
    let objects = Objects {
        installations: stores.installations.list(None).into_iter().collect(),
        executions: stores.executions.list(None).into_iter().collect(),
        deploy_items: stores.deploy_items.list(None).into_iter().collect(),
    };
    let read = LiveView::new(stores, ViewScope::All, &"ns".into()).read();
    assert_eq!(read, Tree::of(&objects));
    let titles: Vec<&str> = read.roots[0].children[0].children.iter().map(|item| item.title.as_str()).collect();
    assert_eq!(titles, ["b", "a"], "in the order of the Execution");
    let lengths = [
        serde_json::to_string(&shown_installation(&objects.installations[0])),
        serde_json::to_string(&shown_execution(&objects.executions[0])),
        serde_json::to_string(&shown_item(&objects.deploy_items[0])),
    ];
    assert!(lengths.iter().all(|text| text.as_ref().unwrap().len() < 2_000), "{lengths:?}");
}
