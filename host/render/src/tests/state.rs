//! What executions keep (`docs/wire.md` §4.7).

use super::*;

fn deploy(name: &str, engine: &str, template: &str) -> World {
    World::blueprint(&format!("deployExecutions: [{{name: {name}, type: {engine}, template: '{template}'}}]"))
}

fn key(list: ExecutionKind, execution: &str) -> StateKey {
    StateKey { list, execution: execution.to_owned() }
}

fn loaded(name: &str, stored: &str) -> States {
    let mut states = States::default();
    states.load(key(ExecutionKind::Deploy, name), stored.as_bytes()).unwrap();
    states
}

/// What is to be stored after the deploy executions were rendered, and how that went.
fn stored(world: &World, states: States) -> (Vec<String>, bool) {
    let mut rendering = world.rendering_after(states);
    let answer = block_on(rendering.items(&serde_json::Map::new(), &BTreeMap::new()));
    let changed = rendering.states().take_changed();
    assert_eq!(rendering.states().take_changed(), []);
    (changed.into_iter().map(|(_, text)| text).collect(), answer.is_ok())
}

#[test]
fn an_execution_gets_what_it_kept_and_only_that() {
    let world = deploy("one", "Echo", "{}");
    stored(&world, loaded("one", "{\"count\":1}"));
    stored(&world, loaded("other", "{\"count\":1}"));
    let states: Vec<_> = world.engines.asked().into_iter().map(|request| request.state).collect();
    assert_eq!(states, [Some(json!({"count": 1})), None]);
}

/// The bytes are recorded in `tests/golden/state` and `tests/golden/spiff-execution`.
#[test]
fn a_text_keeps_its_field_state_and_a_document_what_the_component_answers() {
    let text = deploy("one", "Echo", "{state: {count: 2, a: x}, deployItems: []}");
    assert_eq!(stored(&text, States::default()), (vec!["{\"a\":\"x\",\"count\":2}".to_owned()], true));
    let document = deploy("one", "Spiff", "{\"state\":{},\"deployItems\":[]}");
    assert_eq!(stored(&document, States::default()), (vec!["{}\n".to_owned()], true));
}

#[test]
fn only_what_changed_is_stored() {
    let same = deploy("one", "Echo", "state: {count: 1}");
    assert_eq!(stored(&same, loaded("one", "count: 1\n")), (Vec::new(), true));
    for without in ["deployItems: []", "state: {}", "state: null"] {
        assert_eq!(stored(&deploy("one", "Echo", without), loaded("one", "{\"count\":1}")), (Vec::new(), true));
    }
}

#[test]
fn a_state_is_stored_though_the_items_beside_it_are_refused() {
    let refused = deploy("one", "Echo", "{state: {count: 1}, deployItems: [{name: i}]}");
    assert_eq!(stored(&refused, States::default()), (vec!["{\"count\":1}".to_owned()], false));
    let unreadable = deploy("one", "Echo", "state: [");
    assert_eq!(stored(&unreadable, loaded("one", "{\"count\":1}")), (Vec::new(), false));
}

#[test]
fn executions_of_one_name_in_different_lists_have_states_of_their_own() {
    let world = World::blueprint(
        "subinstallationExecutions: [{name: one, type: Echo, template: 'state: {of: sub}'}]\ndeployExecutions: [{name: one, type: Echo, template: 'state: {of: items}'}]\nexportExecutions: [{name: one, type: Echo, template: 'state: {of: exports}'}]\nimportExecutions: [{name: one, type: Echo, template: 'state: {of: imports}'}]",
    );
    let lists = [ExecutionKind::Subinstallation, ExecutionKind::Deploy, ExecutionKind::Export];
    assert_eq!(States::keys(&world.blueprint).collect::<Vec<_>>(), lists.map(|list| key(list, "one")));
    let mut rendering = world.rendering();
    let imports = block_on(rendering.imports(&BTreeMap::new(), &BTreeMap::new())).unwrap();
    block_on(rendering.subinstallations(&imports, &BTreeMap::new())).unwrap();
    block_on(rendering.items(&imports, &BTreeMap::new())).unwrap();
    block_on(rendering.exports(&imports, ExportValues::default(), &BTreeMap::new())).unwrap();
    let kept: BTreeMap<_, _> = rendering.states().values().map(|(key, value)| (key.clone(), value.clone())).collect();
    let expected = [
        (key(ExecutionKind::Subinstallation, "one"), json!({"of": "sub"})),
        (key(ExecutionKind::Deploy, "one"), json!({"of": "items"})),
        (key(ExecutionKind::Export, "one"), json!({"of": "exports"})),
    ];
    assert_eq!(kept, BTreeMap::from(expected));
}

/// 350 KB that take some 36 MiB of memory.
fn large() -> String {
    format!("{{\"big\": [{}0]}}", "{\"\":0},".repeat(40_000))
}

#[test]
fn c_324_states_that_were_stored_have_a_sum() {
    let mut states = loaded("one", &large());
    let refused = states.load(key(ExecutionKind::Deploy, "two"), large().as_bytes()).unwrap_err().to_string();
    assert_eq!(refused, "with the others it takes more than the 67108864 bytes of memory that are allowed");
    assert_eq!(states.values().count(), 1);
}

/// Two deploy executions that answer large documents, after the state of another one.
fn rendered(states: States, hold: Option<u64>) -> Result<usize, RenderError> {
    let world = World::of(json!({
        "blueprint.yaml": "deployExecutions: [{name: a, type: Echo, file: /big.json}, {name: b, type: Echo, file: /big.json}]",
        "big.json": format!("{{\"big\": [{}0]}}", "{\"\":0},".repeat(20_000)),
    }));
    let mut rendering = world.rendering_after(states);
    if let Some(most) = hold {
        rendering = rendering.sharing(Box::new(move |bytes| bytes <= most));
    }
    let values = block_on(rendering.imports(&BTreeMap::new(), &BTreeMap::new()))?;
    block_on(rendering.items(&values, &BTreeMap::new())).map(|items| items.len())
}

#[test]
fn c_324_limits_blueprint_what_executions_answer_has_a_sum() {
    assert_eq!(rendered(States::default(), None), Ok(0));
    let refused = rendered(loaded("one", &large()), None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the answer of deployExecutions \"b\" (Echo, file /big.json) takes more than the 67108864 bytes of memory that are \
         allowed, with what was read and answered before; use less, or divide the blueprint"
    );
    assert!(!refused.is_transient());
}

#[test]
fn c_324_component_descriptors_count_before_anything_is_rendered() {
    let mut world = deploy("one", "Echo", "{}");
    world.definitions.components = serde_json::from_str(&large()).unwrap();
    world.definitions.descriptor = world.definitions.components.clone();
    let mut rendering = world.rendering();
    let refused = block_on(rendering.imports(&BTreeMap::new(), &BTreeMap::new())).unwrap_err().to_string();
    assert_eq!(
        refused,
        "what templates get of component descriptors and states takes more than the 67108864 bytes of memory that are allowed, \
         with what was read and answered before; use less, or divide the blueprint"
    );
    assert_eq!(world.engines.asked().len(), 0);
}

#[test]
fn c_324_what_others_have_of_the_memory_of_answers_is_waited_for() {
    let refused = rendered(States::default(), Some(30 << 20)).unwrap_err();
    assert!(refused.is_transient());
    let told = refused.to_string();
    let begin = "the answer of deployExecutions \"b\" (Echo, file /big.json) takes ";
    assert!(told.starts_with(begin) && told.ends_with(", and others have what is left; it is tried again"), "{told}");
}

#[test]
fn a_stored_state_that_is_no_yaml_is_refused() {
    let mut states = States::default();
    assert!(states.load(key(ExecutionKind::Deploy, "one"), b"a: [").is_err());
    assert_eq!(states.values().count(), 0);
}
