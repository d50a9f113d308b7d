//! Registrations of `--plugins` that change while `up` runs: each new build is used as soon as it is compiled.

use std::sync::Arc;

use orangery_cli::{
    components::{FileStamps, RegistrationSource},
    file_events::FileEvents,
    terminal::notice,
};
use orangery_plugin::{PluginSet, ReloadOutcome, Reloaded};
use tokio::task::spawn_blocking;

use crate::operator::Operator;

/// A folder of registrations, as it was when they were loaded.
pub(super) struct WatchedFolder {
    source: RegistrationSource,
    loaded: FileStamps,
}

impl WatchedFolder {
    /// Before the registrations are loaded: what changes meanwhile is found afterwards.
    pub(super) fn of(source: RegistrationSource) -> Self {
        Self { loaded: source.stamps(), source }
    }

    /// Uses what changes, for ever. Where the system does not tell of files, it says so and nothing changes.
    pub(super) async fn follow(self, plugins: &PluginSet, operator: &Operator) {
        if let Err(error) = self.changes(plugins, operator).await {
            notice(&format!("warning: the folder of --plugins is not watched: {error}; start again to use new builds"));
        }
        std::future::pending().await
    }

    async fn changes(self, plugins: &PluginSet, operator: &Operator) -> std::io::Result<()> {
        let (source, mut loaded) = (Arc::new(self.source), self.loaded);
        let mut events = FileEvents::new()?;
        loop {
            for folder in source.folders() {
                events.watch(&folder)?;
            }
            // What changes from here on is told.
            let found = source.stamps();
            if found == loaded {
                events.changed().await?;
                continue;
            }
            loaded = found;
            let read = Arc::clone(&source);
            let registered = spawn_blocking(move || read.registered()).await.map_err(std::io::Error::other)?;
            match registered {
                Ok(registered) => match plugins.reload(registered).await {
                    Ok(outcome) => tell(&outcome, operator),
                    Err(error) => notice(&format!("error: {error}; what was registered before stays in use")),
                },
                Err(error) => notice(&format!("error: {error}; what was registered before stays in use")),
            }
        }
    }
}

fn tell(outcome: &ReloadOutcome, operator: &Operator) {
    operator.tell_served(&outcome.types);
    outcome.plugins.iter().for_each(|reloaded| notice(&sentence(reloaded)));
}

/// As much of a digest as people compare.
const SHORT_DIGEST: usize = "sha256:".len() + 12;

fn sentence(reloaded: &Reloaded) -> String {
    match reloaded {
        Reloaded::Used(identity) => {
            let digest: String = identity.digest.chars().take(SHORT_DIGEST).collect();
            format!("{identity} ({digest}) is in use from now on; jobs under way end with the one before")
        }
        Reloaded::Refused { name, why } => {
            format!("error: the new {name} is not used: {}; what was there before stays in use", why.problem().message)
        }
        Reloaded::Removed(name) => format!("{name} is registered no more"),
    }
}

#[cfg(test)]
mod tests {
    use orangery_core::error::{Code, Fault};
    use orangery_proposal::deployer::PluginIdentity;

    use super::*;

    #[test]
    fn c_352_what_became_of_a_registration_is_told_in_a_line() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let identity =
            PluginIdentity { name: "mine".to_owned(), version: "0.1.0".to_owned(), digest, is_pinned: false };
        assert_eq!(
            sentence(&Reloaded::Used(identity)),
            "mine 0.1.0 (sha256:aaaaaaaaaaaa) is in use from now on; jobs under way end with the one before"
        );
        let why = Fault::invalid(Code::ConfigurationProblem, "mine 0.1.0: it is damaged");
        assert_eq!(
            sentence(&Reloaded::Refused { name: "mine".to_owned(), why }),
            "error: the new mine is not used: mine 0.1.0: it is damaged; what was there before stays in use"
        );
        assert_eq!(sentence(&Reloaded::Removed("mine".to_owned())), "mine is registered no more");
    }
}
