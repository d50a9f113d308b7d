//! All states of a component, and all pairs of claims.

use super::*;

/// All there are.
fn all() -> impl Iterator<Item = PluginFacts> {
    (0..1_u32 << 8).map(|bits| {
        let bit = |at: u32| bits >> at & 1 == 1;
        PluginFacts {
            deleting: bit(0),
            held: bit(1),
            guards: bit(2),
            in_use: bit(3),
            suspended: bit(4),
            loaded: bit(5),
            asked: bit(6),
            recorded: bit(7),
        }
    })
}

#[test]
fn c_264_a_component_goes_exactly_where_no_item_needs_it_or_nobody_guards() {
    for facts in all() {
        let goes = facts.deleting && facts.held && !(facts.in_use && facts.guards);
        assert_eq!(step(facts) == PluginStep::LetGo, goes, "{facts:?}");
    }
}

#[test]
fn c_264_nothing_is_loaded_before_it_is_guarded() {
    for facts in all().filter(|facts| facts.guards && !facts.held) {
        let expected = if facts.deleting { PluginStep::Rest } else { PluginStep::Guard };
        assert_eq!(step(facts), expected, "{facts:?}");
    }
}

#[test]
fn c_264_what_is_deleted_with_items_is_loaded_once_more_after_a_restart_and_not_renewed() {
    for facts in all().filter(|facts| facts.deleting && facts.held && facts.in_use && facts.guards) {
        let expected = match (facts.loaded, facts.recorded) {
            (true, _) => PluginStep::Rest,
            (false, true) => PluginStep::LoadRecorded,
            (false, false) => PluginStep::LoadNow,
        };
        assert_eq!(step(facts), expected, "{facts:?}");
    }
}

#[test]
fn c_260_what_its_source_has_now_is_loaded_where_it_is_asked_for_and_what_was_recorded_after_a_restart() {
    let free = all().filter(|facts| !facts.deleting && (facts.held || !facts.guards));
    for facts in free {
        let expected = match (facts.suspended, facts.asked, facts.loaded, facts.recorded) {
            // Nothing changes, and a restart changes nothing either.
            (true, _, false, true) => PluginStep::LoadRecorded,
            (true, ..) => PluginStep::Rest,
            (false, true, ..) => PluginStep::LoadNow,
            (false, false, false, true) => PluginStep::LoadRecorded,
            (false, false, false, false) => PluginStep::LoadNow,
            (false, false, true, _) => PluginStep::Rest,
        };
        assert_eq!(step(facts), expected, "{facts:?}");
    }
}

#[test]
fn c_261_of_two_claims_one_comes_first_by_deletion_priority_origin_age_and_name() {
    let at = |second| Timestamp::from_second(second).expect("a time");
    let installed = |deleting, priority, second, name| ClaimRank::of_installed(deleting, priority, at(second), name);
    // Each comes before all that stand after it.
    let ranks = [
        installed(false, 7, 9, "z"),
        installed(false, 1, 9, "z"),
        ClaimRank::of_registration(),
        installed(false, 0, 1, "z"),
        installed(false, 0, 2, "a"),
        installed(false, 0, 2, "b"),
        installed(false, -1, 1, "a"),
        installed(true, 7, 1, "a"),
        installed(true, 0, 1, "a"),
    ];
    for (at, rank) in ranks.iter().enumerate() {
        for (other_at, other) in ranks.iter().enumerate() {
            assert_eq!(rank.cmp(other), at.cmp(&other_at), "{rank:?} {other:?}");
        }
    }
}
