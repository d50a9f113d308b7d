//! The Helm deployer in its sandbox: what charts that never end or never stop growing come to, and what a call holds after it.

use std::{collections::BTreeSet, sync::Arc};

use orangery_core::error::Fault;
use orangery_plugin::{Error, Occupancy, Plugin};
use orangery_proposal::{Item, ItemSecret, Proposal, deployer::Reads};
use orangery_tests::{
    chart::{TYPE, packed},
    empty::Empty,
};
use serde_json::{Value, json};

use super::{
    engines::builtin_in,
    fixtures::{bytes, cache, deployer_of, ended, item, plan, sandbox_with},
    limits::stopped,
};

/// An item that installs a chart with this template.
fn of_template(template: &str, values: Value) -> Item {
    let config = json!({
        "apiVersion": "helm.deployer.landscaper.gardener.cloud/v1alpha1", "kind": "ProviderConfiguration",
        "name": "rel", "namespace": "demo", "values": values,
        "chart": {"archive": {"raw": packed("1.0.0", &[("before.yaml", ""), ("bomb.yaml", template)])}},
    });
    Item { item_type: TYPE.to_owned(), config, ..item() }
}

async fn install(helm: &Plugin, item: &Item) -> Result<Result<Proposal, Fault>, Arc<Error>> {
    helm.plan(item, Reads::of_clusters(Arc::new(Empty))).await
}

#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn a_bomb_in_a_chart_ends_with_its_limit_and_names_the_template() {
    let sandbox = sandbox_with(cache());
    let helm = |limits: Value| builtin_in(sandbox.clone(), "helm", &limits);
    // What ends for another reason needs some time until then, on a busy machine more.
    let (hurried, patient) = (helm(json!({"cpuMilliseconds": 2000})), helm(json!({})));
    let victim = deployer_of(sandbox.clone(), "answers", bytes("answers"), json!({}));
    let expected = plan(&victim).await.unwrap().unwrap();
    let itself = json!({"loop": "{{ tpl .Values.loop . }}"});
    let loops = "{{ range until 100000 }}{{ range until 10000 }}{{ end }}{{ end }}";
    let hundred_megabytes = "{{ range until 1000 }}{{ repeat 100000 \"x\" }}{{ end }}";
    let memory = stopped("256 MiB of memory; have an administrator raise `limits.memoryMiB`");
    for (helm, template, values, end) in [
        (
            &hurried,
            loops,
            json!({}),
            stopped("2000 ms of processor time; have an administrator raise `limits.cpuMilliseconds`"),
        ),
        (&patient, hundred_megabytes, json!({}), memory.clone()),
        (&patient, "{{ repeat 1000000000 \"x\" }}", json!({}), memory),
        (
            &patient,
            "{{ tpl .Values.loop . }}",
            itself,
            "the component crashed: its calls are nested deeper than the stack of 2 MiB".to_owned(),
        ),
    ] {
        let error = ended(install(helm, &of_template(template, values)).await);
        let expected_end = format!("{end}; it had last logged: rendering the template app/templates/bomb.yaml");
        assert_eq!(error.to_string(), expected_end, "{template}");
        assert_eq!(plan(&victim).await.unwrap().unwrap(), expected);
    }
    assert_eq!(sandbox.occupancy(), Occupancy::default());
}

/// Fails with the digests of a certificate authority, a certificate of it, and their keys.
const KEYS: &str = r#"{{ $ca := genCA "ca" 1 }}{{ $web := genSignedCert "web" nil (list "web.example") 1 $ca }}
{{- $made := list $ca.Cert $ca.Key $web.Cert $web.Key }}
{{- $digests := list }}{{ range $made }}{{ $digests = append $digests (sha256sum .) }}{{ end }}
{{- fail (printf "made:%s" (join "," $digests)) }}"#;

/// Go checks each certificate with the key of its authority, by arithmetic of its own: one that is wrong has no digest.
#[tokio::test]
#[cfg_attr(without_go, ignore = "needs Go 1.26 or later: https://go.dev/dl")]
async fn c_394_c_395_keys_of_charts_are_those_of_the_job_and_of_no_other() {
    let helm = builtin_in(sandbox_with(cache()), "helm", &json!({"cpuMilliseconds": 20_000}));
    let made = async |secret: u8| -> Vec<String> {
        let item = Item { secret: Some(ItemSecret([secret; 32])), ..of_template(KEYS, json!({})) };
        let fault = install(&helm, &item).await.unwrap().unwrap_err();
        let message = fault.problem().message.clone();
        let (_, digests) = message.rsplit_once("made:").unwrap_or_else(|| panic!("{message}"));
        digests.split(',').map(|digest| digest.chars().take_while(char::is_ascii_hexdigit).collect()).collect()
    };
    let first = made(7).await;
    assert_eq!(made(7).await, first, "planned again, in another instance");
    let all = [first, made(8).await].concat();
    let distinct: BTreeSet<&String> = all.iter().filter(|digest| digest.len() == 64).collect();
    assert_eq!((all.len(), distinct.len()), (8, 8), "no key twice, and none of another job: {all:?}");
}
