//! Each budget has a guest that meets it, and the error names the limit.

use orangery_plugin::{BudgetLimit, Error, Plugin};
use serde_json::json;

use super::fixtures::{bytes, deployer, deployer_of, ended, leb, plan, sandbox, section, with_module};

#[track_caller]
fn check(error: &Error, limit: BudgetLimit, message: &str) {
    check_after(error, limit, message, "");
}

/// The error, of a guest that has logged something.
#[track_caller]
fn check_after(error: &Error, limit: BudgetLimit, message: &str, logged: &str) {
    let Error::Limit { limit: met, .. } = error else { panic!("{error:?}") };
    assert_eq!(*met, limit);
    assert_eq!(error.to_string(), format!("{}{logged}", stopped(message)));
}

/// What the error says of a limit, however it goes on.
pub(crate) fn stopped(message: &str) -> String {
    format!(
        "the call was stopped: it needs more than {message} of its registration, or of its Plugin, if that is meant to be"
    )
}

async fn end_of(plugin: Plugin) -> std::sync::Arc<Error> {
    ended(plan(&plugin).await)
}

#[tokio::test]
async fn a_loop_ends_with_its_processor_time() {
    let error = end_of(deployer("loops", json!({"cpuMilliseconds": 50}))).await;
    check(&error, BudgetLimit::Cpu, "50 ms of processor time; have an administrator raise `limits.cpuMilliseconds`");
}

#[tokio::test]
async fn a_sleep_ends_with_the_wall_clock() {
    let error = end_of(deployer("waits", json!({"wallMilliseconds": 50}))).await;
    check(&error, BudgetLimit::Wall, "50 ms; have an administrator raise `limits.wallMilliseconds`");
}

#[tokio::test]
async fn a_loop_cannot_outrun_the_wall_clock() {
    let error = end_of(deployer("loops", json!({"wallMilliseconds": 50}))).await;
    check(&error, BudgetLimit::Wall, "50 ms; have an administrator raise `limits.wallMilliseconds`");
}

#[tokio::test]
async fn an_allocation_ends_with_the_memory() {
    let error = end_of(deployer("allocates", json!({"memoryMiB": 8}))).await;
    check(&error, BudgetLimit::Memory, "8 MiB of memory; have an administrator raise `limits.memoryMiB`");
}

#[tokio::test]
async fn all_memories_of_a_component_are_one_sum() {
    // 1,008 pages are 63 MiB: less than the limit, and more than it with the guest's own memory.
    let memory = section(5, &[&[1, 0][..], &leb(1_008)].concat());
    let two = with_module(bytes("answers"), &[memory]);
    let error = end_of(deployer_of(sandbox(), "two-memories", two, json!({}))).await;
    check(&error, BudgetLimit::Memory, "64 MiB of memory; have an administrator raise `limits.memoryMiB`");
}

#[tokio::test]
async fn limits_components_one_has_so_many_instances_memories_and_tables_and_no_more() {
    let with = |sections: &[Vec<u8>], count| (0..count).fold(bytes("answers"), |all, _| with_module(all, sections));
    let (memory, table) = (section(5, &[1, 0, 0]), section(4, &[1, 0x70, 0, 0]));
    // The guest itself has three instances, one memory and two tables.
    for (what, most, section, few) in [
        ("core module instances", 60, vec![], 57),
        ("Wasm linear memories", 8, vec![memory], 7),
        ("tables", 40, vec![table], 38),
    ] {
        plan(&deployer_of(sandbox(), "few", with(&section, few), json!({}))).await.unwrap().unwrap();
        let error = end_of(deployer_of(sandbox(), "many", with(&section, few + 1), json!({}))).await;
        let contains =
            format!("the component does not compile: The component transitively contains {} {what}", most + 1);
        let expected = format!("{contains}, which exceeds the configured maximum of {most} in the pooling allocator");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn a_growing_table_ends_with_its_elements() {
    // A start function that grows a table by 300,000 elements.
    let body = [&[0, 0xd0, 0x70, 0x41][..], &[0xe0, 0xa7, 0x12], &[0xfc, 0x0f, 0, 0x1a, 0x0b]].concat();
    let sections = [
        section(1, &[1, 0x60, 0, 0]),
        section(3, &[1, 0]),
        section(4, &[1, 0x70, 0, 1]),
        section(8, &[0]),
        section(10, &[&[1][..], &leb(body.len() as u64), &body].concat()),
    ];
    let grows = with_module(bytes("answers"), &sections);
    let error = end_of(deployer_of(sandbox(), "grows-a-table", grows, json!({}))).await;
    check(
        &error,
        BudgetLimit::TableElements,
        "200000 table elements; have an administrator raise `limits.tableElements`",
    );
}

#[tokio::test]
async fn a_hoard_ends_with_the_handles() {
    let error = end_of(deployer("hoards", json!({"handles": 100}))).await;
    check(&error, BudgetLimit::Handles, "100 handles; have an administrator raise `limits.handles`");
}

#[tokio::test]
async fn a_flood_of_host_calls_ends_with_their_number() {
    let error = end_of(deployer("floods_host", json!({"hostCalls": 100}))).await;
    check(&error, BudgetLimit::HostCalls, "100 host calls; have an administrator raise `limits.hostCalls`");
}

#[tokio::test]
async fn a_large_argument_ends_with_the_bytes_of_host_calls() {
    // Once where the host counts it, once where the engine refuses to copy it.
    for output in [8 << 20, 1 << 16] {
        let limits = json!({"hostCallBytes": 1 << 16, "outputBytes": output});
        let error = end_of(deployer("asks_much", limits)).await;
        check(
            &error,
            BudgetLimit::HostCallBytes,
            "65536 bytes of host calls; have an administrator raise `limits.hostCallBytes`",
        );
    }
}

#[tokio::test]
async fn a_large_answer_ends_with_the_bytes_of_output() {
    for host_calls in [32 << 20, 1 << 16] {
        let limits = json!({"outputBytes": 1 << 16, "hostCallBytes": host_calls});
        let error = end_of(deployer("answers_much", limits)).await;
        check(&error, BudgetLimit::Output, "65536 bytes of output; have an administrator raise `limits.outputBytes`");
    }
}

#[tokio::test]
async fn a_flood_of_log_lines_ends_with_their_number() {
    let error = end_of(deployer("floods_log", json!({"logLines": 10}))).await;
    check_after(
        &error,
        BudgetLimit::LogLines,
        "10 lines of log; have an administrator raise `limits.logLines`",
        "; it had last logged: again",
    );
    let error = end_of(deployer("prints", json!({"logLines": 10}))).await;
    check(&error, BudgetLimit::LogLines, "10 lines of log; have an administrator raise `limits.logLines`");
}

#[tokio::test]
async fn a_long_line_ends_with_the_bytes_of_log() {
    let error = end_of(deployer("shouts", json!({}))).await;
    check(&error, BudgetLimit::LogBytes, "262144 bytes of log; have an administrator raise `limits.logBytes`");
    let error = end_of(deployer("prints", json!({"logBytes": 100}))).await;
    check(&error, BudgetLimit::LogBytes, "100 bytes of log; have an administrator raise `limits.logBytes`");
}
