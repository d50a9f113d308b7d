//! The states of template executions: Secrets of the Installation.
//!
//! Deploy and sub-installation executions of one name share a Secret in the original, so that one overwrites the other.
//! Here a sub-installation execution has the shared Secret only while it is alone with its name, so that the original
//! finds it again after a downgrade; beside a deploy execution of its name it has one of its own, which begins as a copy.
//!
//! Others may write Secrets: a state has a seal of the operator, which Landscaper leaves alone (C-202).

use std::collections::BTreeMap;

use futures::future::try_join_all;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, ResourceExt, api::PostParams, core::ObjectMeta};
use orangery_api::annotation;
use orangery_blueprint::{Blueprint, rendering::ExecutionKind};
use orangery_core::{
    error::{Code, Failure},
    name::{ObjectName, StateOwner, state_secret},
    step::{Halt, Step},
};
use orangery_policy::{PolicyRequest, PolicySubject};
use orangery_render::{StateKey, States};

use super::super::reconciliation::InstallationReconciliation;
use crate::{
    event::warn,
    object::{controller_reference, message_of},
    object_access::get,
    seal::{SealError, TemplateStateSealer},
};

/// The key of a state in its Secret.
const CONTENT: &str = "config";

/// Where the states of an Installation are kept, and what was read there.
#[derive(Default)]
pub(in crate::installation) struct StateSecrets {
    by_state: BTreeMap<StateKey, StateSecret>,
}

struct StateSecret {
    name: ObjectName,
    /// As it was read; a write asks that it be still so.
    present: Option<Secret>,
}

/// The names that a state may be kept under.
#[derive(Debug, PartialEq, Eq)]
struct StateNames {
    /// The name that the original knows.
    shared: ObjectName,
    /// The own name of a sub-installation execution.
    own: Option<ObjectName>,
    /// Whether a deploy execution has the shared name.
    contested: bool,
}

impl StateNames {
    fn of(installation: &str, key: &StateKey, blueprint: &Blueprint) -> Self {
        let name = |owner| state_secret(installation, owner, &key.execution);
        match key.list {
            ExecutionKind::Export => Self { shared: name(StateOwner::Export), own: None, contested: false },
            ExecutionKind::Subinstallation => Self {
                shared: name(StateOwner::Deploy),
                own: Some(name(StateOwner::Subinstallation)),
                contested: blueprint.deploy_executions.iter().any(|execution| execution.name == key.execution),
            },
            ExecutionKind::Import
            | ExecutionKind::Deploy
            | ExecutionKind::ImportMapping
            | ExecutionKind::ExportMapping => Self { shared: name(StateOwner::Deploy), own: None, contested: false },
        }
    }
}

impl InstallationReconciliation<'_> {
    /// Reads the states of the executions in these lists.
    pub(in crate::installation) async fn read_states(
        &self,
        blueprint: &Blueprint,
        lists: &[ExecutionKind],
    ) -> Step<(States, StateSecrets)> {
        let keys = States::keys(blueprint).filter(|key| lists.contains(&key.list));
        let located = try_join_all(keys.map(|key| self.locate(key, blueprint))).await?;
        let (mut states, mut secrets) = (States::default(), StateSecrets::default());
        for (key, secret, stored) in located {
            if let Some(stored) = stored {
                states.load(key.clone(), &stored).map_err(|error| {
                    let message = format!(
                        "the state of execution {:?} in Secret {}/{} cannot be read: {error}; correct or delete the Secret",
                        key.execution,
                        self.key.namespace.clone(),
                        secret.name
                    );
                    Halt::Stall(Failure::new("ReadState", "InvalidState", message).with_code(Code::ConfigurationProblem))
                })?;
            }
            secrets.by_state.insert(key, secret);
        }
        Ok((states, secrets))
    }

    /// Where one state is kept, and what is there.
    async fn locate(&self, key: StateKey, blueprint: &Blueprint) -> Step<(StateKey, StateSecret, Option<Vec<u8>>)> {
        let names = StateNames::of(&self.key.name, &key, blueprint);
        if let Some(own) = names.own {
            let present = self.trusted_secret(&own).await?;
            if present.is_some() {
                let stored = present.as_ref().and_then(content);
                return Ok((key, StateSecret { name: own, present }, stored));
            }
            if names.contested {
                // Before the deploy execution writes the shared one, it is copied.
                let stored = self.trusted_secret(&names.shared).await?.as_ref().and_then(content);
                let present = match &stored {
                    Some(stored) => Some(self.write_state(&own, None, stored).await?),
                    None => None,
                };
                return Ok((key, StateSecret { name: own, present }, stored));
            }
        }
        let present = self.trusted_secret(&names.shared).await?;
        let stored = present.as_ref().and_then(content);
        Ok((key, StateSecret { name: names.shared, present }, stored))
    }

    /// The Secret of this name with a state that this operator has sealed. Another one is taken over where the policy of the
    /// namespace says so, and sealed (C-202).
    ///
    /// # Errors
    /// The policy refuses it.
    async fn trusted_secret(&self, name: &ObjectName) -> Step<Option<Secret>> {
        let Some(secret) = self.state_secret(name).await? else { return Ok(None) };
        let Some(stored) = content(&secret) else { return Ok(Some(secret)) };
        let seal = secret.annotations().get(annotation::STATE_SEAL).map(String::as_str);
        let Err(why) = TemplateStateSealer::of(self.host, &self.draft, name).verify(&stored, seal) else {
            return Ok(Some(secret));
        };
        let request = PolicyRequest::UnsealedState(name);
        self.host.policies.check(&self.key.namespace, PolicySubject::Installation, request)?;
        // One of Landscaper has no seal.
        if seal.is_some() {
            let how = match why {
                SealError::Unsealed => "is not as this operator has written it",
                SealError::Replayed => "is an older one than this operator has written last",
            };
            let note = format!(
                "the state of templates in Secret {name} {how}; it is gone on with, as the policy of the namespace has it (blueprints.unsealedStates)"
            );
            warn(self.host, &self.draft, "StateNotTrusted", &note);
        }
        self.write_state(name, Some(&secret), &stored).await.map(Some)
    }

    /// The Secret of this name, unless it is that of an Installation that had this one's name before: such a one is
    /// about to be deleted with its owner.
    async fn state_secret(&self, name: &ObjectName) -> Step<Option<Secret>> {
        let secret: Option<Secret> = get(&self.host.client, &self.key.namespace, name).await?;
        let ours = controller_reference(&self.draft);
        Ok(secret.filter(|secret| {
            let mut installations = secret.owner_references().iter().filter(|owner| owner.kind == ours.kind);
            installations.all(|owner| owner.uid == ours.uid)
        }))
    }

    /// Stores what changed.
    pub(in crate::installation) async fn store_states(
        &self,
        changed: Vec<(StateKey, String)>,
        secrets: &mut StateSecrets,
    ) -> Step<()> {
        for (key, text) in changed {
            let Some(secret) = secrets.by_state.get_mut(&key) else { continue };
            let written = self.write_state(&secret.name, secret.present.as_ref(), text.as_bytes()).await?;
            secret.present = Some(written);
        }
        Ok(())
    }

    async fn write_state(&self, name: &ObjectName, present: Option<&Secret>, content: &[u8]) -> Step<Secret> {
        let api: Api<Secret> = Api::namespaced(self.host.client.clone(), &self.key.namespace);
        let data = [(CONTENT.to_owned(), ByteString(content.to_vec()))].into();
        let sealer = TemplateStateSealer::of(self.host, &self.draft, name);
        let seal = sealer.seal(content);
        let sealed = (annotation::STATE_SEAL.to_owned(), seal.text.clone());
        let written = match present {
            Some(before) => {
                let mut after = Secret { data: Some(data), ..before.clone() };
                after.annotations_mut().extend([sealed]);
                if after.owner_references().is_empty() {
                    after.metadata.owner_references = Some(vec![controller_reference(&self.draft)]);
                }
                api.replace(name, &PostParams::default(), &after).await
            }
            None => {
                let secret = Secret {
                    metadata: ObjectMeta {
                        name: Some(name.to_string()),
                        namespace: Some(self.key.namespace.to_string()),
                        owner_references: Some(vec![controller_reference(&self.draft)]),
                        annotations: Some([sealed].into()),
                        ..ObjectMeta::default()
                    },
                    data: Some(data),
                    type_: Some("Opaque".to_owned()),
                    ..Secret::default()
                };
                api.create(&PostParams::default(), &secret).await
            }
        };
        written.inspect(|_| sealer.written(&seal)).map_err(|error| {
            let message = format!(
                "the state in Secret {}/{name} cannot be written: {}; it is tried again",
                self.key.namespace.clone(),
                message_of(&error)
            );
            Halt::Retry(Failure::new("StoreState", "StateNotStored", message))
        })
    }
}

fn content(secret: &Secret) -> Option<Vec<u8>> {
    let ByteString(bytes) = secret.data.as_ref()?.get(CONTENT)?;
    Some(bytes.clone())
}

#[cfg(test)]
mod tests {
    use orangery_blueprint::TemplateExecution;

    use super::*;

    fn names(list: ExecutionKind, deploy_executions: &[&str]) -> StateNames {
        let named = |name: &&str| TemplateExecution { name: (*name).to_owned(), ..TemplateExecution::default() };
        let blueprint =
            Blueprint { deploy_executions: deploy_executions.iter().map(named).collect(), ..Blueprint::default() };
        StateNames::of("st", &StateKey { list, execution: "default".to_owned() }, &blueprint)
    }

    /// The first name is recorded in `tests/golden/state`.
    #[test]
    fn a_sub_installation_execution_is_parted_from_the_deploy_execution_of_its_name_only() {
        let shared = || ObjectName::from_static("ohp56oascnzo6ntsmtjn6dgfgwqd6ez2");
        let own = Some(state_secret("st", StateOwner::Subinstallation, "default"));
        let plain = |shared| StateNames { shared, own: None, contested: false };
        assert_eq!(names(ExecutionKind::Deploy, &["default"]), plain(shared()));
        assert_eq!(
            names(ExecutionKind::Export, &["default"]),
            plain(state_secret("st", StateOwner::Export, "default"))
        );
        let alone = StateNames { shared: shared(), own: own.clone(), contested: false };
        assert_eq!(names(ExecutionKind::Subinstallation, &["other"]), alone);
        assert_eq!(names(ExecutionKind::Subinstallation, &["default"]), StateNames { contested: true, ..alone });
        assert_ne!(own, Some(shared()));
    }
}
