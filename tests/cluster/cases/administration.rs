//! `docs/administration.md`, as it stands: from nothing to two tenants who cannot hurt each other (C-38).

use std::sync::Arc;

use orangery_tests::{
    kube::{Kube, OPERATOR},
    objects::Objects,
    proxy::Sound,
    repository,
    tree::API,
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
        self.admin.expect_that(installation, "does not succeed", is_in("app", "Succeeded")).await;
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
        let failed = self.admin.expect_that(&his, "does not fail", is_in("app", "Failed")).await;
        let error = &failed["status"]["lastError"];
        assert!(error["message"].to_string().contains("which Targets may not use"), "{error:#}");
        assert!(error["codes"].to_string().contains("ERR_FORBIDDEN"), "{error:#}");
        if self.has_rights {
            assert!(self.bob.is_refused(installation).await, "Bob may write to the namespace of Alice");
            assert!(self.alice.is_refused(&account[0]).await, "Alice may let accounts opt in");
        }
        self.reach_over(installation, &account).await;
        self.import_across(installation).await;
    }

    /// Bob names Alice's account; then one of his own that may in his namespace what hers may in hers, and deploys to hers.
    async fn reach_over(&self, installation: &Value, account: &[Value]) {
        let config = json!({"selfConfig": {"serviceAccount": {"name": "deployer"}, "expirationSeconds": 3600}});
        let spec = json!({"type": "landscaper.gardener.cloud/kubernetes-cluster", "config": config});
        let metadata = json!({"name": "deployer", "namespace": "team-b"});
        self.bob.apply(&json!({"apiVersion": API, "kind": "Target", "metadata": metadata, "spec": spec})).await;
        let of_bob = |name: &str, namespace: &str| {
            let mut his = installation.clone();
            his["metadata"]["name"] = json!(name);
            his["metadata"]["namespace"] = json!("team-b");
            his["spec"]["imports"]["targets"][0]["target"] = json!("deployer");
            let files = &mut his["spec"]["blueprint"]["inline"]["filesystem"];
            let text = files["blueprint.yaml"].as_str().expect("the blueprint is a text");
            // What is refused for want of rights is tried again until the time is up.
            let text = text.replace("target: {import: cluster}", "timeout: 5s\n      target: {import: cluster}");
            files["blueprint.yaml"] = json!(text.replace("namespace: team-a", &format!("namespace: {namespace}")));
            his
        };
        self.bob.apply(&of_bob("hers", "team-a")).await;
        self.fails(&of_bob("hers", "team-a"), "names ServiceAccount team-b/deployer, which does not exist").await;
        for object in account {
            let text = object.to_string().replace("team-a", "team-b");
            self.admin.apply(&serde_json::from_str(&text).expect("the object is JSON")).await;
        }
        let his = of_bob("his", "team-b");
        self.bob.apply(&his).await;
        self.admin.expect_that(&his, "does not succeed", is_in("his", "Succeeded")).await;
        if self.has_rights {
            self.bob.apply(&of_bob("over", "team-a")).await;
            let refusal = "User \"system:serviceaccount:team-b:deployer\" cannot create resource \"configmaps\" in API group \"\" \
                           in the namespace \"team-a\"";
            self.fails(&of_bob("over", "team-a"), refusal).await;
        }
    }

    /// Bob imports what is in Alice's namespace, and looks at it.
    async fn import_across(&self, installation: &Value) {
        let of_alice = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hers"}, "stringData": {"k": "of-alice-alone"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "hers"}, "data": {"k": "settings-of-alice"}}),
            json!({"apiVersion": API, "kind": "DataObject", "metadata": {"name": "hers"}, "data": "data-of-alice"}),
        ];
        for mut object in of_alice {
            object["metadata"]["namespace"] = json!("team-a");
            self.alice.apply(&object).await;
        }
        let imports = [
            ("Secret", json!({"secretRef": {"name": "hers", "key": "k"}})),
            ("ConfigMap", json!({"configMapRef": {"name": "hers", "key": "k"}})),
            ("DataObject", json!({"dataRef": "hers"})),
        ];
        for (kind, mut import) in imports {
            import["name"] = json!("value");
            let blueprint = json!({"apiVersion": API, "kind": "Blueprint", "imports": [{"name": "value", "type": "data", "schema": {}}]});
            let mut his = installation.clone();
            his["metadata"]["name"] = json!(format!("imports-{}", kind.to_lowercase()));
            his["metadata"]["namespace"] = json!("team-b");
            his["spec"] = json!({"imports": {"data": [import]},
                "blueprint": {"inline": {"filesystem": {"blueprint.yaml": blueprint.to_string()}}}});
            self.bob.apply(&his).await;
            self.fails(&his, &format!("{kind} hers")).await;
        }
        let reference = json!({"publicKeySecretReference": {"name": "hers", "namespace": "team-a", "key": "k"}});
        let context = json!({
            "apiVersion": API, "kind": "Context", "metadata": {"name": "keys", "namespace": "team-b"},
            "repositoryContext": {"type": "local", "filePath": "."}, "verificationSignatures": {"hers": reference},
        });
        self.bob.apply(&context).await;
        let mut his = installation.clone();
        his["metadata"]["name"] = json!("signed-by-hers");
        his["metadata"]["namespace"] = json!("team-b");
        his["spec"] = json!({
            "context": "keys", "verification": {"signatureName": "hers"},
            "componentDescriptor": {"ref": {"componentName": "example.org/app", "version": "1.0.0"}},
            "blueprint": {"ref": {"resourceName": "blueprint"}},
        });
        self.bob.apply(&his).await;
        let sentence = "Context keys names the Secret team-a/hers for a signature, which is of another namespace";
        self.fails(&his, sentence).await;
        if self.has_rights {
            let paths = [
                "api/v1/namespaces/team-a/secrets",
                "apis/landscaper.gardener.cloud/v1alpha1/namespaces/team-a/dataobjects",
            ];
            for path in paths {
                assert_eq!((reads(self.alice, path).await, reads(self.bob, path).await), (200, 403), "{path}");
            }
        }
    }

    /// Waits until a job of an Installation has failed, and with this sentence.
    async fn fails(&self, installation: &Value, sentence: &str) {
        let is_failed = is_in(installation["metadata"]["name"].as_str().unwrap_or_default(), "Failed");
        let failed = self.admin.expect_that(installation, "does not fail", is_failed).await;
        let message = failed["status"]["lastError"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(sentence), "{message}");
    }
}

/// Whether an object has this name and this phase.
fn is_in(name: &str, phase: &str) -> impl Fn(&Value) -> bool + use<> {
    let (name, phase) = (json!(name), json!(phase));
    move |object: &Value| object["metadata"]["name"] == name && object["status"]["phase"] == phase
}

/// How the server answers a user that lists what is under a path.
async fn reads(of: &Objects, path: &str) -> u16 {
    let request = http::Request::get(format!("/{path}")).body(kube::client::Body::empty()).expect("a request");
    of.client().send(request).await.expect("the server answers").status().as_u16()
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

#[tokio::test]
async fn c_410_definitions_are_applied_and_that_of_a_newer_version_stays() {
    let world = World::on(&crate::ground(), crate::binary().await, Arc::new(Sound)).await;
    let definition = |annotations: Value| {
        let metadata = json!({"name": "plugins.orangery.dev", "annotations": annotations});
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata})
    };
    let told = |text: &str| text.lines().find(|line| line.starts_with("plugins.orangery.dev ")).map(str::to_owned);
    // Somebody has taken the version off.
    world.objects.merge(&definition(json!({"orangery.dev/version": null}))).await;
    let applied = world.run(&["crd", "--apply"]).await;
    assert_eq!(told(&applied).as_deref(), Some("plugins.orangery.dev is up to date"), "{applied}");
    assert_eq!(applied.lines().count(), 15, "{applied}");
    world.objects.expect(&definition(json!({"orangery.dev/version": env!("CARGO_PKG_VERSION")}))).await;
    world.objects.merge(&definition(json!({"orangery.dev/version": "99.0.0"}))).await;
    let applied = world.run(&["crd", "--apply"]).await;
    let stays = "plugins.orangery.dev is of version 99.0.0, which is newer, and stays";
    assert_eq!(told(&applied).as_deref(), Some(stays), "{applied}");
    world.objects.expect(&definition(json!({"orangery.dev/version": "99.0.0"}))).await;
    world.end().await;
}
