//! `docs/administration.md`, as it stands: from nothing to two tenants who cannot hurt each other (C-38).

use std::sync::Arc;

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    proxy::Sound,
    repository,
    world::{Ground, World},
    yaml,
};
use serde_json::{Value, json};

/// The objects of the document: those of the administrator, the account of a team, what the team writes, what does not work.
fn documented() -> [Vec<Value>; 4] {
    let text = std::fs::read_to_string(repository().join("docs/administration.md")).expect("the document can be read");
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let blocks: Vec<Vec<Value>> = blocks.map(yaml::documents).collect();
    blocks.try_into().expect("the document has four blocks of objects")
}

/// The tenants, and whether the server holds them to their rights.
struct Tenants<'a> {
    admin: &'a Objects,
    alice: &'a Objects,
    bob: &'a Objects,
    has_rights: bool,
}

impl Tenants<'_> {
    async fn walk(&self) {
        let [teams, account, app, refused] = documented();
        for object in teams.iter().chain(&account) {
            self.admin.apply(object).await;
        }
        for object in &app {
            self.alice.apply(object).await;
        }
        let installation = app.last().expect("the last one is the Installation");
        let ended = |phase: &'static str| {
            move |object: &Value| object["metadata"]["name"] == "app" && object["status"]["phase"] == phase
        };
        self.admin.expect_that(installation, "does not succeed", ended("Succeeded")).await;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "team-a"}});
        self.admin.expect(&map).await;
        // Bob tries the same with an account of his that has not opted in.
        let default = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "team-b"}});
        self.admin.apply(&default).await;
        for object in &refused {
            self.bob.apply(object).await;
        }
        let mut his = installation.clone();
        his["metadata"]["namespace"] = json!("team-b");
        self.bob.apply(&his).await;
        let failed = self.admin.expect_that(&his, "does not fail", ended("Failed")).await;
        let error = &failed["status"]["lastError"];
        assert!(error["message"].to_string().contains("which Targets may not use"), "{error:#}");
        assert!(error["codes"].to_string().contains("ERR_FORBIDDEN"), "{error:#}");
        if self.has_rights {
            assert!(self.bob.is_refused(installation).await, "Bob may write to the namespace of Alice");
            assert!(self.alice.is_refused(&account[0]).await, "Alice may let accounts opt in");
        }
    }
}

#[tokio::test]
async fn c_38_two_tenants_cannot_hurt_each_other() {
    let binary = crate::binary().await;
    match crate::ground() {
        Ground::Embedded => {
            let mut world = World::on(&Ground::Embedded, binary, Arc::new(Sound)).await;
            world.start();
            let all = &world.objects;
            Tenants { admin: all, alice: all, bob: all, has_rights: false }.walk().await;
            world.end().await;
        }
        Ground::Kube(programs) => {
            let server = Kube::shared(&programs, &binary).await;
            let admin = Objects::of(server.kubeconfig()).await;
            let _operator = server.operator(&binary, OPERATOR[0], &["--default-policy=restricted"]);
            let [alice, bob] = [("alice", "team-a"), ("bob", "team-b")];
            let alice = Objects::of(server.kubeconfig_of(alice.0, alice.1)).await;
            let bob = Objects::of(server.kubeconfig_of(bob.0, bob.1)).await;
            Tenants { admin: &admin, alice: &alice, bob: &bob, has_rights: true }.walk().await;
        }
    }
}
