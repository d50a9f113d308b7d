//! What a TargetSync makes, leaves and takes away (C-371 … C-373), and when a credential is renewed (C-375).

use std::collections::BTreeSet;

use data_encoding::BASE64URL_NOPAD;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::{
    error::Failure,
    name::{Kind, NAME_LENGTH, ObjectName, can_be_name},
    step::Halt,
};

/// The most Targets that one TargetSync makes (C-371).
pub const MOST_SYNCED: usize = 1_000;

/// The most errors that the status of a TargetSync names, and the bytes of each (C-371).
const MOST_TOLD: usize = 16;
const LONGEST_TOLD: usize = 1 << 10;

/// How long a kubeconfig that is issued for a shoot is good, in seconds: 24 hours, as in the original.
pub const SHOOT_SECONDS: i64 = 24 * 60 * 60;
/// How long a token that is issued for a TargetSync is good, in seconds: 90 days, as in the original.
pub const TOKEN_SECONDS: i64 = 90 * 24 * 60 * 60;

const SHOOT_RENEWAL: SignedDuration = SignedDuration::from_hours(12);
const TOKEN_RENEWAL: SignedDuration = SignedDuration::from_hours(60 * 24);
/// However short a token lives that a server issues, it is not renewed earlier than this.
const LEAST_BETWEEN_ROTATIONS: SignedDuration = SignedDuration::from_hours(1);

/// The longest token that is looked into, in bytes.
const LONGEST_TOKEN: usize = 64 << 10;

/// What another cluster has, as far as it becomes Targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedNames {
    /// The names of the Targets.
    pub names: BTreeSet<ObjectName>,
    /// What does not become one that should, and why.
    pub errors: Vec<String>,
}

/// Of the names that another cluster has told, those that match: `kind` is what they name, in messages. A server may answer any
/// text for a name, and any number of them.
pub fn selected<'n>(kind: &Kind, told: impl Iterator<Item = &'n str>, matches: impl Fn(&str) -> bool) -> SelectedNames {
    let mut selected = SelectedNames::default();
    let (mut wrong, mut beyond) = (0_usize, 0_usize);
    for name in told {
        if name.len() > NAME_LENGTH || !can_be_name(name) {
            wrong += 1;
        } else if matches(name) {
            selected.names.insert(name.into());
            if selected.names.len() > MOST_SYNCED {
                selected.names.pop_last();
                beyond += 1;
            }
        }
    }
    if wrong > 0 {
        selected.errors.push(format!(
            "the other cluster tells of {wrong} {kind}s by names that no object can have; they are left out, correct its server"
        ));
    }
    if beyond > 0 {
        selected.errors.push(format!(
            "the expression matches {} {kind}s, of which {MOST_SYNCED} become Targets; make it match fewer",
            MOST_SYNCED + beyond
        ));
    }
    selected
}

/// The maker of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectMaker {
    /// This TargetSync: it has its mark and its uid.
    Own,
    /// Somebody else.
    Other,
}

impl ObjectMaker {
    /// Of an object with or without the mark, whose owners have these uids. Only what has both is ever changed or deleted (C-372).
    pub fn of<'u>(is_marked: bool, mut owners: impl Iterator<Item = &'u str>, uid: &str) -> Self {
        if is_marked && !uid.is_empty() && owners.any(|owner| owner == uid) { Self::Own } else { Self::Other }
    }
}

/// The Targets of a TargetSync that the other cluster has nothing for any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftTargets {
    /// They go.
    pub removed: Vec<ObjectName>,
    /// They are in use, and stay as long as they are.
    pub kept: Vec<ObjectName>,
}

/// Which of its own Targets a TargetSync takes away: where everything else went well, and nothing uses them (C-373).
pub fn left(
    own: impl IntoIterator<Item = ObjectName>,
    wanted: &BTreeSet<ObjectName>,
    all_went_well: bool,
    is_in_use: impl Fn(&ObjectName) -> bool,
) -> LeftTargets {
    let mut left = LeftTargets::default();
    if all_went_well {
        for name in own.into_iter().filter(|name| !wanted.contains(name)) {
            let to = if is_in_use(&name) { &mut left.kept } else { &mut left.removed };
            to.push(name);
        }
    }
    left
}

/// From when to when a token is good, as it says itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenLife {
    issued: i64,
    expires: i64,
}

impl TokenLife {
    /// Of a token of a service account; `None` where it does not say so. Nobody has checked its signature: whoever issued it has said
    /// it, and renews his own token earlier or later by it.
    pub fn of(token: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Claims {
            iat: i64,
            exp: i64,
        }
        let claims = token.split('.').nth(1).filter(|_| token.len() <= LONGEST_TOKEN)?;
        let Claims { iat, exp } = serde_json::from_slice(&BASE64URL_NOPAD.decode(claims.as_bytes()).ok()?).ok()?;
        (exp > iat && iat >= 0).then_some(Self { issued: iat, expires: exp })
    }

    /// When two thirds of it have passed.
    fn renewal(self) -> Option<Timestamp> {
        Timestamp::from_second(self.expires - (self.expires - self.issued) / 3).ok()
    }
}

/// What a call for a TargetSync has come to so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncOutcome {
    /// What was not well, in the order in which it was met.
    pub errors: Vec<String>,
    /// What is tried again.
    pub retry: Option<Failure>,
    /// What is not known yet, as it halts the call.
    pub wait: Option<Halt>,
    /// The next time at which something is due.
    pub due: Option<Timestamp>,
    /// Whether there is more to do at once.
    pub again: bool,
    /// How many kubeconfigs were asked for.
    pub asked: usize,
    /// Whether the token was renewed.
    pub rotated: bool,
    /// Whether anything was written.
    pub wrote: bool,
}

impl SyncOutcome {
    /// Something did not go well. Of what is tried again the first counts: all of it is tried then.
    pub fn halts(&mut self, halt: Halt) {
        match halt {
            Halt::Wait(_) => {
                self.wait = Some(match self.wait.take() {
                    Some(known) => known.join(halt),
                    None => halt,
                });
            }
            Halt::Retry(failure) => {
                self.errors.push(failure.message.clone());
                self.retry.get_or_insert(failure);
            }
            Halt::Stall(failure) => self.errors.push(failure.message),
        }
    }

    /// Something has to be done at this time.
    pub fn is_due(&mut self, at: Timestamp) {
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Whether all that there should be is there.
    pub fn is_well(&self) -> bool {
        self.errors.is_empty() && self.wait.is_none() && !self.again
    }
}

/// When the token of a TargetSync is renewed that was renewed at `last`; `None` at once. After 60 days, as in the original, and
/// earlier where the server lets its tokens live shorter, but not more often than once an hour.
pub fn rotation_due(last: Option<Timestamp>, life: Option<TokenLife>, now: Timestamp) -> Option<Timestamp> {
    let last = last.filter(|last| *last <= now)?;
    let after = |span| last.saturating_add(span).unwrap_or(Timestamp::MAX);
    let renewal = life.and_then(TokenLife::renewal).unwrap_or(Timestamp::MAX);
    let due = renewal.min(after(TOKEN_RENEWAL)).max(after(LEAST_BETWEEN_ROTATIONS));
    (due > now).then_some(due)
}

/// When the kubeconfig of a shoot is renewed that was issued at `last`; `None` at once. A time to come is none: others may write it.
pub fn shoot_due(last: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    let due = last.filter(|last| *last <= now)?.saturating_add(SHOOT_RENEWAL).unwrap_or(Timestamp::MAX);
    (due > now).then_some(due)
}

/// The errors as a status has them: some of them, cut to a length, and how many more there are.
pub fn messages(errors: &[String]) -> Vec<String> {
    let cut = |error: &String| match error.get(..error.floor_char_boundary(LONGEST_TOLD)) {
        Some(begin) if begin.len() < error.len() => format!("{begin}…"),
        Some(_) | None => error.clone(),
    };
    let mut messages: Vec<String> = errors.iter().take(MOST_TOLD).map(cut).collect();
    if errors.len() > MOST_TOLD {
        messages.push(format!("and {} more", errors.len() - MOST_TOLD));
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::Until;

    fn names(names: &[&str]) -> BTreeSet<ObjectName> {
        names.iter().map(|name| (*name).into()).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn c_371_names_that_another_cluster_tells_are_those_of_objects_and_match() {
        let long = "a".repeat(NAME_LENGTH + 1);
        let told = ["a.kubeconfig", "b", "../c.kubeconfig", "D.kubeconfig", "", &long, "c.kubeconfig"];
        let selected = selected(&"Secret".into(), told.into_iter(), |name| name.ends_with(".kubeconfig"));
        let why = "the other cluster tells of 4 Secrets by names that no object can have; they are left out, correct its server";
        let expected = SelectedNames { names: names(&["a.kubeconfig", "c.kubeconfig"]), errors: vec![why.to_owned()] };
        assert_eq!(selected, expected);
    }

    #[test]
    fn c_371_limits_target_sync_so_many_become_targets_in_the_order_of_their_names() {
        let all: Vec<String> = (0..MOST_SYNCED + 2).map(|number| format!("s{number:05}")).collect();
        // The last come first: which are taken does not depend on the order.
        let selected = selected(&"Shoot".into(), all.iter().rev().map(String::as_str), |_| true);
        let first: BTreeSet<ObjectName> = all.iter().take(MOST_SYNCED).map(|name| name.as_str().into()).collect();
        let why = "the expression matches 1002 Shoots, of which 1000 become Targets; make it match fewer";
        assert_eq!(selected, SelectedNames { names: first, errors: vec![why.to_owned()] });
    }

    #[test]
    fn c_371_limits_target_sync_a_status_has_some_errors_of_a_length() {
        let errors = vec!["é".repeat(LONGEST_TOLD); MOST_TOLD + 3];
        let cut = format!("{}…", "é".repeat(LONGEST_TOLD / 2));
        let mut expected = vec![cut; MOST_TOLD];
        expected.push("and 3 more".to_owned());
        assert_eq!(messages(&errors), expected);
        let whole = vec!["x".repeat(LONGEST_TOLD); MOST_TOLD];
        assert_eq!(messages(&whole), whole);
    }

    #[test]
    fn c_372_what_has_the_mark_and_the_uid_is_its_own_and_nothing_else() {
        for (is_marked, owners, uid, expected) in [
            (true, vec!["v", "u"], "u", ObjectMaker::Own),
            (false, vec!["u"], "u", ObjectMaker::Other),
            (true, vec!["v"], "u", ObjectMaker::Other),
            (true, vec![], "u", ObjectMaker::Other),
            (true, vec![""], "", ObjectMaker::Other),
        ] {
            assert_eq!(ObjectMaker::of(is_marked, owners.iter().copied(), uid), expected, "{is_marked} {owners:?}");
        }
    }

    #[test]
    fn c_373_a_target_goes_where_all_went_well_and_nothing_uses_it() {
        let of = |well: bool| left(names(&["a", "b", "c"]), &names(&["a"]), well, |name| *name == "b");
        assert_eq!(of(true), LeftTargets { removed: vec!["c".into()], kept: vec!["b".into()] });
        assert_eq!(of(false), LeftTargets::default());
    }

    #[test]
    fn c_371_what_waits_what_is_tried_again_and_what_is_told_do_not_hide_each_other() {
        let failure = |message: &str| Failure::new("Sync", "Reason", message);
        let wait = |name: &str| Halt::wait("Secret", name, Until::Exists);
        let mut outcome = SyncOutcome::default();
        assert!(outcome.is_well());
        outcome.is_due(at(2));
        outcome.is_due(at(1));
        outcome.is_due(at(3));
        outcome.halts(wait("a"));
        assert!(!outcome.is_well(), "what is not known yet may be there");
        outcome.halts(Halt::Stall(failure("lasting")));
        outcome.halts(Halt::Retry(failure("first")));
        outcome.halts(wait("b"));
        outcome.halts(Halt::Retry(failure("second")));
        let expected = SyncOutcome {
            errors: ["lasting", "first", "second"].map(str::to_owned).into(),
            retry: Some(failure("first")),
            wait: Some(wait("a").join(wait("b"))),
            due: Some(at(1)),
            ..SyncOutcome::default()
        };
        assert_eq!(outcome, expected);
        assert!(!SyncOutcome { again: true, ..SyncOutcome::default() }.is_well(), "there is more to do");
    }

    fn token(claims: &str) -> String {
        format!("header.{}.signature", BASE64URL_NOPAD.encode(claims.as_bytes()))
    }

    #[test]
    fn c_375_limits_target_sync_a_token_says_how_long_it_lives_or_nothing() {
        let life = Some(TokenLife { issued: 10, expires: 100 });
        assert_eq!(TokenLife::of(&token(r#"{"iat":10,"exp":100,"sub":"x"}"#)), life);
        let long = format!("{}{}", token(r#"{"iat":10,"exp":100}"#), "x".repeat(LONGEST_TOKEN));
        let others = [
            token(r#"{"iat":100,"exp":100}"#),
            token(r#"{"iat":-1,"exp":100}"#),
            token(r#"{"exp":100}"#),
            token("[]"),
            "a.%.b".to_owned(),
            "opaque".to_owned(),
            long,
        ];
        for other in others {
            assert_eq!(TokenLife::of(&other), None, "{other:.40}");
        }
    }

    #[test]
    fn c_375_a_token_is_renewed_after_60_days_or_two_thirds_of_its_life_and_once_an_hour_at_most() {
        const DAY: i64 = 24 * 60 * 60;
        let begun = 1_000_000_000;
        let due = |life: Option<(i64, i64)>, now: i64| {
            let life = life.map(|(issued, expires)| TokenLife { issued, expires });
            rotation_due(Some(at(begun)), life, at(now)).map(|due| due.as_second() - begun)
        };
        assert_eq!(rotation_due(None, None, at(begun)), None, "never before: at once");
        assert_eq!(rotation_due(Some(at(begun + 1)), None, at(begun)), None, "a time to come is none");
        assert_eq!(due(None, begun), Some(60 * DAY));
        assert_eq!(due(None, begun + 60 * DAY), None);
        assert_eq!(due(Some((begun, begun + 90 * DAY)), begun), Some(60 * DAY));
        assert_eq!(due(Some((begun, begun + 30 * DAY)), begun), Some(20 * DAY));
        assert_eq!(due(Some((begun, begun + 30)), begun), Some(60 * 60), "however short it lives");
        assert_eq!(due(Some((begun, begun + 30)), begun + 60 * 60), None);
        assert_eq!(due(Some((0, i64::MAX)), begun), Some(60 * DAY), "beyond all times");
    }

    #[test]
    fn c_375_the_kubeconfig_of_a_shoot_is_renewed_after_half_of_its_life() {
        let of = |last: Option<i64>| shoot_due(last.map(at), at(1_000_000)).map(Timestamp::as_second);
        let half = SHOOT_SECONDS / 2;
        assert_eq!(of(None), None);
        assert_eq!(of(Some(1_000_000)), Some(1_000_000 + half));
        assert_eq!(of(Some(1_000_000 - half)), None);
        assert_eq!(of(Some(1_000_001)), None, "what is to come was not issued");
    }
}
