//! Registrations by files that change while the host runs.

use std::{collections::BTreeSet, sync::Arc};

use orangery_blueprint::plugins::Plugins as _;
use orangery_plugin::{PluginSet, Reloaded};
use orangery_proposal::deployer::Reads;
use orangery_tests::empty::Empty;
use serde_json::json;

use super::fixtures::{bytes, item, registered, sandbox, section};

#[tokio::test]
async fn c_352_a_new_build_serves_its_types_and_the_old_one_still_answers() {
    let first = bytes("answers");
    let second = [first.clone(), section(0, b"\x03two")].concat();
    let build = |bytes: &[u8], item_type: &str| {
        registered("guest", bytes.to_vec(), json!({"deployer": {"itemTypes": [item_type]}}), json!({}))
    };
    let set = PluginSet::load(vec![build(&first, "a")], &sandbox()).unwrap();
    let of = |item_type: &str| set.deployer(item_type, &"n".into());
    let old = of("a").unwrap();
    let outcome = set.reload(vec![build(&second, "b")]).await.unwrap();
    let new = of("b").unwrap();
    assert_eq!(outcome.plugins, [Reloaded::Used(new.identity().clone())]);
    assert_eq!(outcome.types, BTreeSet::from(["a".to_owned(), "b".to_owned()]));
    assert!(new.identity().digest != old.identity().digest && of("a").is_none());
    for deployer in [old, new] {
        deployer.plan(&item(), Reads::of_clusters(Arc::new(Empty))).await.unwrap();
    }
    let other_world = json!({"deployer": null, "gate": {"types": ["b"]}});
    let refused = set.reload(vec![registered("guest", first, other_world, json!({}))]).await.unwrap();
    let [Reloaded::Refused { name, why }] = refused.plugins.as_slice() else { panic!("{refused:?}") };
    let sentence = "guest 1.0.0: the component exports nothing of a gate engine, which its registration claims it is; correct one of them";
    assert_eq!((name.as_str(), why.problem().message.as_str()), ("guest", sentence));
    assert!(of("b").is_some());
}
