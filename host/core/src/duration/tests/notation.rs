//! Every unit, the cut below a nanosecond, and the longest length.

use super::*;

fn after(nanoseconds: u64) -> Result<TimeLimit, InvalidDuration> {
    Ok(TimeLimit::After(Duration::from_nanos(nanoseconds)))
}

#[test]
fn every_unit_weighs_what_it_weighs_in_go() {
    for (unit, nanoseconds) in UNITS {
        assert_eq!(limit(&format!("3{unit}")), after(3 * nanoseconds), "{unit}");
        assert_eq!(limit(&format!("0{unit}")), Ok(TimeLimit::Unlimited), "{unit}");
    }
    assert_eq!(limit("1h1m1s1ms1us1ns"), after(3_661_001_001_001));
    // In any order, and more than once.
    assert_eq!(limit("1s1h1s"), after(3_602_000_000_000));
}

#[test]
fn what_is_below_a_nanosecond_is_cut_off() {
    assert_eq!(limit("1.9ns"), after(1));
    assert_eq!(limit("0.9ns"), Ok(TimeLimit::Unlimited));
    assert_eq!(limit("1.s"), after(1_000_000_000));
    assert_eq!(limit("0.3333333333333333333333333333333h"), after(1_199_999_999_999));
}

#[test]
fn the_longest_length_is_that_of_a_signed_number_of_nanoseconds() {
    assert_eq!(limit("9223372036854775807ns"), after(i64::MAX.unsigned_abs()));
    assert_eq!(limit("2562047h47m16.854775807s"), after(i64::MAX.unsigned_abs()));
    for text in ["9223372036854775808ns", "2562047h47m16.854775808s", "18446744073709551616ns", "5124095577h"] {
        assert_eq!(limit(text), Err(InvalidDuration { text: text.to_owned() }), "{text}");
    }
}

#[test]
fn words_and_units_are_read_to_the_letter() {
    for text in ["None", "NONE", " none", "none ", "1H", "1S", "1min", "1h 30m", "++1s", "+", ".", "1_0s", "1e3s", "٣s"]
    {
        assert_eq!(limit(text), Err(InvalidDuration { text: text.to_owned() }), "{text}");
    }
    assert_eq!(limit("+0"), Ok(TimeLimit::Unlimited));
}

proptest::proptest! {
    #[test]
    fn parts_add_up(hours in 0_u64..1_000, minutes in 0_u64..1_000, milliseconds in 1_u64..1_000_000) {
        let text = format!("{hours}h{minutes}m{milliseconds}ms");
        let total = hours * 3_600_000 + minutes * 60_000 + milliseconds;
        proptest::prop_assert_eq!(limit(&text), Ok(TimeLimit::After(Duration::from_millis(total))));
    }

    #[test]
    fn a_fraction_is_the_same_length_in_a_smaller_unit(whole in 0_u64..100_000, thousandths in 1_u64..1_000) {
        let seconds = format!("{whole}.{thousandths:03}s");
        let milliseconds = format!("{}ms", whole * 1_000 + thousandths);
        proptest::prop_assert_eq!(limit(&seconds), limit(&milliseconds));
    }
}
