//! The charts of `tests/charts`, rendered as the stock command line renders them.

use std::{path::Path, process::Stdio};

use orangery_tests::{helm::Helm, repository};

#[tokio::test]
#[cfg_attr(without_helm, ignore = "needs the stock helm: tests/helm/build.sh")]
async fn every_chart_renders_as_the_stock_command_line_renders_it() {
    let helm = Helm::of("");
    // So that the component is compiled.
    drop(crate::binary().await);
    let mut compare = tokio::process::Command::new(env!("CARGO_BIN_EXE_compare-charts"));
    let charts = repository().join("tests/charts");
    compare.arg(&charts).arg("--values").arg(charts.join("values")).arg("--helm").arg(helm.program());
    compare.arg("--cache").arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache/orangery"));
    let ended = compare.stdin(Stdio::null()).kill_on_drop(true).output().await.expect("compare-charts starts");
    let table = String::from_utf8_lossy(&ended.stdout).into_owned();
    let results: Vec<[&str; 3]> = table.lines().skip(2).filter_map(result).collect();
    let expected = [
        ["capabilities", "default", "equal"],
        ["capabilities", "other", "equal"],
        ["custom", "default", "equal"],
        ["hooks", "default", "equal"],
        ["kept", "default", "equal"],
        ["kept", "other", "equal"],
        ["library", "default", "equal"],
        ["library", "other", "equal"],
        ["schema", "default", "equal"],
        ["schema", "other", "equal"],
        ["subcharts", "default", "equal"],
        ["subcharts", "other", "equal"],
        ["switches", "default", "equal"],
        ["switches", "other", "equal"],
        ["web", "default", "equal"],
    ];
    assert_eq!(results, expected, "{table}\n{}", String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success());
}

/// The chart, the set of values and the result of a line of the table.
fn result(line: &str) -> Option<[&str; 3]> {
    let mut cells = line.split('|').map(str::trim);
    Some([cells.nth(1)?, cells.nth(1)?, cells.nth(2)?])
}
