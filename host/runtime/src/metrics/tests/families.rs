//! The families of a page against the table that the documentation has, and how many series others can make.

use std::collections::{BTreeMap, BTreeSet};

use http::HeaderValue;
use orangery_cluster::RequestCounts;
use orangery_figures::DurationCounts;
use orangery_plugin::{BudgetLimit, CallCounts, CallResult, Occupancy};
use prometheus_client::metrics::MetricType;

use super::*;
use crate::metrics::family::{ALL, MetricFamily};

const DOCUMENTATION: &str = include_str!("../../../../../docs/metrics.md");

fn durations() -> DurationCounts {
    let mut counts = DurationCounts::default();
    counts.add(std::time::Duration::from_millis(20));
    counts
}

fn calls(plugin: &str) -> (Arc<str>, CallCounts) {
    let (results, limits) = (vec![(CallResult::Answered, 3)], vec![(BudgetLimit::Memory, 1)]);
    (plugin.into(), CallCounts { results, limits, durations: durations() })
}

/// Figures with a sample of each family.
async fn full() -> Figures {
    let occupancy = Occupancy { calls: 2, bytes: 65_536, ..Occupancy::default() };
    let sandbox =
        move || SandboxFigures { occupancy, memory_limit: 1 << 20, code: (10, 11), calls: vec![calls("mock")] };
    let clusters = || ClusterFigures {
        kept: 4,
        servers: 3,
        silent: 1,
        watches: 5,
        object_bytes: 6,
        requests: vec![RequestCounts { method: "get", results: vec![("answered", 2)], durations: durations() }],
    };
    let figures = active_with(sandbox, clusters);
    let client = crate::requests::in_process(Router::new(), &figures.requests);
    assert!(client.request_text(http::Request::get("/version").body(Vec::new()).unwrap()).await.is_err());
    let item = |finished: &str, version: &str| -> DeployItem {
        let condition = json!({"type": "Ready", "status": "True", "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        let times = json!({"triggerTime": "2026-01-01T00:00:00Z", "finishedTime": "2026-01-01T00:00:20Z"});
        let status = json!({"phase": "Succeeded", "jobIDFinished": finished, "transitionTimes": times, "conditions": [condition]});
        let metadata = json!({"namespace": "ns", "name": "a", "uid": "a", "resourceVersion": version});
        serde_json::from_value(json!({"metadata": metadata, "spec": {"type": "t"}, "status": status})).unwrap()
    };
    active(&figures).stores.deploy_items.upsert(item("a", "1"));
    active(&figures).stores.deploy_items.upsert(item("b", "2"));
    figures
}

/// The name as it is told where a family is described, in OpenMetrics.
fn described(of: &MetricFamily) -> String {
    of.unit.as_ref().map_or_else(|| of.name.to_owned(), |unit| format!("{}_{}", of.name, unit.as_str()))
}

/// The name that is asked for.
fn asked(of: &MetricFamily) -> String {
    if of.sort == MetricType::Counter { format!("{}_total", described(of)) } else { described(of) }
}

/// Samples: the name, and the names of its labels without that of buckets.
fn samples_of(page: &str) -> BTreeSet<(String, Vec<String>)> {
    let samples = page.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let (name, labels) = name.split_once('{').unwrap_or((name, ""));
            let labels = labels.trim_end_matches('}').split(',').filter_map(|label| Some(label.split_once('=')?.0));
            (name.to_owned(), labels.filter(|label| *label != "le").map(str::to_owned).collect())
        })
        .collect()
}

#[tokio::test]
async fn c_392_what_is_answered_is_what_the_table_has_in_both_formats() {
    let figures = full().await;
    let (prometheus, open) = (text(&figures), figures.text(TextFormat::OpenMetrics));
    let (mut samples, mut heads, mut open_heads, mut rows) = (BTreeSet::new(), Vec::new(), Vec::new(), Vec::new());
    for of in ALL {
        let labels: Vec<String> = of.labels.iter().map(|label| (*label).to_owned()).collect();
        let name = asked(of);
        match of.sort {
            MetricType::Histogram => {
                samples.extend(["sum", "count", "bucket"].map(|end| (format!("{name}_{end}"), labels.clone())));
            }
            _ => _ = samples.insert((name.clone(), labels.clone())),
        }
        let (sort, unit) = (of.sort.as_str(), of.unit.as_ref().map(|unit| unit.as_str()));
        heads.extend([format!("# HELP {name} {}", of.help), format!("# TYPE {name} {sort}")]);
        let described = described(of);
        open_heads.extend([format!("# HELP {described} {}", of.help), format!("# TYPE {described} {sort}")]);
        open_heads.extend(unit.map(|unit| format!("# UNIT {described} {unit}")));
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        rows.push(format!(
            "| `{name}` | {sort} | {} | {} | {} |",
            unit.unwrap_or_default(),
            labels.join(", "),
            of.help
        ));
    }
    let comments = |page: &str| -> Vec<String> {
        page.lines().filter(|line| line.starts_with('#') && *line != "# EOF").map(str::to_owned).collect()
    };
    assert_eq!((samples_of(&prometheus), samples_of(&open)), (samples.clone(), samples));
    assert_eq!((comments(&prometheus), comments(&open)), (heads, open_heads));
    assert!(open.ends_with("\n# EOF\n"), "{open}");
    let documented: Vec<&str> =
        DOCUMENTATION.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 6).collect();
    assert_eq!(documented, rows, "the table in docs/metrics.md is, row for row:\n{}", rows.join("\n"));
}

#[tokio::test]
async fn what_is_counted_is_told_as_it_is_at_the_moment_of_asking() {
    let page = text(&full().await);
    let expected = [
        "orangery_cache_bytes{cache=\"blueprint_code\"} 10",
        "orangery_cache_bytes{cache=\"cluster_objects\"} 6",
        "orangery_cache_bytes{cache=\"rendered\"} 8",
        "orangery_cache_limit_bytes{cache=\"blueprint_code\"} 11",
        "orangery_cache_limit_bytes{cache=\"cluster_objects\"} 7",
        "orangery_cache_limit_bytes{cache=\"rendered\"} 9",
        "orangery_cluster_servers{state=\"answering\"} 2",
        "orangery_cluster_servers{state=\"silent\"} 1",
        "orangery_job_duration_seconds_bucket{kind=\"DeployItem\",result=\"Succeeded\",le=\"10\"} 0",
        "orangery_job_duration_seconds_bucket{kind=\"DeployItem\",result=\"Succeeded\",le=\"30\"} 1",
        "orangery_jobs_total{kind=\"DeployItem\",result=\"Succeeded\"} 1",
        "orangery_objects{kind=\"DeployItem\",phase=\"Succeeded\"} 1",
        "orangery_plugin_call_duration_seconds_count{plugin=\"mock\"} 1",
        "orangery_plugin_calls 2",
        "orangery_plugin_ended_calls_total{plugin=\"mock\",result=\"answered\"} 3",
        "orangery_plugin_limits_met_total{plugin=\"mock\",limit=\"memoryMiB\"} 1",
        "orangery_plugin_memory_bytes 65536",
    ];
    let lines: BTreeSet<&str> = page.lines().collect();
    let missing: Vec<&str> = expected.into_iter().filter(|line| !lines.contains(line)).collect();
    assert_eq!(missing, [""; 0], "{page}");
}

#[tokio::test]
async fn a_reader_gets_the_format_that_it_accepts() {
    let of = |accept: &'static str| {
        TextFormat::accepted(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
    };
    let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1";
    let found = [of(prometheus), of("*/*"), of("text/plain;version=0.0.4"), TextFormat::accepted(&HeaderMap::new())];
    assert_eq!(
        found,
        [TextFormat::OpenMetrics, TextFormat::Prometheus, TextFormat::Prometheus, TextFormat::Prometheus]
    );
}

#[tokio::test]
async fn c_390_names_of_plugins_are_escaped() {
    let strange = || SandboxFigures { calls: vec![calls("a\"} 1\n# x\\")], ..SandboxFigures::default() };
    let page = text(&active_with(strange, ClusterFigures::default));
    let line = r#"orangery_plugin_ended_calls_total{plugin="a\"} 1\n# x\\",result="answered"} 3"#;
    assert_eq!(samples(&page, "orangery_plugin_ended_calls_total"), [line]);
}

/// The metrics that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let names = text.split(word).filter(|word| word.starts_with("orangery_") || word.starts_with("process_"));
    names.map(str::to_owned).collect()
}

/// All names that can be asked for, with the labels of each.
fn known() -> BTreeMap<String, &'static [&'static str]> {
    let mut names = BTreeMap::new();
    for of in ALL {
        match of.sort {
            MetricType::Histogram => {
                names.extend(["sum", "count", "bucket"].map(|end| (format!("{}_{end}", asked(of)), of.labels)));
            }
            _ => _ = names.insert(asked(of), of.labels),
        }
    }
    names
}

const ALERTS: &str = include_str!("../../../../../charts/orangery/files/alerts.yaml");
const DASHBOARD: &str = include_str!("../../../../../charts/orangery/files/dashboard.json");
const RUNBOOK: &str = include_str!("../../../../../docs/runbook.md");
const FIRING: &str = include_str!("../../../../../tests/alerts/alerts.test.yaml");

#[test]
fn c_393_alerts_and_panels_name_metrics_that_exist() {
    let known = known();
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let mut expressions = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            expressions.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    for rule in rules() {
        expressions.push(rule["expr"].as_str().unwrap().to_owned());
    }
    assert!(expressions.len() > 30, "{expressions:?}");
    for expression in expressions {
        let names = named(&expression);
        let unknown: Vec<&String> = names.iter().filter(|name| !known.contains_key(*name)).collect();
        assert!(!names.is_empty() && unknown.is_empty(), "{unknown:?} in {expression}");
        // Of labels only what is matched can be told apart from other words: `name=`, `name!=`, `name=~`.
        let labels: BTreeSet<&str> = names.iter().flat_map(|name| known[name].iter().copied()).collect();
        for part in expression.split('{').skip(1) {
            let matchers = part.split('}').next().unwrap();
            for matcher in matchers.split("\",").filter(|matcher| matcher.contains('=')) {
                let label = matcher.split(['=', '!']).next().unwrap().trim();
                assert!(labels.contains(label), "{label} in {expression}");
            }
        }
    }
}

fn rules() -> Vec<Value> {
    let groups = orangery_core::yaml::decode(ALERTS).unwrap();
    let groups = groups["groups"].as_array().unwrap().clone();
    groups.into_iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

#[test]
fn c_393_each_alert_has_a_section_of_the_runbook_and_is_shown_firing() {
    let rules = rules();
    let alerts: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    let sections: Vec<&str> = RUNBOOK.lines().filter_map(|line| line.strip_prefix("## Orangery")).collect();
    let sections: Vec<String> = sections.into_iter().map(|name| format!("Orangery{name}")).collect();
    assert_eq!(alerts, sections);
    for rule in &rules {
        let alert = rule["alert"].as_str().unwrap();
        let place = format!("docs/runbook.md#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"].as_str(), Some(place.as_str()));
        assert!(["critical", "warning"].contains(&rule["labels"]["severity"].as_str().unwrap()), "{alert}");
        assert!(rule["annotations"]["summary"].as_str().is_some_and(|summary| summary.ends_with('.')), "{alert}");
    }
    let tests = orangery_core::yaml::decode(FIRING).unwrap();
    let tests = tests["tests"].as_array().unwrap().iter();
    let cases = tests.flat_map(|test| test["alert_rule_test"].as_array().unwrap());
    let (firing, silent): (Vec<&Value>, Vec<&Value>) =
        cases.partition(|case| case["exp_alerts"].as_array().is_some_and(|alerts| !alerts.is_empty()));
    let names = |cases: &[&Value]| -> BTreeSet<String> {
        cases.iter().map(|case| case["alertname"].as_str().unwrap().to_owned()).collect()
    };
    let all: BTreeSet<String> = alerts.into_iter().map(str::to_owned).collect();
    assert_eq!(
        (names(&firing), names(&silent)),
        (all.clone(), all),
        "each fires in one case, and in another one it does not"
    );
}

#[test]
fn c_393_the_dashboard_is_one_that_grafana_reads() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert_eq!((&dashboard["uid"], &dashboard["schemaVersion"]), (&json!("orangery"), &json!(39)));
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
    let mut taken = BTreeSet::new();
    for panel in panels {
        let place = ["x", "y", "w", "h"].map(|of| panel["gridPos"][of].as_u64().unwrap());
        let [x, y, w, h] = place;
        assert!(x + w <= 24, "{panel}");
        for cell in (y..y + h).flat_map(|row| (x..x + w).map(move |column| (column, row))) {
            assert!(taken.insert(cell), "{panel} lies over another one");
        }
        if panel["type"] != "row" {
            assert!(["timeseries", "stat"].contains(&panel["type"].as_str().unwrap()), "{panel}");
            assert_eq!(panel["datasource"], json!({"type": "prometheus", "uid": "${datasource}"}));
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string() && panel["title"].is_string(), "{panel}");
        }
    }
}
