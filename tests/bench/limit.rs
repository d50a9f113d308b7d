//! What the chart gives the operator of memory is enough: with nothing compiled, all components that ship and one of a blueprint are
//! compiled at once, beside many Helm releases, within a control group of that limit.

use std::{fs, time::Instant};

use orangery_tests::{
    cluster::Cluster,
    control_group::ControlGroup,
    own_template, repository,
    tree::{blueprint, deploys, imports_cluster, installation, mocks, on_cluster},
    yaml,
};
use serde_json::{Value, json};

use crate::{
    charts,
    figures::{Figures, display},
    load::Installations,
};

/// From the first object to the end of the last job.
pub(crate) async fn everything_compiles(figures: &mut Figures) {
    let what =
        format!("nothing compiled, {} Helm releases and every engine at once, in the chart's memory", charts::SIZE);
    let lacks: Vec<&str> =
        orangery_builtin::components().iter().filter_map(|builtin| builtin.component.err()).collect();
    if !lacks.is_empty() {
        figures.add(&what, &lacks.join("; "));
        return;
    }
    let limit = memory_of_the_chart();
    let group = match ControlGroup::with_memory(limit) {
        Ok(group) => group,
        Err(error) => {
            figures.add(&what, &format!("not measured: no control group can be made ({error})"));
            return;
        }
    };
    let (cache, files) = (tempfile::tempdir(), tempfile::tempdir());
    let (cache, files) = (cache.expect("a temporary folder"), files.expect("a temporary folder"));
    let line = format!("export MIMALLOC_ARENA_EAGER_COMMIT=0\n{}", group.enter());
    let binary = crate::binary_with(cache.path());
    let entered = binary.after(&line);
    let cluster = Cluster::start(&entered, &["--data", "state", "--simulate-workloads"]).await;
    let own = own_template::installation(files.path(), &own_template::rust(&crate::release().join("tmp")));
    let objects = [vec![charts::installation(), by("GoTemplate"), by("Spiff")], yaml::documents(&own)].concat();
    let installations = objects.iter().filter(|object| object["kind"] == "Installation").count();
    let mut seen = Installations::watch(cluster.client()).await;
    let begin = Instant::now();
    for object in &objects {
        cluster.apply(object).await;
    }
    seen.until(installations, |_, now| now.has_ended()).await;
    let took = begin.elapsed();
    let failed: Vec<&str> =
        seen.known().iter().filter(|(_, now)| !now.succeeded()).map(|(name, _)| name.as_str()).collect();
    let mebibytes = |bytes: Option<u64>| bytes.map_or("unknown".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let figure = format!(
        "{}; peak {} of {}, {} killed, {} of {installations} failed{}",
        display(took),
        mebibytes(group.peak()),
        mebibytes(Some(limit)),
        group.kills().map_or("unknown".to_owned(), |kills| kills.to_string()),
        failed.len(),
        failed.iter().map(|name| format!(" {name}")).collect::<String>(),
    );
    figures.add(&what, &figure);
    cluster.kill().await;
}

/// The memory that the chart gives the operator, in bytes.
fn memory_of_the_chart() -> u64 {
    let text = fs::read_to_string(repository().join("charts/orangery/values.yaml")).expect("the chart has values");
    let values = yaml::documents(&text);
    let limit = values.iter().find_map(|values| values.pointer("/resources/limits/memory")).and_then(Value::as_str);
    let gibibytes = limit.and_then(|limit| limit.strip_suffix("Gi")?.parse::<u64>().ok());
    gibibytes.expect("the chart limits the memory in Gi") << 30
}

/// An Installation whose items, one of each deployer that is no chart, are rendered by this engine.
fn by(engine: &str) -> Value {
    let name = engine.to_lowercase();
    let items = [deploys(&name, &[], "1"), mocks("mock", &[], "Succeeded", "1")];
    let execution = json!({"name": "d", "type": engine, "template": json!({"deployItems": items}).to_string()});
    let blueprint = blueprint(json!({"imports": imports_cluster(), "deployExecutions": [execution]}));
    on_cluster(installation(&name, &blueprint))
}
